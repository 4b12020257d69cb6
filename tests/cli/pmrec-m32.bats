#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Stacks of 32-bit tasks. PMREC, PROGRAMS and SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0

setup_file() {
	export without=
	if [ ! -x "$PROGRAMS/m32" ]; then
		without='the compiler has no -m32 here (on x86-64: package gcc-multilib)'
	elif ! "$PROGRAMS/m32" 1; then
		without='this kernel runs no 32-bit programs'
	else
		cd "$BATS_FILE_TMPDIR" || return
		"$PMREC" -q -e cpu-clock:u -F 2000 -o s.json -- "$PROGRAMS/m32" 1000
	fi
}

setup() {
	[ -z "$without" ] || skip "$without"
	cd "$BATS_FILE_TMPDIR" || return
}

# all CONDITION FUNCTION: there are samples with that function, and all with a complete stack
# meet the condition on their chain, leaf first, as `c`.
all() {
	local some="[c for s in samples if 'stop' not in s for c in [chain(s)] if '$2' in c]"

	python3 "$SOURCE_DIR/tests/cli/samples.py" s.json \
		"[c for c in $some if not ($1)][:1]" "len($some) > 100 and all($1 for c in $some)" |
		tee /dev/stderr | tail -n 1 | grep -qx True
}

@test "32-bit stacks are complete" {
	run -0 python3 "$SOURCE_DIR/tests/cli/samples.py" s.json 'footer["stops"]' \
		'len(samples) > 1000 and rooted(0.99)'
	[ "${lines[1]}" = True ] || {
		echo "$output"
		false
	}
}

@test "32-bit recursion has all its frames" {
	all 'c[-5:].count("main") == 1 and c.count("deep") == 100' at_bottom
}

@test "32-bit signal frames lead to what was interrupted" {
	all 'c.count("handler") + c.count("info_handler") == 1 and
		c.index("in_handler") < c.index("interrupted") < c.index("main")' in_handler
	all '"interrupted" in c' handler
	all '"interrupted" in c' info_handler
}

@test "32-bit frames of the C library are in between" {
	all 'c[c.index("from_libc"):][1:4] == ["lfind", "through_libc", "main"]' from_libc
}

@test "the vDSO of a 32-bit task is its own" {
	run -0 python3 "$SOURCE_DIR/tests/cli/samples.py" s.json \
		'[m["path"] for m in modules if m["kind"] == "vdso"] == ["[vdso32]"]' \
		'"__kernel_vsyscall" in {n for s in samples for n in chain(s)}'
	[ "$output" = "$(printf 'True\nTrue')" ]
}
