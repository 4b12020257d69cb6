#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a recording does before its target runs and after it has ended, seen by strace. No test
# measures time. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	command -v strace >/dev/null || skip "no strace"
	strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
	[ -z "$SANITIZE" ] || [ "$SANITIZE" = none ] || skip "LeakSanitizer does not work under strace"
}

# traced COMMAND...: its system calls, each line with the thread, in `calls`.
traced() {
	strace -f -qq -o calls -e trace=openat,perf_event_open,prctl,setpriority,execve,exit_group,mmap \
		"$@"
}

# line PATTERN: the number of the first such line of `calls`.
line() {
	grep -nE -m 1 -- "$1" calls | cut -d : -f 1
}

@test "kernel symbols are read while the target still runs" {
	traced "$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/stack-faults" 0.6
	holds s.json 'any(m["kind"] == "kernel" for m in modules)' || skip "no kernel frames here"
	target=$(grep -m 1 'execve("[^"]*/stack-faults"' calls | cut -d ' ' -f 1)
	[ "$(line '/proc/kallsyms')" -lt "$(line "^$target +exit_group")" ]
	# By a thread that does not empty the rings.
	[ "$(grep '/proc/kallsyms' calls | cut -d ' ' -f 1 | uniq | wc -l)" = 1 ]
	[ "$(grep -m 1 '/proc/kallsyms' calls | cut -d ' ' -f 1)" != \
		"$(grep -m 1 perf_event_open calls | cut -d ' ' -f 1)" ]
}

# The kernel gives 4 KB a read.
@test "the table of kernel symbols is read once in a boot" {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR
	for run in 1 2 3 4 5 6; do
		# Code that comes and goes is looked up in a table of now, until there is none in one of these.
		[ "$run" -lt 3 ] || [ "$(grep -c read "calls$((run - 1))")" != 1 ] || break
		strace -f -qq -o "calls$run" -P /proc/kallsyms -e trace=read \
			"$PMREC" -q -e cpu-clock -o "s$run.json" -- "$PROGRAMS/stack-faults" 0.6
		holds "s$run.json" 'any(m["kind"] == "kernel" for m in modules)' ||
			skip "no kernel frames here"
	done
	[ "$(grep -c read calls1)" -gt 100 ]
	[ -e pmrec/kallsyms ] || skip "the kernel hides its addresses"
	[ "$(stat -c %a pmrec)$(stat -c %a pmrec/kallsyms)" = 700600 ]
	kernel='[f["id"] for f in frames if f["how"] == "kernel"]'
	named="sum(f in names for f in $kernel) > 0.9 * len($kernel) > 5"
	holds s1.json "$named"
	grep -Hc read calls[2-6] | grep -q ':1$'
	holds s2.json "$named"
	# A folder that cannot be used is no error.
	for XDG_CACHE_HOME in /proc/none relative "$PWD/s1.json"; do
		"$PMREC" -o s.json -- "$PROGRAMS/stack-faults" 0.1 2>err
		run ! grep -qE "kernel functions|kallsyms" err
	done
}

@test "debug information is read while the target still runs, and only names at the end" {
	traced "$PMREC" -q -e cpu-clock:u -o s.json -- "$PROGRAMS/stack-faults" 0.6
	target=$(grep -m 1 'execve("[^"]*/stack-faults"' calls | cut -d ' ' -f 1)
	# By processes, which give up all rights as those at the end do.
	[ "$(line 'PR_SET_NAME, "pmrec-names"')" -lt "$(line "^$target +exit_group")" ]
	early=$(grep -m 1 'PR_SET_NAME, "pmrec-names"' calls | cut -d ' ' -f 1)
	[ "$early" != "$(grep -m 1 perf_event_open calls | cut -d ' ' -f 1)" ]
	grep -qE "^$early +(prctl\(PR_SET_SECCOMP|exit_group)" calls
	# None of them is left.
	for pid in $(grep 'PR_SET_NAME, "pmrec-names"' calls | cut -d ' ' -f 1); do
		# Another process may have the number by now.
		run ! grep -qsx pmrec-names "/proc/$pid/comm"
	done
}

@test "kernel symbols are not read without a frame of the kernel" {
	traced "$PMREC" -q -e cpu-clock:u -o s.json -- "$PROGRAMS/split" 0.3
	[ -n "$(line perf_event_open)" ]
	[ "$(grep -c /proc/kallsyms calls)" = 0 ]
}

@test "a recording that falls back to another event keeps its rings" {
	traced "$PMREC" -q -m 1024 -o s.json -- true
	grep -q 'PERF_COUNT_HW_CPU_CYCLES.* = -1 E' calls || skip "cycles can be counted here"
	[ "$(grep -cE 'mmap\(NULL, 4198400, PROT_READ\|PROT_WRITE, MAP_SHARED' calls)" = \
		"$(getconf _NPROCESSORS_ONLN)" ]
}

@test "events at tracepoints are closed by a process that nobody waits for" {
	need_root
	traced "$PMREC" -q -e cpu-clock -o s.json -- true
	grep -q PERF_TYPE_TRACEPOINT calls || skip "no filter of tasks here"
	closer=$(grep -m 1 'PR_SET_NAME, "pmrec-close"' calls | cut -d ' ' -f 1)
	main=$(grep -m 1 perf_event_open calls | cut -d ' ' -f 1)
	[ -n "$closer" ]
	[ "$closer" != "$main" ]
	# It holds neither our output nor the folder.
	mkdir folder
	(cd folder && [ "$(timeout 60 "$PMREC" -q -e cpu-clock -o - -- true | tail -n 1 | cut -c 1-16)" = \
		'{"type":"footer"' ])
	rmdir folder
}

