#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Recordings made to cost their reader time, memory, disk space or secrets. PMREC,
# PMREPORT and SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0
load common

setup() {
	export LC_ALL=C.UTF-8
	unset NO_COLOR
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	[ -z "${public-}" ] || rm -rf "$public"
}

hostile() {
	python3 "$SOURCE_DIR/tests/cli/hostile-recordings.py" "$1" >"$1.json"
}

# bytes_of FILE: its size.
bytes_of() {
	stat -c %s "$1"
}

# ---- size ---------------------------------------------------------------------------------

@test "a stack of 200,000 frames keeps its ends, and the report says so" {
	hostile deep
	"$PMREPORT" deep.json >out
	grep -q '183616 stacks are deeper than 16384 frames' out
	# The sample is the innermost frame's.
	"$PMREPORT" --json deep.json >out.json
	jq -e '.recording.stacks_cut == 183616' out.json
	jq -e '[.events[0].rows[] | select(.function == "inner")][0].self.samples == 1' out.json
	for format in folded perf-script speedscope pprof firefox callgrind html csv; do
		"$PMREPORT" -q --format $format -o "out.$format" deep.json
		[ "$(bytes_of "out.$format")" -lt 4000000 ] || { ls -l "out.$format"; false; }
	done
	for show in --tree --bottom-up; do
		"$PMREPORT" -q $show --limit 0 deep.json >out
		[ "$(bytes_of out)" -lt 40000000 ] || { ls -l out; false; }
	done
}

@test "a flame graph has a size, and says what it left out" {
	hostile bushy
	run --separate-stderr "$PMREPORT" --flamegraph flame.svg bushy.json
	[ "$status" = 0 ]
	[ "$(bytes_of flame.svg)" -lt 70000000 ]
	[[ $stderr == *"Too large for a picture: of 16,001 rows the last "*" boxes, are left out"* ]]
	grep -q 'Too large for a picture: of 16,001 rows the last ' flame.svg
	tail -c 10 flame.svg | grep -q '</svg>'
	# All boxes that are drawn lie within the picture.
	python3 - <<-'END'
		import re
		text = open('flame.svg').read()
		height = int(re.search(r'<svg [^>]*height="(\d+)"', text).group(1))
		tops = [int(y) for y in re.findall(r'<svg x="[\d.]+%" y="(\d+)"', text)]
		assert 200000 < len(tops) < 24 * 16000, len(tops)
		assert max(tops) + 15 <= height and min(tops) >= 76, (min(tops), max(tops), height)
	END
	run --separate-stderr "$PMREPORT" --bottom-up --flamegraph flame.svg bushy.json
	[ "$status" = 0 ]
	[ "$(bytes_of flame.svg)" -lt 70000000 ]
}

@test "names of a megabyte are not repeated" {
	hostile names
	"$PMREPORT" --flamegraph flame.svg names.json 2>/dev/null
	[ "$(bytes_of flame.svg)" -lt 70000000 ]
	for format in speedscope firefox callgrind html json; do
		"$PMREPORT" -q --format $format -o "out.$format" names.json
		[ "$(bytes_of "out.$format")" -lt 40000000 ] || { ls -l "out.$format"; false; }
	done
	for show in --tree --bottom-up; do
		"$PMREPORT" -q $show --limit 0 names.json >out
		[ "$(bytes_of out)" -lt 40000000 ] || { ls -l out; false; }
	done
	# These have a name for each frame.
	for format in folded perf-script; do
		run --separate-stderr "$PMREPORT" --format $format -o out.txt names.json
		[ "$status" = 2 ]
		[[ $stderr == *"has a stack anew for each sample, and would take 9 GiB; at most 8"* ]]
		[[ $stderr == *"--html or --format firefox"* ]]
	done
}

@test "formats with whole stacks are refused before they fill the disk" {
	hostile long
	for format in folded perf-script; do
		run --separate-stderr "$PMREPORT" --format $format -o "out.$format" long.json
		[ "$status" = 2 ]
		[[ $stderr == *"has a stack anew for each sample, and would take "*" GiB; at most 8"* ]]
		[ ! -s "out.$format" ]
	done
	# A part of it has room.
	"$PMREPORT" -q --format perf-script --time 0-0.000000005 -o out.part long.json
	[ "$(grep -c 'hostile 7/7' out.part)" -le 5 ]
}

