#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# One user's files and stacks make the recorder work a lot: the samples of all other users
# must be complete all the same. PMREC, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	need_root
	[ "$(uname -m)" = x86_64 ] || skip "the programs' code is for x86-64"
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	# The build may be in a folder that nobody but its owner can enter, and so is this one.
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR" 2>/dev/null || true
	places=$(mktemp -d /tmp/pmrec-budget.XXXXXX)
	chmod 777 "$places"
	cp "$PROGRAMS/costly" "$places"
	others=()
}

teardown() {
	local pid
	for pid in "${others[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
		rm -f "/tmp/perf-$pid.map"
	done
	rm -rf "${places:?}"
}

# attack KIND: four processes of nobody, until the test ends. Each in a folder of its own.
attack() {
	local i
	for i in 1 2 3 4; do
		mkdir -p "$places/$i"
		chmod 777 "$places/$i"
		(
			cd "$places/$i" || exit
			exec setpriv --reuid=65534 --regid=65534 --clear-groups -- ../costly "$1" 20000
		) 3>&- &
		others+=($!)
	done
}

# recorded: records for two seconds and 0.3 s of CPU time of another user's program, whose stacks
# must be complete. Lost samples may belong to any program. Other programs of this machine are
# left out, because they may do anything. The memory of a sanitizer says nothing.
recorded() {
	local recorder status=0
	"$PROGRAMS/split" 200 3>&- &
	others+=($!)
	local split=$!
	"$PMREC" -v -p "$(IFS=,; echo "${others[*]}")" -o s.json 2>err 3>&- &
	recorder=$!
	others+=("$recorder")
	until_true begun s.json
	sleep 2
	spends 30 "$split"
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	[ "$status" = 0 ] || {
		cat err >&2
		return 1
	}
	holds s.json 'footer["lost"] <= 0.01 * (footer["samples"] + footer["lost"])' \
		'len(samples) > 100' \
		'sum("sixty" in chain(s) or "thirty" in chain(s) for s in samples) > 100' \
		'all("stop" not in s for s in samples if chain(s)[0] in ("sixty", "thirty"))'
	[ -n "${ASAN_OPTIONS-}" ] || [ "$(memory_kb)" -le 600000 ]
}

# Cut stacks show that the attack was effective. On a busy machine, it may get too little
# CPU time for that.
asked_for_too_much() {
	holds s.json 'len(samples) < 2000 or footer["stops"].get("work_limit", 0) > 10' \
		'len(samples) < 2000 or any("(costly)" in n["text"] for n in notes)'
}

memory_kb() {
	sed -n 's/.*peak memory \([0-9]*\) KB$/\1/p' err | tail -n 1
}

@test "long expressions in the CFI of many frames" {
	attack expressions
	recorded
	holds s.json 'footer["stops"].get("work_limit", 0) > 0' \
		'any("more work than one process may ask for" in n["text"] for n in notes)' \
		'not any("real-time" in n["text"] for n in notes)'
	"$PMREPORT" s.json >out
	grep -q 'to unwind them takes more work than one' out
}

@test "stacks of ever other places without CFI" {
	attack places
	recorded
	asked_for_too_much
}

@test "stacks of thousands of frames none of which is like another" {
	attack stacks
	recorded
	asked_for_too_much
	holds s.json 'any(len(chain(s)) > 2000 for s in samples)'
}

@test "perf maps that grow all the time" {
	attack map
	recorded
}

@test "files with four million entries that no header sorts" {
	local i
	(cd "$places" && ./costly table-file)
	for i in 1 2 3 4; do
		mkdir "$places/$i"
		cp "$places/table" "$places/$i"
	done
	attack table
	recorded
	holds s.json '1 <= sum(footer["stops"].get(r, 0) for r in ("table_pending", "table_too_large"))' \
		'any("table for unwinding" in n["text"] or "a table would" in n["text"] for n in notes)' \
		'any("/table" in n["text"] for n in notes)' \
		'not any("real-time" in n["text"] for n in notes)'
}

@test "where no thread can make a table, the note says so" {
	(cd "$places" && ./costly wide-file)
	cp "$PMREC" "$places/pmrec"
	cd "$places"
	# A user who has no other process: the recorder and its command are two.
	setpriv --reuid=64321 --regid=64321 --clear-groups -- env "ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0" \
		prlimit --nproc=2:2 ./pmrec -q -e cpu-clock:u -o s.json -- ./costly table 500
	holds s.json 'footer["stops"]["table_pending"] > 0' \
		'any("could make no thread (Resource temporarily unavailable)" in n["text"] and "table" in n["text"] for n in notes)'
}

@test "a small file without a header is unwound from its first sample" {
	(cd "$places" && ./costly small-file)
	cd "$places"
	"$PMREC" -q -o s.json -- ./costly table 500
	holds s.json 'len(samples) > 20' '"table_pending" not in footer["stops"]' \
		'"work_limit" not in footer["stops"]'
}