@test "a command that cannot wait for its recorder is said not to have run" {
	run --separate-stderr strace -f -b execve -qq -o calls -e trace=recvfrom \
		-e inject=recvfrom:error=ENOMEM:when=1 "$PMSTAT" -- true
	grep -q INJECTED calls
	[[ $status = 125 || $status = 126 ]]
	[[ $stderr = "pmstat: "* ]]
}

@test "pmstat says when it does not know how its command ended" {
	run --separate-stderr strace -f -b execve -qq -o calls -e trace=wait4 \
		-e inject=wait4:error=ECHILD:when=1+ "$PMSTAT" -e task-clock -o s.txt -- sh -c 'exit 7'
	grep -q INJECTED calls
	[ "$status" = 125 ]
	[[ $stderr = *"the exit status of the command is not known"* ]]
}

@test "the file system frees a replaced recording while the recorder goes on" {
	for _ in 1 2; do
		"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/split" 0.1
	done
	strace -f -qq -o calls -e trace=openat,rename,close,close_range,prctl \
		"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/split" 0.3
	fd=$(sed -nE "s/^[0-9]+ +openat.*\"s.json.old\", .*O_PATH.* = ([0-9]+)$/\1/p" calls | tail -n 1)
	[ -n "$fd" ]
	renamed=$(line 'rename\("s.json", "s.json.old"')
	# It stays open over the rename; a child has it when the recorder closes it.
	[ "$(grep -nE " close\($fd\b" calls | tail -n 1 | cut -d : -f 1)" -gt "$renamed" ]
	grep -q 'PR_SET_NAME, "pmrec-close"' calls
}

@test "events are opened at the best priority that is allowed" {
	need_root
	[ "$(nice)" = 0 ] || skip "nice is not 0"
	traced "$PMREC" -q -e cpu-clock -o s.json -- true
	[ "$(line 'setpriority\(PRIO_PROCESS, 0, -20\) += 0')" -lt "$(line perf_event_open)" ]
}

# As when another recorder closes its tracepoints on a busy machine. The first event of all is one.
@test "a recording that begins late says why" {
	need_root
	traced "$PMREC" -q -e cpu-clock -o s.json -- true
	grep -m 1 perf_event_open calls | grep -q PERF_TYPE_TRACEPOINT || skip "no filter of tasks here"
	strace -o /dev/null -e trace=perf_event_open \
		-e inject=perf_event_open:delay_enter=1100000:when=1 \
		"$PMREC" -e cpu-clock -o s.json -- "$PROGRAMS/split" 0.1 2>err
	# By 1.1 s, and by whatever the machine takes.
	grep -qE 'warning: the recording began [1-9][0-9]*\.[0-9] s late: .*--per-task' err
	holds s.json 'any(n["text"].startswith("the recording began ") for n in notes)'
}

# The end waits for the thread that writes the file, which therefore inherits the priority of
# the one that makes it.
@test "real-time priority is taken before the events are opened, and inherited by the writer" {
	need_root
	strace -f -qq -o calls -e trace=perf_event_open,sched_setscheduler,clone,clone3,/^exit \
		"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/split" 0.1
	local main
	main=$(grep -m 1 perf_event_open calls | cut -d ' ' -f 1)
	[ "$(line "^$main +sched_setscheduler\\(0, SCHED_FIFO, \\[1\\]\\) += 0")" -lt "$(line perf_event_open)" ]
	[ "$(line "^$main +clone3?\\(.*CLONE_THREAD")" -lt \
		"$(line "^$main +sched_setscheduler\\(0, (SCHED_FIFO\\|SCHED_RESET_ON_FORK|0x40000001)[^,]*, \\[1\\]\\) += 0")" ]
	# It is not given up for what comes after the recording.
	run -1 grep -E "^$main +sched_setscheduler\\(0, SCHED_OTHER" calls
}

@test "pmstat closes probes before their leader, and removes them when no handler runs" {
	[ "$(id -u)" = 0 ] || skip "probes need root"
	strace -qq -o calls -e trace=perf_event_open,close,ioctl,membarrier,write \
		"$PMSTAT" --engine uprobe --fn called_many -- "$PROGRAMS/count-calls" 300 \
		>/dev/null 2>err || [ "$?" = 7 ]
	python3 - <<-'END'
		import re
		members = {}  # by descriptor of the leader
		open_fds, disabled, waited, removed = {}, set(), False, 0
		for line in open('calls'):
		    call = line.split('(')[0]
		    if call == 'perf_event_open' and (found := re.search(
		            r', (-?\d+), (-?\d+), (-?\d+), \S+\) = (\d+)', line)):
		        leader, fd = int(found[3]), int(found[4])
		        open_fds[fd] = leader
		        if leader >= 0:
		            members.setdefault(leader, set()).add(fd)
		        waited = False
		    elif call == 'ioctl' and 'PERF_EVENT_IOC_DISABLE' in line:
		        disabled.add(int(re.match(r'ioctl\((\d+)', line)[1]))
		    elif call == 'close' and int(re.match(r'close\((\d+)', line)[1]) in open_fds:
		        fd = int(re.match(r'close\((\d+)', line)[1])
		        assert not members.get(fd), 'leader %d before %s' % (fd, members[fd])
		        leader = open_fds.pop(fd)
		        if leader >= 0:
		            assert leader in disabled, 'on while it is closed: %d' % leader
		            members[leader].discard(fd)
		        elif fd in disabled:
		            disabled.discard(fd)
		        waited = False
		    elif call == 'membarrier':
		        waited = True
		    elif call == 'write' and '"-:pmstat_' in line:
		        assert waited and not open_fds, line
		        removed += 1
		assert removed > 0
	END
}
