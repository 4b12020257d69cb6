#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each kind of event that this machine can have, on a program whose counts are known.
# PMREC and SOURCE_DIR come from meson.

load common

setup_file() {
	cat >"$BATS_FILE_TMPDIR/counts.c" <<-'EOF'
	/* counts N: N writes of `watched`, N calls of called(), N pages touched, N sleeps. */
	#define _GNU_SOURCE
	#include <stdlib.h>
	#include <sys/mman.h>
	#include <unistd.h>

	volatile long watched;
	static volatile long sink;

	__attribute__((noinline)) void called(void)
	{
		sink++;
	}

	static void touch(long n)
	{
		char *pages = mmap(NULL, (size_t)n * 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(pages, (size_t)n * 4096, MADV_NOHUGEPAGE);
		for (long i = 0; i < n; i++)
			((volatile char *)pages)[i * 4096] = 1;
	}

	static void spin(void)
	{
		for (long i = 0; i < 50000000; i++)
			sink++;
	}

	int main(int argc, char **argv)
	{
		long n = argc > 1 ? atol(argv[1]) : 1;

		for (long i = 0; i < n; i++) {
			watched = i;
			called();
			usleep(100);
		}
		touch(n);
		spin();
		return 0;
	}
	EOF
	cc -O1 -g -no-pie -o "$BATS_FILE_TMPDIR/counts" "$BATS_FILE_TMPDIR/counts.c"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	cp "$BATS_FILE_TMPDIR/counts" .
}

# Breakpoints need debug registers, which some virtual machines lack.
need_breakpoints() {
	"$PMREC" -q -o probe.json -e mem:watched:w:u -- ./counts 1 2>why ||
		skip "no hardware breakpoints: $(tail -n 1 why)"
}

@test "a breakpoint on a variable sees each write" {
	need_breakpoints
	"$PMREC" -q -o s.json -e mem:watched/8:w:u -- ./counts 321
	holds s.json 'len(samples) == 321' \
		'all(s["period"] == 1 for s in samples)' \
		'all("main" in chain(s) for s in samples)' \
		'events[0]["requested"] == "mem:watched/8:w:u"'
}

@test "a breakpoint on reading and writing sees both, one on a function each call" {
	need_breakpoints
	# Written, never read.
	"$PMREC" -q -o s.json -e mem:watched:rw:u -- ./counts 50
	holds s.json 'len(samples) == 50'
	"$PMREC" -q -o x.json -e mem:called:x:u -- ./counts 77
	holds x.json 'len(samples) == 77' 'all(chain(s)[0] == "called" for s in samples)'
}

@test "each page that is touched is a fault" {
	"$PMREC" -q --call-graph fp -o s.json -e page-faults/period=1/u -- ./counts 500
	"$PMREC" -q --call-graph fp -o none.json -e page-faults/period=1/u -- ./counts 0
	in_touch='sum("touch" in chain(s) for s in samples)'
	holds s.json "$in_touch == 500" 'all(s["period"] == 1 for s in samples)' \
		'footer["events"][0]["counted"] == len(samples)'
	holds none.json "$in_touch == 0"
}

@test "the periods of faults by fives add up" {
	"$PMREC" -q --call-graph fp -o s.json -e minor-faults/period=5/u -- ./counts 1000
	holds s.json 'all(s["period"] == 5 for s in samples)' \
		'199 <= sum("touch" in chain(s) for s in samples) <= 201' \
		'len(samples) <= footer["events"][0]["counted"] / 5 <= len(samples) + len({s["cpu"] for s in samples}) + 1' \
		'not any("stand for" in n["text"] for n in notes)'
}

# Periods of faults at a frequency are the kernel's, mostly much too long; how much differs.
@test "samples that stand for more than was counted are told" {
	"$PMREC" -q -o s.json --call-graph fp -F 999 -e minor-faults -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do ./counts 50 & ./counts 300; done; wait'
	holds s.json 'len(samples) >= 4' \
		'any("period of another" in n["text"] for n in notes) or footer["events"][0]["period"] <= 1.1 * footer["events"][0]["counted"] + 1'
}

# On one CPU, for each CPU has counts of its own.
@test "a sample of a group with S has the counts of all its events" {
	for n in 500 1500; do
		"$PMREC" -q -o $n.json -F 999 -e '{cpu-clock,page-faults}:S' -- \
			taskset -c 0 ./counts $n
		holds $n.json 'all(s["event"] == 0 for s in samples)' \
			'all(len(s["counts"]) == 4 and s["counts"][::2] == [0, 1] for s in samples)' \
			'all(a["counts"][i] <= b["counts"][i] for i in (1, 3) for a, b in zip(samples[-50:], samples[-49:]))'
	done
	# All pages were touched before the spinning, in which the last samples are. The
	# program's start takes some faults, too, more where its files are not in memory.
	holds 500.json '500 <= samples[-1]["counts"][3] < 1000'
	holds 1500.json '1500 <= samples[-1]["counts"][3] < 2000'
}

@test "events of a group count together" {
	"$PMREC" -q -o s.json --call-graph fp \
		-e '{minor-faults/period=1/u,page-faults/period=1/u}:S' -- \
		taskset -c 0 ./counts 700
	in_touch='[s["counts"] for s in samples if "touch" in chain(s)]'
	# Each fault is one of both, but for a few that read from the disk.
	holds s.json "len($in_touch) == 700" \
		"all(b[1] - a[1] == 1 for a, b in zip($in_touch, $in_touch[1:]))" \
		"all(b[3] - a[3] == 1 for a, b in zip($in_touch, $in_touch[1:]))" \
		'all(c[3] >= c[1] for c in [s["counts"] for s in samples if "touch" in chain(s)])'
	# Without S they have none.
	"$PMREC" -q -o t.json -e '{minor-faults/period=100/u,page-faults/period=100/u}' -- ./counts 700
	holds t.json 'len(samples) > 10' 'all("counts" not in s for s in samples)'
}

@test "branches are recorded, or refused with a reason" {
	if [ -e /sys/bus/event_source/devices/cpu/caps/branches ]; then
		"$PMREC" -q -o s.json -b -- ./counts 1
		holds s.json 'any(len(s.get("branches", [])) >= 4 for s in samples)'
		return
	fi
	for option in -b "-j any_call,u" "--call-graph lbr"; do
		run --separate-stderr "$PMREC" -o s.json $option -- ./counts 1
		[ "$status" = 125 ]
		[[ ${stderr_lines[0]} == *"this machine keeps no records of branches"* ]]
		[ ! -e s.json ]
	done
	run --separate-stderr "$PMREC" -o s.json -b -e cpu-clock -- ./counts 1
	[ "$status" = 125 ]
	[[ ${stderr_lines[0]} == *"cpu-clock: branches are recorded with events of the CPU only" ]]
	[ "${stderr_lines[1]}" = "pmrec: try: -e cycles" ]
}

@test "switches are as many as the tracepoint says" {
	need_root
	"$PMREC" -q -o s.json -e cs/period=1/,sched:sched_switch -- ./counts 100
	holds s.json '[sum(s["event"] == i for s in samples) for i in (0, 1)][0] >= 100' \
		'sum(s["event"] == 0 for s in samples) == sum(s["event"] == 1 for s in samples)' \
		'all(s["fields"]["prev_comm"] == "counts" for s in samples if s["event"] == 1)'
}

@test "a tracepoint sees each system call, each glob each of its events" {
	need_root
	"$PMREC" -q -o s.json -e 'syscalls:sys_*_clock_nanosleep' -- ./counts 123
	holds s.json 'len(events) == 2' \
		'all(sum(s["event"] == e["id"] for s in samples) == 123 for e in events)' \
		'{e["name"] for e in events} == {"syscalls:sys_enter_clock_nanosleep", "syscalls:sys_exit_clock_nanosleep"}'
}

@test "a uprobe and its return see each call" {
	need_root
	"$PMREC" -q -o s.json -e uprobe:./counts:called,uretprobe:./counts:called -- ./counts 99
	holds s.json '[sum(s["event"] == i for s in samples) for i in (0, 1)] == [99, 99]'
}

@test "events of one recording have rates of their own" {
	"$PMREC" -q -F 250 -o s.json \
		-e 'cpu-clock/freq=2000/u,cpu-clock:u,task-clock/period=5000000/u' -- ./counts 1
	# The same time, weighed by three different periods.
	holds s.json '[e.get("freq", e.get("period")) for e in events] == [2000, 250, 5000000]' \
		'all(s["period"] == 5000000 for s in samples if s["event"] == 2)' \
		'(lambda n: n[0] > 4 * n[1] > 0 and n[2] > 0)([sum(s["event"] == i for s in samples) for i in (0, 1, 2)])'
}

@test "-c is for events without a rate of their own" {
	"$PMREC" -q -c 2 -o s.json -e page-faults:u,minor-faults/period=10/u -- ./counts 400
	holds s.json '[e["period"] for e in events] == [2, 10]' \
		'199 <= sum("touch" in chain(s) for s in samples if s["event"] == 0) <= 201' \
		'39 <= sum("touch" in chain(s) for s in samples if s["event"] == 1) <= 41'
}

@test "a group counts together: what its members saw is the same" {
	# Copied stacks of all at once would not fit into a buffer. Faults elsewhere may be major.
	"$PMREC" -q -o s.json --call-graph fp \
		-e '{page-faults/period=1/,minor-faults/period=1/}:u' -- ./counts 300
	holds s.json '[e.get("group") for e in events] == [None, 0]' \
		'[sum(s["event"] == i and "touch" in chain(s) for s in samples) for i in (0, 1)] == [300, 300]'
}

@test "with S only the leader of a group is sampled" {
	"$PMREC" -q -o s.json -e '{page-faults/period=1/,cpu-clock}:uS' -- ./counts 300
	holds s.json 'sum("touch" in chain(s) for s in samples) == 300' \
		'all(s["event"] == 0 for s in samples)'
}

@test "modifiers choose the side of the kernel" {
	need_root
	# Of a page fault in user space the address is there, whoever works on it.
	"$PMREC" -q -o u.json -e page-faults/period=1/u -- ./counts 50
	"$PMREC" -q -o k.json -e page-faults/period=1/k -- ./counts 50
	holds u.json 'sum("touch" in chain(s) for s in samples) == 50'
	holds k.json 'sum(chain(s)[0] == "touch" for s in samples) == 0'
}

@test "raw events and those of PMUs are refused with a reason where there is no PMU" {
	if "$PMREC" -q -o s.json -e instructions:u -- true 2>/dev/null; then
		skip "this machine has a PMU"
	fi
	run ! "$PMREC" -q -o s.json -e r1a8 -- true
	[[ $output == *"no hardware counters"* ]]
	run ! "$PMREC" -q -o s.json -e LLC-loads -- true
	[[ $output == *"no hardware counters"* ]]
	run ! "$PMREC" -q -o s.json -e cpu/event=0x3c/ -- true
	[[ $output == *'neither an event nor a PMU is called "cpu"; PMUs here: '*software* ]]
	[ ! -e s.json ]
}

@test "cycles in a group, precise or with a rate become cpu-clock, with a word of it" {
	if "$PMREC" -q -o s.json -e instructions:u -- true 2>/dev/null; then
		skip "this machine has a PMU"
	fi
	run "$PMREC" -o s.json -e '{cycles/freq=500/pp,page-faults/period=1/}:u' -- ./counts 100
	[ "$status" = 0 ]
	[[ $output == *"cpu-clock is sampled instead"* ]]
	holds s.json 'events[0]["freq"] == 500' \
		'sum(s["event"] == 1 and "touch" in chain(s) for s in samples) == 100'
}

@test "what cannot be is refused in one line that helps" {
	while IFS='|' read -r event text; do
		run "$PMREC" -q -o s.json -e "$event" -- true
		[ "$status" != 0 ]
		[[ ${lines[0]} == *"$text"* ]] || {
			echo "$event: $output" >&2
			return 1
		}
		[ ! -e s.json ]
	done <<-'EOF'
	cycles:x|unknown modifier "x"
	cyles|near names: cycles
	dummy|never gives a sample
	{cycles|a group has no "}"
	mem:0x1000/3|1, 2, 4 or 8 bytes
	mem:0x1001|write mem:0x1001/1
	uprobe:libc|uprobe:FILE:SYMBOL
	cpu-clock/freq=0/|a frequency of 0
	cpu-clock/umask=1/|an event by name has the terms
	uprobe:./p:'f(int|the quote is never closed
	nonsense/event=1/|PMUs here
	EOF
}

@test "a group with S counts all that its children do, at the leader's samples" {
	# 32,768 pages in all, but for what the programs themselves need. Each CPU has counts of its own:
	# what one counts after its last sample is in none.
	"$PMREC" -q -o s.json -e '{cpu-clock,page-faults}:S' -F 4999 -- \
		taskset -c 0 sh -c 'for i in 1 2; do dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; done'
	jq -es 'any(.type == "note" and (.text | contains("hands on no group")))' s.json &&
		skip "this kernel does not inherit it"
	"$PMREPORT" --json --event page-faults s.json >r.json
	jq .events[0].total r.json
	jq -e '.events[0] | .counted and .total.period > 32000 and .total.period < 36000' r.json
	"$PMREPORT" --event page-faults s.json | grep -E '^3[2-5],[0-9]{3} page-faults:S counted at [0-9]+ samples of cpu-clock:S'
}
