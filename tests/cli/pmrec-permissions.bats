#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Who may record what, and what those are told who may not. PMREC, PMREPORT, PROGRAMS and
# SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	unset level open
}

teardown() {
	[ -z "${level-}" ] || echo "$level" >$LEVEL_FILE
	[ -z "${open-}" ] || rm -r "$open"
}

# says EXPRESSION...: all of them are true of the document in doctor.json; by_name has its checks.
says() {
	python3 - "$@" <<-'END'
		import json, sys
		doctor = json.load(open('doctor.json'))
		by_name = {row['name']: row for row in doctor['checks']}
		assert doctor['format'] == 'pmrec-doctor' and doctor['version'] == 1
		for row in doctor['checks']:
		    assert row['works'] or row['why'], row
		for expression in sys.argv[1:]:
		    if not eval(expression):
		        sys.exit(f'not so: {expression}\n{json.dumps(by_name, indent=1)}')
	END
}

# Build and test run may be in folders that nobody but their owner can enter.
need_nobody() {
	need_root
	open=$(mktemp -d)
	chmod 777 "$open"
	cd "$open" || return
	cp "$PMREC" "$PROGRAMS/split" "$PROGRAMS/deny-perf" .
}

@test "the doctor fits 80 columns, and its status says whether recording works" {
	run --separate-stderr "$PMREC" --doctor
	[ "$status" -le 1 ]
	[ -z "$stderr" ]
	[ "$(awk 'length > 80' <<<"$output")" = "" ]
	grep -q "^\(ok\|no\)  *kernel samples" <<<"$output"
	[[ ${lines[-1]} == pmrec* ]]
	local text=$status
	run --separate-stderr "$PMREC" --doctor --json
	[ "$status" = "$text" ]
	echo "$output" >doctor.json
	says 'len(by_name) == len(doctor["checks"]) > 15' "doctor['works'] == ($status == 0)"
}

@test "what is promised to root works" {
	need_root
	"$PMREC" --doctor --json >doctor.json
	says 'all(by_name[n]["works"] for n in ("own programs", "stack copies", "software events"))'
	if says 'by_name["kernel samples"]["works"]' 2>/dev/null; then
		"$PMREC" -q -e cpu-clock:k -o s.json -- true
	fi
	if says 'by_name["whole CPUs"]["works"]' 2>/dev/null; then
		"$PMREC" -q -a -o s.json -- "$PROGRAMS/split" 0.1
		holds s.json 'len(samples) > 0'
	fi
	if says 'by_name["tracepoints"]["works"]' 2>/dev/null; then
		"$PMREC" -q -e sched:sched_process_exit -o s.json -- true
	fi
}

# bats test_tags=guest
@test "what each level of paranoid allows an ordinary user" {
	need_nobody
	local at_level works
	for at_level in -1 0 1 2 3 4; do
		works=0
		at $at_level nobody ./pmrec --doctor --json >doctor.json || works=$?
		says "doctor['works'] == ($works == 0)" \
			"by_name['own programs']['works'] or $at_level > 2" \
			"by_name['kernel samples']['works'] == ($at_level < 2)" \
			"by_name['whole CPUs']['works'] == ($at_level < 1)" \
			"by_name['breakpoints']['works'] == by_name['own programs']['works'] or $at_level > 2" \
			"'CAP_PERFMON' in by_name['probes in programs']['why'] or 'built without' in by_name['probes in programs']['why']" \
			"all('paranoid is $at_level' in row['why'] and 'sysctl' in row['fix'] for row in (by_name['kernel samples'], by_name['whole CPUs']) if not row['works'])"
		# Debian refuses everything from 3 on, the kernel as it is nothing more than at 2.
		if [ $at_level -ge 3 ] && [ $works != 0 ]; then
			says "'forbids all' in by_name['own programs']['why']" \
				"'paranoid=2' in by_name['own programs']['fix']"
		fi
	done
}

@test "what an ordinary user may record at each level is recorded" {
	need_nobody
	local at_level
	for at_level in 0 2; do
		rm -f ran
		at $at_level nobody ./pmrec -q -e cpu-clock -o s.json -- ./split 0.1
		holds s.json 'len(samples) > 20' 'split_is_true(10)' \
			"any('user space only' in n['text'] for n in notes) == ($at_level == 2)"
		run --separate-stderr at $at_level nobody ./pmrec -e cpu-clock:k -o k.json -- touch ran
		if [ $at_level = 2 ]; then
			[ "$status" = 125 ]
			[[ $stderr == *"perf_event_paranoid is 2"*sysctl* ]]
			[ ! -e ran ]
		else
			[ "$status" = 0 ]
		fi
	done
}

