#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Tracepoints with their fields, against what the program did and against perf; the list of
# events. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

teardown() {
	[ -z "${open-}" ] || rm -r "$open"
}

need_tracefs() {
	need_root
	traced test -e /sys/kernel/tracing/events/sched/sched_switch/id ||
		skip 'this kernel has no tracefs'
}

@test "the fields of sched_switch are those that perf script tells" {
	need_tracefs
	command -v perf >/dev/null || skip 'perf is not installed'
	traced perf record -q -o p.data -e sched:sched_switch -- true || skip 'perf does not work'
	# perf 6.1 crashes over what it has recorded, now and then. Without stacks, because a
	# thousand of them in milliseconds may be more than the rings hold.
	for _ in 1 2 3 4 5 6 7 8; do
		traced perf record -q -B -N -m 4096 -k CLOCK_MONOTONIC -e sched:sched_switch \
			-o p.data -- "$PMREC" -q --no-symbols --call-graph none \
			-e sched:sched_switch -o s.json -- \
			"$PROGRAMS/ping-pong" 500 2>err || continue
		traced perf script -i p.data --ns -F tid,time,event,trace >perf 2>err || continue
		[ -s perf ] && break
	done
	[ -s perf ] || skip "perf crashes: $(grep -a . err | tail -n 1)"
	run "$SOURCE_DIR/tests/cli/switches.py" s.json <perf
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" -ge 990 ]
}

@test "a switch has the stack of who was switched out, from the kernel to main" {
	need_tracefs
	# On one CPU each round takes the CPU from ping once: it waits for the answer, or pong
	# preempts it while it writes, which is the scheduler's choice.
	traced "$PMREC" -q -e sched:sched_switch --filter 'prev_comm == "ping" && prev_pid > 0' \
		-o s.json -- taskset -c 0 "$PROGRAMS/ping-pong" 100
	query s.json 'len(samples)' 'chain(samples[0])' \
		'len(samples) >= 90' \
		'all(s["fields"]["prev_comm"] == "ping" for s in samples)' \
		'all("main" in chain(s) for s in samples)' \
		'sum("play" in chain(s) for s in samples) >= 90' \
		'all(any(str(f).startswith("schedule") for f in chain(s)) for s in samples if s["fields"]["prev_state"] == 1) or not any("schedule" in str(f) for s in samples for f in chain(s))' \
		'events[0]["filter"] == "prev_comm == \"ping\" && prev_pid > 0"' \
		'events[0]["period"] == 1' | tee out
	[ "$(tail -n 7 out | sort -u)" = True ]
}

@test "system calls are counted and told exactly" {
	need_tracefs
	traced "$PMREC" -q --call-graph none \
		-e "syscalls:sys_enter_write,syscalls:sys_exit_write,raw_syscalls:sys_enter" \
		-o s.json -- "$PROGRAMS/ping-pong" 300
	query s.json '[e["name"] for e in events]' '[e["samples"] for e in footer["events"]]' \
		'footer["events"][0]["samples"] == 600' \
		'footer["events"][1]["samples"] == 600' \
		'all(s["fields"]["count"] == 1 for s in samples if s["event"] == 0)' \
		'all(s["fields"]["ret"] == 1 for s in samples if s["event"] == 1)' \
		'sum(s["fields"]["id"] == 1 for s in samples if s["event"] == 2) == 600' \
		'all(s["fields"]["args"].split(",")[2] == "1" for s in samples if s["event"] == 2 and s["fields"]["id"] == 1)' \
		'all(len(s["fields"]["args"].split(",")) == 6 for s in samples if s["event"] == 2)' |
		tee out
	[ "$(uname -m)" = x86_64 ] || skip 'write has another number here'
	[ "$(tail -n 7 out | sort -u)" = True ]
}

@test "texts of variable length are told" {
	need_tracefs
	cp "$PROGRAMS/ping-pong" "a program with 'quotes' and ü"
	traced "$PMREC" -q -e sched:sched_process_exec -o s.json -- \
		sh -c '"$1" 1; true' sh "./a program with 'quotes' and ü"
	query s.json '[s["fields"] for s in samples]' \
		'any(s["fields"]["filename"] == "./a program with '"'quotes'"' and ü" for s in samples)' \
		'all(s["fields"]["pid"] == s["pid"] for s in samples)' | tee out
	[ "$(tail -n 2 out | sort -u)" = True ]
}