@test "notes are kept up to a number, and counted" {
	hostile notes
	"$PMREPORT" notes.json >out
	grep -q '99988 more notes are in the file' out
	"$PMREPORT" --json notes.json >out.json
	jq -e '.recording.notes_left_out == 99000' out.json
}

# ---- compression --------------------------------------------------------------------------

# bomb LINE: a recording with 400,000 of them, compressed.
bomb() {
	{
		head -2 <("$PMREC" -q --no-symbols -e page-faults -o - -- true 2>/dev/null)
		yes "$1" | head -n 400000
	} | zstd -q -f -o bomb.json.zst
	[ "$(bytes_of bomb.json.zst)" -lt 60000 ]
}

@test "a file that inflates like no recording is refused, whatever it repeats" {
	for line in '{"type":"note","text":"nothing at all, again and again"}' \
		'{"type":"lost","time":1,"cpu":0,"count":1,"because":"it is so"}' \
		'{"type":"thread","pid":1,"tid":1,"comm":"nobody at all","time":1}' \
		'{"type":"sample","time":1,"pid":1,"tid":1,"cpu":0,"event":0,"period":1,"stack":null,"stop":"a"}' \
		'{"type":"nothing that is known","to":"any reader of today"}'; do
		bomb "$line"
		for how in "" --follow; do
			run --separate-stderr "$PMREPORT" $how bomb.json.zst
			echo "$line $how: $stderr"
			[ "$status" = 1 ]
			[[ $stderr == *"more than 256 times as much"* && $stderr == *"zstd -d"* ]]
		done
	done
	# Decompressed, it is a file like any other.
	zstd -q -d bomb.json.zst
	"$PMREPORT" bomb.json >/dev/null
}

@test "more events than any recorder opens are refused" {
	python3 - >events.json <<-'END'
		import json
		event = {'name': 'e', 'requested': 'e', 'actual': 'e', 'modifiers': '',
		         'unit': 'events', 'period': 1}
		print(json.dumps({
		    'type': 'header', 'format': 'pmrec', 'version': 1, 'pmrec': '0',
		    'created': '2024-05-06T07:08:09Z', 'clock': 'monotonic',
		    'host': {'hostname': None, 'kernel': None, 'arch': None, 'cpus': None},
		    'command': [], 'events': [dict(event, id=i) for i in range(16385)],
		    'options': {'call_graph': 'none', 'stack_bytes': 0, 'ring_bytes': 0}}))
	END
	run --separate-stderr "$PMREPORT" events.json
	[ "$status" = 1 ]
	[[ $stderr == *"more than 16384 events"* ]]
}

# ---- secrets ------------------------------------------------------------------------------

# A folder that everybody may enter, for what `nobody` records. Sets public.
make_public() {
	public=$(mktemp -d "${TMPDIR:-/tmp}/pmreport-XXXXXX")
	chmod 755 "$public"
}

# evil SOURCE: a program of nobody's whose debug information says that its hot code is there.
evil() {
	cat >"$public/evil.c" <<-END
		#include <time.h>
		int main(void)
		{
			volatile unsigned long n = 0;
			clock_t end = clock() + CLOCKS_PER_SEC / 4;
		#line 1 "$1"
			while (clock() < end) { for (int i = 0; i < 100000; i++) { n += i; } }
			return 0;
		}
	END
	gcc -g -O0 -o "$public/evil" "$public/evil.c"
	chmod 755 "$public/evil"
}

# shown FILE [OPTION...]: whether the page or the annotation of main() has the text "topsecret".
shown() {
	rm -f page.html
	"$PMREPORT" --html page.html "${@:2}" "$1" || return 2
	"$PMREPORT" --annotate main "${@:2}" "$1" >annotated 2>&1 || return 2
	if grep -q topsecret page.html annotated; then
		grep -q topsecret page.html && grep -q topsecret annotated
	else
		return 1
	fi
}

