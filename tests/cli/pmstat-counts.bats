#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the numbers of whole programs are worth: against programs that are known, and against
# perf stat.

load common

setup() {
	cd "$BATS_TEST_TMPDIR"
	WHOLE=$PROGRAMS/count-whole
}

# measure STATUS ARGUMENT...: runs pmstat for its JSON, keeping `out` and `err`, and expects this
# status.
measure() {
	local expected=$1 actual=0
	shift
	rm -f result.json
	"$PMSTAT" --json -o result.json "$@" >out 2>err || actual=$?
	[ "$actual" = "$expected" ] || {
		echo "status $actual instead of $expected: pmstat $*"
		cat err
		return 1
	}
}

# all EXPRESSION...: true of the document `d`, its first run, and values by name.
all() {
	python3 - "$@" <<-'END'
		import json, sys
		with open("result.json") as file:
		    d = json.load(file)
		# A virtual machine's host may have taken CPU time.
		d["warnings"] = [w for w in d["warnings"] if "the host took" not in w]
		run = d["runs"][0]
		names = [e["name"] for e in d["events"]]
		event = dict(zip(names, d["events"]))
		def by_name(counts):
		    return {n: c["value"] for n, c in zip(names, counts)}
		def states(counts):
		    return {n: c["status"] for n, c in zip(names, counts)}
		value, status = by_name(run["counts"]), states(run["counts"])
		rows = [dict(r, **{"value": by_name(r["counts"])}) for r in run["rows"]]
		intervals = [by_name(i["counts"]) for i in run["intervals"]]
		def about(number, expected):
		    return expected <= number <= expected + 250
		for e in sys.argv[1:]:
		    if not eval(e):
		        sys.exit("not so: " + e + "\n" + json.dumps(d)[:4000])
	END
}

has_pmu() {
	[ -e /sys/bus/event_source/devices/cpu ] || [ -e /sys/bus/event_source/devices/cpu_core ] ||
		compgen -G '/sys/bus/event_source/devices/armv8*' >/dev/null
}

# Starts a program that runs for a minute, and says its number.
sleeper() {
	sleep 60 &
	victim=$!
}

teardown() {
	[ -z "${level-}" ] || echo "$level" >"$LEVEL_FILE"
	[ -z "${victim-}" ] || kill "$victim" 2>/dev/null || true
}

@test "counts are those of perf stat" {
	perf stat -e page-faults true 2>/dev/null || skip "perf does not work here"
	python3 "$SOURCE_DIR/tests/cli/counts-like-perf.py" "$PMSTAT" "$WHOLE" 3000 50 100
}

# The program computes for 60 ms by its CPU clock. That clock goes on during context switches,
# while the kernel has stopped the event: up to 60 us each were left out on a slow machine.
@test "faults, sleeps and times are what the program does" {
	need_root
	measure 0 -e page-faults,minor-faults,major-faults,context-switches,task-clock -- \
		"$WHOLE" 3000 50 60
	[ "$(cat out)" = done ]
	all 'about(value["page-faults"], 3000)' \
		'value["minor-faults"] + value["major-faults"] == value["page-faults"]' \
		'value["context-switches"] >= 50' \
		'value["task-clock"] >= 60e6 - 60e3 * value["context-switches"]' \
		'value["wall-time"] >= value["task-clock"]' \
		'value["user-time"] + value["system-time"] >= 50e6' \
		'value["max-rss"] >= 3000 * 4096' \
		'all(s == "ok" for s in status.values())'
}

@test "without -e there is what this machine has, and a sentence about the rest" {
	need_root
	measure 0 -- "$WHOLE" 100 1 1
	all 'all(e["default"] for e in d["events"])' \
		'all(s == "ok" for s in status.values())' \
		'{"task-clock", "context-switches", "cpu-migrations", "page-faults"} <= set(names)' \
		'[m for m in d["metrics"] if m["name"] == "CPUs utilised"][0]["value"] > 0'
	if has_pmu; then
		return
	fi
	all '"cycles" not in names' \
		'sum("no hardware counters" in w for w in d["warnings"]) == 1'
	measure 0 -r 3 -- true
	all 'len(d["runs"]) == 3' 'len(d["warnings"]) == 1'
}

@test "what is asked for and is not there has a state, and never a number" {
	if has_pmu; then
		skip "this machine has hardware counters"
	fi
	measure 0 -e '{cycles,page-faults,L1-dcache-misses},instructions:u' -- "$WHOLE" 500
	all 'about(value["page-faults"], 500)' \
		'status["cycles"] == status["instructions"] == "not_supported"' \
		'value["cycles"] is None and value["instructions"] is None' \
		'"no hardware counters" in event["cycles"]["why"]' \
		'event["page-faults"]["why"] is None'
	"$PMSTAT" -e cycles -- true 2>err
	grep -q 'not supported *cycles' err
}

