#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs that profile themselves where perf is denied, by timers and SIGPROF; and scopes.
# PMREPORT, PROGRAMS, BUILD_DIR and SOURCE_DIR come from meson. What is preloaded, of which a
# sanitized library is not capable, is in pmself.bats.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	unset level open
	export PMSELF_ENGINE=timer
	SELF=$BUILD_DIR/src/self
}

teardown() {
	[ -z "${level-}" ] || echo "$level" >$LEVEL_FILE
	[ -z "${open-}" ] || rm -r "$open"
}

# shares FILE LEAST: a, b and c have 10, 4 and 2 parts of at least so many ticks, as far as chance
# lets them. A kernel of 100 Hz has 100 ticks in a second of CPU time.
shares() {
	awk -v least="$2" '
	     $5 ~ /^[abc]$/ { self[$5] = $1; sum += $1 }
	     function off(name, p,   d, sigma) {
	         d = self[name] / sum - p
	         sigma = sqrt(p * (1 - p) / sum)
	         return d > 4.5 * sigma || d < -4.5 * sigma
	     }
	     END { exit sum < least || off("a", 10 / 16) || off("b", 4 / 16) || off("c", 2 / 16) }
	' "$1" || {
		cat "$1" >&2
		return 1
	}
}

# bats test_tags=plain
@test "three functions have the time that they take, in the table and in the file" {
	PMSELF_OUTPUT=abc.json run --separate-stderr "$PROGRAMS/self-abc" 1
	[ "$status" = 0 ]
	[ -z "$output" ]
	echo "$stderr" >table
	shares table 80
	grep -q "^pmself: [^ ]* (pid [0-9]*): [0-9]* ticks of cpu-clock at 999 Hz (timer) in 1 thread, " table
	run ! grep -q -e " lost: " -e "  x  " -e "CPU time in no tick" table
	# All of the CPU time is in some tick, but for what no tick has ended.
	holds abc.json 'len(samples) == footer["samples"]' \
		'0.9 < sum(s["period"] for s in samples) / footer["cpu_ns"] < 1.02' \
		'sum("main" in chain(s) for s in samples) == len(samples)' \
		'not any("stop" in s for s in samples)' \
		'not any("x" in chain(s) for s in samples)' \
		'all(a["time"] < b["time"] for a, b in zip(samples, samples[1:]))'
	"$PMREPORT" --format csv abc.json | grep -q "^.*,a,"
}

@test "without callers, and one thread only" {
	PMSELF_CALL_GRAPH=none PMSELF_THREADS=this PMSELF_OUTPUT=n.json "$PROGRAMS/self-abc" 0.6 2>table
	shares table 40
	holds n.json 'all(s["stop"] == "not_asked" for s in samples)'
}

# bats test_tags=plain
@test "where a filter forbids perf_event_open, and why is told" {
	local code
	for code in 1 13 38; do
		PMSELF_ENGINE=auto "$PROGRAMS/deny-perf" $code "$PROGRAMS/self-abc" 0.1 2>table
		grep -q "^pmself: [^ ]* (pid [0-9]*): [0-9]* ticks of cpu-clock at 999 Hz (timer)" table
		[ "$(grep -c "^pmself: sampled by timers, not by the kernel: .*perf_event_open" table)" = 1 ]
	done
	PMSELF_ENGINE=perf run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PROGRAMS/self-abc" 0.1
	[ "$status" = 1 ]
	PMSELF_EVENT=cache-misses run --separate-stderr "$PROGRAMS/self-abc" 0.1
	[ "$status" = 1 ]
	[[ $stderr == "pmself: cache-misses: timers know nothing but cpu-clock" ]]
}

@test "nobody at paranoid 4, with whatever is allowed there" {
	need_root
	local engine
	open=$(mktemp -d)
	chmod 777 "$open"
	cp -L "$SELF/libpmself.so.1" "$SELF/libpmself-core.so" "$PROGRAMS/self-abc" \
		"$PROGRAMS/deny-perf" "$open"
	cd "$open" || return
	for engine in auto timer; do
		PMSELF_ENGINE=$engine LD_LIBRARY_PATH=$open at 4 nobody ./self-abc 0.25 2>table
		shares table 15
	done
	grep -q "(timer)" table
	PMSELF_ENGINE=auto LD_LIBRARY_PATH=$open nobody ./deny-perf 13 ./self-abc 0.25 2>table
	shares table 15
	grep -q "(timer)" table
}

# workers FILE COUNT: so many threads have ticks beside the main one, which may have some, too.
workers() {
	holds "$1" "len({s['tid'] for s in samples if s['tid'] != s['pid']}) == $2"
}

@test "eight threads, half of them older than the profile" {
	PMSELF_OUTPUT=t.json "$PROGRAMS/self-life" threads 8 2>table
	shares table 100
	workers t.json 8
}