@test "root's reports show only sources that the recorded user may read" {
	need_root
	make_public
	mkdir -m 700 "$public/hers"
	for i in {1..9}; do
		echo "int topsecret$i;"
	done >"$public/hers/secret.c"
	cp "$public/hers/secret.c" "$public/secret.c"
	chmod 600 "$public/secret.c"
	evil "$public/secret.c"
	"$PMREC" -q --user 65534:65534 -e cpu-clock:u -F 2000 -o s.json -- "$public/evil"
	[ "$(head -1 s.json | jq .uid)" = 65534 ]
	run shown s.json
	[ "$status" = 1 ]
	grep -q "sources that are not for the recorded user (uid 65534) are left out.*$public/secret.c" page.html
	grep -q -- "--source-root $public" page.html
	grep -q "is not for the recorded user (uid 65534)" annotated
	grep -q -- "--source-root $public" annotated
	# The report shows nothing where root keeps its capabilities for files.
	printf '#!/bin/sh\nexec setpriv --securebits +no_setuid_fixup "%s" "$@"\n' \
		"$PMREPORT" >keeps
	chmod 755 keeps
	PMREPORT=./keeps run shown s.json
	[ "$status" = 1 ]
	# An option of the report may allow the sources.
	shown s.json --source-root "$public"
	run shown s.json --source-root "$public/hers"
	[ "$status" = 1 ]
	# What everybody may read is no secret, a folder on the way is enough, and groups count.
	chmod 644 "$public/secret.c"
	shown s.json
	chmod 640 "$public/secret.c"
	chgrp 65534 "$public/secret.c"
	shown s.json
	chgrp 0 "$public/secret.c"
	run shown s.json
	[ "$status" = 1 ]
	chmod 644 "$public/hers/secret.c"
	evil "$public/hers/secret.c"
	"$PMREC" -q --user 65534:65534 -e cpu-clock:u -F 2000 -o h.json -- "$public/evil"
	run shown h.json
	[ "$status" = 1 ]
	# Other names of a file do not get round the check.
	rm "$public/secret.c"
	ln -s hers/secret.c "$public/secret.c"
	run shown s.json
	[ "$status" = 1 ]
	mkdir "$public/mine"
	ln -s ../hers/secret.c "$public/mine/secret.c"
	evil "$public/mine/secret.c"
	"$PMREC" -q --user 65534:65534 -e cpu-clock:u -F 2000 -o l.json -- "$public/evil"
	run shown l.json --source-root "$public/mine"
	[ "$status" = 1 ]
	sed "s|$public/mine|$public/mine/../hers|g" l.json >d.json
	run shown d.json --source-root "$public/mine"
	[ "$status" = 1 ]
	shown d.json --source-root "$public/hers"
}

@test "what a file says of users is believed as far as its owner goes" {
	need_root
	make_public
	for i in {1..9}; do
		echo "int topsecret$i;"
	done >"$public/secret.c"
	chmod 600 "$public/secret.c"
	evil "$public/secret.c"
	# Root's own program, recorded by root.
	"$PMREC" -q -e cpu-clock:u -F 2000 -o s.json -- "$public/evil"
	[ "$(head -1 s.json | jq .uid)" = 0 ]
	shown s.json
	# The same file as another user would make it.
	cp s.json forged.json
	chown 65534 forged.json
	run shown forged.json
	[ "$status" = 1 ]
	# If the file does not name the user, or comes from a pipe, the user is unknown.
	sed '1s/"uid":0,//' s.json >old.json
	run shown old.json
	[ "$status" = 1 ]
	rm -f page.html
	"$PMREPORT" --html page.html - <<<"$(cat s.json)"
	run ! grep topsecret page.html
	grep -q 'not for the recorded user (uid 65534)' page.html
	# -a has processes of all users.
	"$PMREC" -q -a -e cpu-clock -F 500 -o a.json -- "$public/evil"
	[ "$(head -1 a.json | jq .uid)" = null ]
	run shown a.json
	[ "$status" = 1 ]
}