@test "intervals sum to the whole" {
	measure 0 -I 30 -e page-faults,task-clock -- "$WHOLE" 3000 20 100 2
	all 'len(intervals) >= 3' \
		'sum(i["page-faults"] for i in intervals) == value["page-faults"]' \
		'sum(i["task-clock"] for i in intervals) == value["task-clock"]' \
		'sum(i["wall-time"] for i in intervals) == value["wall-time"]' \
		'about(value["page-faults"], 9001)'
	at='[i["at_ns"] for i in run["intervals"]]'
	all "$at == sorted($at)" "$at[-1] == value[\"wall-time\"]"
}

# untold N: whether this kernel does not tell what threads had counted (c418d8b4d7a4 of Linux
# 6.19); then N of them are in the first row, and that is told.
untold() {
	grep -q "this kernel does not tell what a thread had counted" result.json || return
	all 'len(rows) == 1' 'rows[0]["value"]["page-faults"] == value["page-faults"]' \
		"any(w.startswith('$1 threads have no row of their own') for w in d['warnings'])"
}

# The first thread computes for 20 ms by its CPU clock, of which context switches are left out.
# bats test_tags=guest
@test "--per thread: each has its own, and all sum to the whole" {
	measure 0 --per thread -e page-faults,task-clock -- "$WHOLE" 1000 5 20 4
	! untold 4 || skip "this kernel does not report what threads had counted"
	all 'len(rows) == 5' \
		'rows[0]["comm"] == "count-whole" and rows[0]["pid"] == rows[0]["tid"]' \
		'about(rows[0]["value"]["page-faults"], 1000)' \
		'all(r["comm"] == "worker" and r["pid"] == rows[0]["pid"] for r in rows[1:])' \
		'len({r["tid"] for r in rows}) == 5' \
		'sorted(r["value"]["page-faults"] // 100 for r in rows[1:]) == [10] * 4' \
		'rows[0]["value"]["task-clock"] >= 10e6' \
		'sum(r["value"]["page-faults"] for r in rows) == value["page-faults"]' \
		'sum(r["value"]["task-clock"] for r in rows) == value["task-clock"]' \
		'status["page-faults"] == status["task-clock"] == "ok"'
}

# The programs where anybody can run them, wherever the build is.
for_nobody() {
	cp "$PMSTAT" pmstat
	cp "$WHOLE" whole
	chmod 755 . pmstat whole
}

@test "--per thread: processes of a shell, without a privilege" {
	need_root
	for_nobody
	NOBODY+=(env HOME=/)
	nobody ./pmstat --json -o - --per thread -e page-faults:u -- \
		sh -c './whole 700 >/dev/null; ./whole 1500 >/dev/null; :' >result.json
	! untold 2 || skip "this kernel does not report what threads had counted"
	all 'len(rows) == 3' \
		'[r["comm"] for r in rows] == ["sh", "whole", "whole"]' \
		'about(rows[1]["value"]["page-faults"], 700)' \
		'about(rows[2]["value"]["page-faults"], 1500)'
}

@test "--per cpu: all sum to the whole, and nothing seems multiplexed" {
	measure 0 --per cpu -e page-faults,task-clock -- "$WHOLE" 1000 5 20 4
	all 'sorted(r["cpu"] for r in rows) == [r["cpu"] for r in rows]' \
		"len(rows) == $(nproc --all)" \
		'sum(r["value"]["page-faults"] or 0 for r in rows) == value["page-faults"]' \
		'about(value["page-faults"], 5006)' \
		'status["page-faults"] == status["task-clock"] == "ok"'
}

# counts PID: whether that pmstat has opened its events, and waits.
counts() {
	local i
	for i in 1 2 3 4 5; do
		grep -q '^State:.S' "/proc/$1/status" &&
			[ -n "$(find "/proc/$1/fd" -lname '*perf_event*' -print -quit)" ] || return
		sleep 0.02
	done
}

@test "-p counts what runs already, and no more than is known of it" {
	need_root
	mkfifo go
	sh -c 'read -r _; exec '"'$WHOLE'"' 2000 5 20 >/dev/null' <go &
	victim=$!
	exec 7>go
	"$PMSTAT" --json -o result.json -e page-faults,task-clock -p "$victim" 2>err 7>&- &
	counter=$!
	until_true counts "$counter"
	echo >&7
	exec 7>&-
	wait "$counter"
	all 'about(value["page-faults"], 2000)' 'value["task-clock"] >= 10e6' \
		'value["wall-time"] > 0' \
		'status["user-time"] == status["max-rss"] == "not_supported"' \
		'value["max-rss"] is None' '"command" in event["user-time"]["why"]' \
		'run["exit_code"] is None' 'not run["stopped"]'
}