@test "a glob takes all that match, each an event of its own" {
	need_tracefs
	traced "$PMREC" -q -e 'sched:sched_wak*,sched:sched_switch' -o s.json -- \
		"$PROGRAMS/ping-pong" 50
	query s.json '[e["name"] for e in events]' \
		'{"sched:sched_waking", "sched:sched_wakeup", "sched:sched_switch"} <= {e["name"] for e in events}' \
		'all(e["name"] == e["requested"] and "group" not in e for e in events)' \
		'len({s["event"] for s in samples}) >= 3' | tee out
	[ "$(tail -n 3 out | sort -u)" = True ]
	"$PMREPORT" s.json >report
	grep -q '^[0-9,]* samples of sched:sched_switch' report
	grep -q '^[0-9,]* samples of sched:sched_waking' report
	[ "$("$PMREPORT" --json s.json | jq '.events | length')" -ge 4 ]
}

@test "members of a group tell their leader" {
	need_tracefs
	traced "$PMREC" -q -e '{sched:sched_switch,sched:sched_waking}' -o s.json -- \
		"$PROGRAMS/ping-pong" 50
	[ "$(query s.json '[e.get("group") for e in events]')" = '[None, 0]' ]
}

@test "a probe tells where it is" {
	need_root
	[ -d /sys/bus/event_source/devices/uprobe ] || skip 'this kernel has no uprobe PMU'
	"$PMREC" -q -e "uprobe:$PROGRAMS/ping-pong:main" -o s.json -- "$PROGRAMS/ping-pong" 1
	query s.json '[s["fields"] for s in samples]' 'len(samples) == 1' \
		'all(list(s["fields"]) == ["ip"] for s in samples)' \
		'all(s["fields"]["ip"] % 4096 == int(frames[chain_frames(s)[0]]["address"], 16) % 4096 for s in samples)' |
		tee out
	[ "$(tail -n 3 out | sort -u)" = True ]
}

@test "a filter that the kernel does not take is named, with the event's fields" {
	need_tracefs
	run --separate-stderr traced "$PMREC" -e sched:sched_switch --filter 'nobody > 0' true
	[ "$status" -eq 125 ]
	[[ "$stderr" == *'sched:sched_switch: the kernel does not take the filter "nobody > 0"; the fields of sched:sched_switch are prev_comm (text), prev_pid, '* ]]
}

@test "unknown tracepoints get near names and where to look" {
	need_tracefs
	run --separate-stderr traced "$PMREC" -e sched:sched_swich true
	[ "$status" -eq 125 ]
	[[ "$stderr" == *'unknown tracepoint "sched:sched_swich"; near names: sched:sched_switch'* ]]
	[[ "$stderr" == *"try: pmrec --list tracepoint 'sched:*'"* ]]
	run --separate-stderr traced "$PMREC" -e 'sched:nothing*' true
	[ "$status" -eq 125 ]
	[[ "$stderr" == *'no tracepoint matches "sched:nothing*"'* ]]
}

@test "without tracefs root needs no mount, and others are told the command that mounts it" {
	need_root
	unshare -m true 2>/dev/null || skip "no new mount namespace here"
	untraced "$PMREC" -q -e sched:sched_process_exec -o own.json -- true
	jq -es '[.[] | select(.type == "sample").fields.filename] |
		length == 1 and (.[0] | endswith("/true"))' own.json
	# shellcheck disable=SC2016
	untraced sh -c '"$1" --list tracepoint "sched:*" && [ ! -d /sys/kernel/tracing/events ]' \
		sh "$PMREC" >names
	grep -q sched:sched_switch names
	open=$(mktemp -d)
	chmod 777 "$open"
	cp "$PMREC" "$open"
	cd "$open"
	run --separate-stderr untraced "${NOBODY[@]}" ./pmrec -e sched:sched_switch true
	[ "$status" -eq 125 ]
	[[ "$stderr" == *'tracepoints need tracefs, which is not mounted at /sys/kernel/tracing'* ]]
	[[ "$stderr" == *'try: sudo, or sudo mount -t tracefs -o mode=750,gid=65534 nodev /sys/kernel/tracing'* ]]
	run --separate-stderr untraced "${NOBODY[@]}" ./pmrec --list tracepoint
	[ "$status" -eq 0 ]
	[[ "$output" == *'not mounted at /sys/kernel/tracing'*'sudo mount -t tracefs'* ]]
}