@test "tracepoints and probes tell an ordinary user what they need" {
	need_nobody
	run --separate-stderr nobody ./pmrec -e sched:sched_switch -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"try: "* ]]
	[ ! -e ran ]
	[ -e /sys/bus/event_source/devices/uprobe/type ] || skip "this kernel has no uprobes"
	run --separate-stderr nobody ./pmrec -e uprobe:./split:sixty -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *CAP_PERFMON*sudo* ]]
	[ ! -e ran ]
}

@test "what --list says an ordinary user can have he can record" {
	need_nobody
	local name available
	at 2 nobody ./pmrec --list --json software >list.json
	jq -r '.events[] | select(.kind == "software") | .name + " " + .available' list.json >names
	[ "$(wc -l <names)" -gt 5 ]
	while read -r name available; do
		run at 2 nobody ./pmrec -q -e "$name" -o l.json -- true
		[ "$available $status" = "no 125" ] || [ "$available" != no -a "$status" = 0 ]
	done <names
	grep -qx 'context-switches no' names
}

@test "rights that the program has and its user has not are enough to read tracefs" {
	need_nobody
	traced test -d /sys/kernel/tracing/events || skip "this kernel has no tracefs"
	traced "${NOBODY[@]}" test -r /sys/kernel/tracing && skip "everybody may read tracefs here"
	# CAP_DAC_READ_SEARCH, CAP_PERFMON and CAP_BPF, as setcap(8) would write them.
	python3 -c 'import os, struct
os.setxattr("pmrec", "security.capability",
            struct.pack("<5I", 0x02000001, 1 << 2, 0, 1 << 6 | 1 << 7, 0))' ||
		skip "the file system has no capabilities"
	[[ $(findmnt -n -o OPTIONS -T .) != *nosuid* ]] || skip "capabilities of files do not count here"
	# Above 2 Debian's kernels want CAP_SYS_ADMIN.
	run at 2 traced "${NOBODY[@]}" ./pmrec --doctor --json
	echo "$output" >doctor.json
	says "by_name['tracepoints']['works']"
	run --separate-stderr at 2 traced "${NOBODY[@]}" ./pmrec -e sched:sched_switch -o t.json -- ./split
	[ "$status" = 0 ]
}

@test "that a process is another user's is said at each level, whatever else is in the way" {
	need_nobody
	for event in cycles cpu-clock:u; do
		run -125 nobody ./pmrec -e $event -p $$ -o s.json
		[[ $output == *"process $$ belongs to another user"*"try: sudo" ]]
		[[ $output != *sysctl* ]]
	done
}

@test "the doctor tells a seccomp filter, and what works in its place" {
	run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PMREC" --doctor
	[ "$status" = 1 ]
	tr -s ' \n' ' ' <<<"$output" | grep -q "own programs samples of user space.*seccomp"
	[[ ${lines[-1]} == *"--engine ptrace"* || $output == *ptrace_scope=3* ]]
}

@test "--user: the command runs as somebody else, and is recorded" {
	need_nobody
	run --separate-stderr ./pmrec -q --user nobody -o s.json -- \
		sh -c 'id -u; id -g; id -G; ./split 0.2; echo "$HOME"'
	[ "$status" = 0 ]
	[ "${lines[0]}" = 65534 ]
	[ "${lines[1]}" = "$(id -g nobody)" ]
	[ "${lines[2]}" = "$(id -G nobody)" ]
	# The environment is left as it is.
	[ "${lines[3]}" = "$HOME" ]
	holds s.json 'len(samples) > 50' 'split_is_true(10)' 'footer["exit"] == {"code": 0}'
	[ "$(stat -c %u s.json)" = 0 ]
	run --separate-stderr ./pmrec -q --user 12345:54321 -o s.json -- sh -c 'id -u; id -g; id -G'
	[ "$output" = $'12345\n54321\n54321' ]
}

@test "--user: it cannot be had back" {
	need_nobody
	run --separate-stderr ./pmrec -q --user nobody -o s.json -- \
		grep -E '^(CapEff|CapPrm|Uid|Gid)' /proc/self/status
	[ "$status" = 0 ]
	[[ $output == *$'Uid:\t65534\t65534\t65534\t65534'* ]]
	[ "$(grep -c '0000000000000000$' <<<"$output")" = 2 ]
}

@test "--user: refusals" {
	need_nobody
	run --separate-stderr ./pmrec --user nosuchuser -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"no user 'nosuchuser'"* ]]
	run --separate-stderr ./pmrec --user nobody:nosuchgroup -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"no group 'nosuchgroup'"* ]]
	run --separate-stderr ./pmrec --user 4000000000 -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"try: --user 4000000000:4000000000"* ]]
	run --separate-stderr nobody ./pmrec --user root -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"only root"*"try: the same with sudo"* ]]
	[ ! -e ran ]
	# What that user may not run is told as ever.
	install -m 700 split hers
	run --separate-stderr ./pmrec --user nobody -- ./hers 0.1
	[ "$status" = 126 ]
	[[ $stderr == *"ermission denied"* ]]
}
