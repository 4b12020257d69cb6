#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# System calls that fail, each by strace --inject: no program hangs, no target is left stopped, and
# what went wrong is said. PMREC, PMSTAT and PROGRAMS come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	command -v strace >/dev/null || skip "no strace"
	strace -o /dev/null -e inject=sendto:error=EIO true 2>/dev/null ||
		skip "strace may not trace here"
	[ -z "$SANITIZE" ] || [ "$SANITIZE" = none ] || skip "LeakSanitizer does not work under strace"
}

# injected WHAT COMMAND...: ends by itself; its exit status is $status.
injected() {
	status=0
	timeout -s KILL 120 strace -qq -o calls -e trace="${1%%:*}" -e inject="$1" "${@:2}" \
		>out 2>err || status=$?
	cat out err
	[ "$status" != 137 ]
}

@test "a command that cannot be let go is killed, and nobody waits" {
	injected sendto:error=EIO "$PMREC" -o s.json -- "$PROGRAMS/split" 3000
	[ "$status" = 126 ]
	grep -q "cannot be let go: send: Input/output error" err
	injected sendto:error=EIO "$PMSTAT" -- "$PROGRAMS/split" 3000
	[ "$status" -ge 125 ]
	grep -q "cannot be let go: send: Input/output error" err
	injected sendto:error=ENOBUFS "$PMREC" --engine ptrace -o s.json -- "$PROGRAMS/split" 3000
	[ "$status" = 126 ]
}

none_runs() {
	! pgrep -f '^./injected' >/dev/null
}

@test "a thread that ptrace cannot let go on is let go" {
	local when
	cp "$PROGRAMS/split" injected
	# From the n-th call on all fail: the kernel lets the target go when pmrec ends.
	for when in 20+ 40 41 42 43 44; do
		injected "ptrace:error=EIO:when=$when" "$PMREC" --engine ptrace -o s.json -- \
			./injected 0.8
		until_true none_runs
	done
}

@test "wait4 that fails is said" {
	injected wait4:error=EINVAL "$PMREC" -o s.json -- "$PROGRAMS/split" 0.2
	[ "$status" = 125 ]
	grep -q "exit status of the command is not known: wait4: Invalid argument" err
}