@test "exceptions that are thrown all the time" {
	PMSELF_OUTPUT=t.json run --separate-stderr "$PROGRAMS/self-throw" 0.8
	[ "$status" = 0 ]
	[ "$output" = ok ]
	workers t.json 4
	holds t.json 'sum("stop" in s for s in samples) < 0.1 * len(samples)'
}

@test "what a program may do around its profile" {
	local mode
	for mode in fork "fork 1" closefrom atexit forget leave "race 20" limits; do
		# shellcheck disable=SC2086 # a mode and its number
		run --separate-stderr "$PROGRAMS/self-life" $mode
		[ "$status" = 0 ] || { echo "$mode: $output $stderr" >&2 && return 1; }
		[ "$output" = ok ]
	done
}

# bats test_tags=plain
@test "what a program may do with signals" {
	local mode
	for mode in handler replace block interrupt keep exec shorts helper relay refused; do
		run --separate-stderr "$PROGRAMS/self-signals" $mode
		[ "$status" = 0 ] || { echo "$mode: $output $stderr" >&2 && return 1; }
		[ "$output" = ok ]
		echo "$stderr" >$mode.txt
	done
	grep -q "^pmself: [^ ]* (pid [0-9]*): [0-9]* ticks of cpu-clock at 999 Hz (timer)" refused.txt
	grep -q "^pmself: the program has put a handler of SIGPROF in our place" replace.txt
	grep -q "^pmself: threads that block SIGPROF, without ticks: 1" block.txt
	grep -q "^pmself: CPU time in no tick: 0" block.txt
	grep -q "^pmself: CPU time in no tick: 0" shorts.txt
	run ! grep -q "CPU time in no tick: 0.[1-9]" relay.txt
}

# bats test_tags=plain
@test "again and again while four threads allocate, without a trace" {
	PMSELF_TABLE=none PMSELF_QUIET=1 timeout 500 "$PROGRAMS/self-life" cycles 40
}

# ---- scopes ------------------------------------------------------------------------------------

# bats test_tags=plain
@test "scopes have a table at the end, and as much as they were asked for" {
	run --separate-stderr "$PROGRAMS/self-scope"
	[ "$status" = 0 ]
	[ "$output" = 6 ]
	[[ ${stderr_lines[0]} == "pmself: scopes" ]]
	[ "${#stderr_lines[@]}" = 4 ]
	# calls, elapsed and CPU seconds, cycles, instructions, name
	awk 'NR > 2 { calls[$6] = $1; cpu[$6] = $3; if ($3 > $2) exit 1 }
	     END { r = cpu["inner"] / cpu["outer"]
	           exit calls["inner"] != 6 || calls["outer"] != 6 || r < 0.7 || r > 0.9 }' <<<"$stderr"
	PMSELF_SCOPES=time PMSELF_TABLE=t.txt run --separate-stderr "$PROGRAMS/self-scope"
	[ -z "$stderr" ]
	grep -q "^ *6 *[0-9.]* *- *- *-  inner$" t.txt
	run --separate-stderr "$PROGRAMS/self-scope" left
	grep -q "^ *0 *- *- *- *-  left (1 not ended)$" <<<"$stderr"
	local off
	for off in PMSELF_SCOPES=off PMSELF=off; do
		run --separate-stderr env $off "$PROGRAMS/self-scope"
		[ "$status" = 0 ]
		[ -z "$output$stderr" ]
	done
	PMSELF_SCOPES=some run --separate-stderr "$PROGRAMS/self-scope"
	[ "$status" = 0 ]
	[ "$stderr" = "pmself: PMSELF_SCOPES=some: it may be off, time, all; no scope is counted" ]
}

@test "counts whose size nobody has set are told, once" {
	run --separate-stderr "$PROGRAMS/self-scope" unsized
	[ "$status" = 0 ]
	[ "$stderr" = "pmself: pmself_scope_read: the size of the counts is not set; begin them with PMSELF_COUNTS_INIT" ]
}

@test "PMSELF_DISABLE leaves nothing of scopes, in C and in C++" {
	cat >own.c <<-'END'
		#define PMSELF_DISABLE
		#include <pmself.h>
		int main(void)
		{
			struct pmself_counts counts = PMSELF_COUNTS_INIT;
			pmself_scope_begin("one");
			pmself_scope_end("one");
			return pmself_scope_read("one", &counts) == 0;
		}
	END
	cp own.c own.cc
	cc -std=c99 -Wall -Wextra -Werror -pedantic -I"$SOURCE_DIR/include" own.c -o own
	c++ -Wall -Wextra -Werror -pedantic -I"$SOURCE_DIR/include" own.cc -o own++
	./own
	./own++
	run ! grep pmself <(nm -u own own++)
}