@test "--timeout stops the counting, and what was started for it" {
	sleeper
	measure 0 --timeout 100ms -e task-clock -p "$victim"
	kill -0 "$victim"
	all 'run["stopped"]' '90e6 < value["wall-time"]' 'value["task-clock"] == 0'
	measure 0 --timeout 100ms -e task-clock -- sleep 50
	all 'run["stopped"]' 'run["signal"] == 15' '90e6 < value["wall-time"] < 30e9'
}

@test "-D leaves out the beginning" {
	local all_ns
	all_ns=$(date +%s%N)
	measure 0 -D 1000 -e page-faults -- \
		sh -c "'$WHOLE' 3000 >/dev/null; sleep 2; exec '$WHOLE' 500"
	all_ns=$(($(date +%s%N) - all_ns))
	all 'value["page-faults"] < 3000' 'about(value["page-faults"], 500)' \
		"0 < value['wall-time'] <= $all_ns - 1000e6"
}

@test "-I begins when the delay of -D is over" {
	measure 0 -D 200 -I 100 -e page-faults -- sleep 1.2
	all '90e6 < run["intervals"][0]["at_ns"]'
}

@test "-a counts everybody" {
	need_root
	measure 0 -a --per cpu -e page-faults,cpu-clock -- "$WHOLE" 3000 0 50
	all "len(rows) == $(nproc)" 'value["page-faults"] >= 3000' \
		'value["cpu-clock"] >= 0.9 * len(rows) * value["wall-time"]'
}

@test "an ordinary user at paranoid 2 and 4 gets user space, or a reason, and is told" {
	need_root
	for_nobody
	cp "$PROGRAMS/count-calls" .
	for at_level in 2 4; do
		at $at_level nobody ./pmstat --json -o - -e page-faults,context-switches,task-clock \
			-- ./whole 800 2 5 >result.json
		all 'status["context-switches"] == "not_permitted"' \
			'value["context-switches"] is None' \
			'"perf_event_paranoid" in event["context-switches"]["why"]'
		# Debian's kernels forbid everything above 2.
		if [ $at_level = 2 ] || all 'status["page-faults"] == "ok"' 2>/dev/null; then
			all 'about(value["page-faults"], 800)' 'value["task-clock"] >= 4e6' \
				'event["page-faults"]["user_only"] and not event["task-clock"]["user_only"]' \
				'sum("perf_event_paranoid" in w for w in d["warnings"]) == 1'
		else
			all 'status["page-faults"] == "not_permitted"' 'value["page-faults"] is None'
		fi
		at $at_level nobody ./pmstat --engine ptrace --json -o - -e page-faults \
			--fn called_thousand -- ./count-calls 1 >result.json || [ $? = 7 ]
		all 'd["scopes"][0]["calls"] == 4000'
	done
}

@test "a program that the user may not read has no counts, rather than those of its exec" {
	need_root
	local folder
	folder=$(mktemp -d)
	chmod 755 "$folder"
	install -m 711 "$WHOLE" "$folder/hidden"
	for_nobody
	nobody ./pmstat --json -o - -e page-faults,task-clock -- "$folder/hidden" 800 2 50 \
		>result.json || echo "status $?"
	rm -rf "$folder"
	all 'status["page-faults"] == status["task-clock"] == "not_permitted"' \
		'sum("may not read" in w for w in d["warnings"]) == 1' \
		'value["wall-time"] >= 50e6' 'status["user-time"] == "ok"'
	# One that hides itself is counted: PR_SET_DUMPABLE is 4.
	nobody ./pmstat --json -o - -e page-faults:u,task-clock -- python3 -c \
		'import ctypes, time; ctypes.CDLL(None).prctl(4, 0); time.sleep(0.05)' >result.json
	all 'value["page-faults"] > 0' 'value["task-clock"] > 0' \
		'not any("may not read" in w for w in d["warnings"])'
}

@test "where all events are forbidden the command runs, and times are known" {
	run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PMSTAT" --json -o result.json \
		-e page-faults,task-clock -- sh -c 'echo hello; exit 3'
	[ "$status" = 3 ]
	[ "$output" = hello ]
	all 'status["page-faults"] == status["task-clock"] == "not_permitted"' \
		'"seccomp" in event["page-faults"]["why"]' \
		'value["wall-time"] > 0' 'status["user-time"] == "ok"'
}

@test "a process of somebody else is refused" {
	need_root
	sleeper
	for_nobody
	run --separate-stderr nobody ./pmstat -e page-faults:u -p "$victim"
	[ "$status" = 125 ]
	[[ $stderr == "pmstat: "* ]]
	[ "${#stderr_lines[@]}" -le 2 ]
}
