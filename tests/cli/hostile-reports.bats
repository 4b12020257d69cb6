#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Recordings that are made to cost their reader time, memory or disk. PMREC, PMREPORT and
# SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0
load common

setup() {
	export LC_ALL=C.UTF-8
	unset NO_COLOR
	cd "$BATS_TEST_TMPDIR" || return
}

hostile() {
	python3 "$SOURCE_DIR/tests/cli/hostile-recordings.py" "$1" >"$1.json"
}

# bytes_of FILE: its size.
bytes_of() {
	stat -c %s "$1"
}

# ---- size ---------------------------------------------------------------------------------

@test "a stack of a million frames keeps its ends, and the report says so" {
	hostile deep
	"$PMREPORT" deep.json >out
	grep -q '983616 stacks are deeper than 16384 frames' out
	# The sample is the innermost frame's.
	"$PMREPORT" --json deep.json >out.json
	jq -e '.recording.stacks_cut == 983616' out.json
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

# bomb LINE: a recording with a million and a half of them, compressed.
bomb() {
	{
		head -2 <("$PMREC" -q --no-symbols -e page-faults -o - -- true 2>/dev/null)
		yes "$1" | head -n 1500000
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