@test "who may not read tracefs is told of mode and owner" {
	need_tracefs
	[ "$(traced stat -c %a /sys/kernel/tracing)" = 700 ] || skip 'tracefs is open here'
	open=$(mktemp -d)
	chmod 777 "$open"
	cp "$PMREC" "$open"
	cd "$open"
	run --separate-stderr traced "${NOBODY[@]}" ./pmrec -e sched:sched_switch true
	[ "$status" -eq 125 ]
	[[ "$stderr" == *'tracefs has mode 0700 and group 0: user 65534 may not read'* ]]
	[[ "$stderr" == *'try: sudo mount -o remount,mode=750,gid=65534 /sys/kernel/tracing'* ]]
}

@test "--list tells names, aliases and what works" {
	run --separate-stderr "$PMREC" --list software
	[ "$status" -eq 0 ]
	[[ "$output" == software*'+ cpu-clock'* ]]
	[[ "$output" == *'+ page-faults'*' faults'* ]]
	[ -z "$stderr" ]
	run "$PMREC" --list hardware '*instr*'
	[ "$status" -eq 0 ]
	[[ "$output" == *' instructions'* ]]
	[[ "$output" != *' bus-cycles'* ]]
	# An alias finds its event.
	run "$PMREC" --list software cs
	[[ "$output" == *' context-switches'* ]]
	run --separate-stderr "$PMREC" --list software 'nothing*'
	[ "$status" -eq 125 ]
	[[ "$stderr" == *'no software event here matches "nothing*"'* ]]
}

@test "what --list says can be recorded can be recorded, and nothing else" {
	"$PMREC" --list --json | jq -r '.events[] | select(.kind == "software" or .kind == "hardware")
		| "\(.available) \(.name)"' >all
	[ "$(grep -c . all)" -ge 20 ]
	while read -r available name; do
		echo "$available $name"
		run "$PMREC" -q -e "$name" -c 1000000 -o s.json true
		case $available in
		yes | user) [ "$status" -eq 0 ] ;;
		# In the place of cycles something else is recorded, and said so.
		no) [ "$status" -ne 0 ] || [ "$name" = cycles ] ;;
		esac
	done <all
}

@test "--list fits 80 columns, and is without colors in a pipe" {
	traced "$PMREC" --list >out
	[ "$(wc -L <out)" -le 80 ]
	grep -q '^tracepoint' out
	none=$(tr -d '[:print:]\n' <out)
	[ -z "$none" ]
}

@test "--list --json has everything, tracepoints one by one" {
	need_tracefs
	traced "$PMREC" --list --json >out.json
	jq -e '.format == "pmrec-events" and .version == 1' out.json
	jq -e '[.events[].kind] | unique | length >= 5' out.json
	jq -e '.events[] | select(.name == "sched:sched_switch") | .available == "yes"' out.json
	jq -e '.pmus[] | select(.name == "software") | .type == 1' out.json
	jq -e 'all(.events[]; (.available == "yes") == (.reason == null))' out.json
	# Other tests make and remove probes meanwhile, which are events, too.
	until_true lists_all_tracepoints
}

lists_all_tracepoints() {
	local before
	before=$(traced cat /sys/kernel/tracing/available_events | sort)
	traced "$PMREC" --list --json tracepoint >all.json
	[ "$before" = "$(traced cat /sys/kernel/tracing/available_events | sort)" ] &&
		diff <(jq -r '.events[] | select(.kind == "tracepoint").name' all.json | sort) - <<<"$before"
}
