#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Titles of processes. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load attach

# begin_title ARGUMENT...: records tests/programs/title.c to s.json; $target is its process.
begin_title() {
	"$PMREC" -q -F 499 --stack-bytes 1024 -o s.json -- \
		bash -c 'echo $$ >pid; exec "$@"' bash "$PROGRAMS/title" "$@" 3>&- &
	recorder=$!
	until_true begun s.json
	until_true test -s pid
	target=$(cat pid)
	pids="$target $recorder"
}

end_title() {
	kill -TERM "$target"
	wait "$recorder" || true
}

@test "processes are told apart by their titles, which end with their program" {
	begin_title
	for text in '"title: one"' '"title: child alpha"' '"title: child beta"' '"title: shell"'; do
		until_true grep -qF "\"text\":$text" s.json
	done
	kill -USR1 "$target"
	until_true grep -qF '"text":"title: two"' s.json
	until_true grep -qF '"text":null' s.json
	end_title
	holds s.json 'footer is not None' \
		"[t['text'] for t in of('title') if t['pid'] == $target] == ['title: one', 'title: two']" \
		'len({t["pid"] for t in of("title")}) == 4' \
		'[t["text"] for t in of("title") if t["pid"] == [n["pid"] for n in of("title") if n["text"] is None][0]][:2] == ["title: shell", None]' \
		'all(samples[0]["time"] - 1e9 < t["time"] < samples[-1]["time"] + 2e9 for t in of("title"))'
	"$PMREPORT" -q --by process s.json >text
	for title in "title: two" "title: child alpha" "title: child beta"; do
		[ "$(grep -c "  $title\$" text)" = 1 ]
	done
	run ! grep -qE 'title: (one|shell)' text
	# The child without a title and the one that has executed another program.
	[ "$(grep -cE '  (bash, )?title$' text)" = 2 ]
	"$PMREPORT" --by process --json s.json | python3 -c '
import json, sys
rows = json.load(sys.stdin)["events"][0]["rows"]
assert [r["title"] for r in rows if r["pid"] == '"$target"'] == ["title: two"], rows
assert sum(r["title"] is None for r in rows) == 2, rows'
}

@test "a process that changes its title all the time does not flood the file" {
	begin_title flood "$(printf %01000d 0)"
	three_titles() { [ "$(grep -c '"type":"title"' s.json)" -ge 3 ]; }
	until_true three_titles
	end_title
	# The first follow each other after 20, 40, 80 ms and so on, then once a second.
	holds s.json 'len(of("title")) <= 17' \
		'all(t["pid"] == of("title")[0]["pid"] for t in of("title"))' \
		'all(b["time"] - a["time"] >= 2e7 for a, b in zip(of("title")[:-2], of("title")[1:-1]))' \
		'all(len(t["text"]) <= 256 for t in of("title"))' \
		'any(t["text"].startswith("flood: ") and len(t["text"]) == 256 for t in of("title"))'
	grep -qF ' \u001b[2J\u000a0' s.json
	run ! grep -q $'\033' s.json
	"$PMREPORT" -q --by process s.json >text
	run ! grep -q $'\033' text
	grep -q 'flood: [0-9]* \\x1b' text
}

@test "--overwrite: each snapshot has the titles of its own processes" {
	"$PROGRAMS/title" 3>&- &
	target=$!
	pids=$target
	"$PMREC" -o s.json -m 64 --stack-bytes 1024 --overwrite -p "$target" 2>said 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	for text in one two; do
		until_true grep -qaF "title: $text" "/proc/$target/cmdline"
		sleep 0.3
		# The answer may come too late on a busy machine; then the next snapshot has it.
		until_true snapshot_has "$recorder" "$text"
		kill -USR1 "$target"
	done
	kill -INT "$recorder"
	wait "$recorder"
}

snapshot_has() {
	kill -USR2 "$1"
	sleep 0.3
	cat s-*.json 2>/dev/null | grep -qF "\"text\":\"title: $2\""
}
