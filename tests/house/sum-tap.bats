#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The sum at the end of `make test` counts what it should, above all what failed.

load tree

# result NAME RESULT EXIT STDOUT: one line of meson's test log.
result() {
	mkdir -p "$BATS_TEST_TMPDIR/b/meson-logs"
	jq -cn --arg name "$1" --arg result "$2" --argjson code "$3" --arg out "$4" \
		'{name: $name, result: $result, returncode: $code, stdout: $out, stderr: ""}' \
		>>"$BATS_TEST_TMPDIR/b/meson-logs/testlog.json"
}

# sum STATUS LAST_LINE
sum() {
	cd "$BATS_TEST_TMPDIR"
	run "$SOURCE_DIR/tests/sum-tap" b
	echo "$output"
	[ "$status" -eq "$1" ]
	[ "${lines[-1]}" = "$2" ]
}

@test "single tests are counted" {
	result one OK 0 $'1..2\nok 1 - a\nok 2 - b\n'
	result two OK 0 $'TAP version 13\n1..1\nok 1 c\n'
	sum 0 '3 passed, 0 failed, 0 skipped'
}

@test "a failure is shown with its explanation" {
	result one FAIL 1 $'1..2\nnot ok 1 a\n# because\nok 2 b\n'
	sum 1 '1 passed, 1 failed, 0 skipped'
	[[ "$output" == *'FAILED  b: one: a'*'# because'* ]]
}

@test "a skip is shown with its reason" {
	result one OK 0 $'1..2\nok 1 a # skip no PMU here\nok 2 b\n'
	result two SKIP 0 $'1..0 # SKIP nothing to do\n'
	result three SKIP 77 'not here'
	sum 0 '1 passed, 0 failed, 3 skipped'
	[[ "$output" == *'SKIPPED b: one: a: no PMU here'* ]]
	[[ "$output" == *'SKIPPED b: two: nothing to do'* ]]
}

@test "a skip of cmocka is a skip, with what was said before" {
	result one FAIL 0 $'1..2\nok 1 - a\n# no PMU here\nnot ok 2 # SKIP b\n# ok - tests\n'
	sum 0 '1 passed, 0 failed, 1 skipped'
	[[ "$output" == *'SKIPPED b: one: b: no PMU here'* ]]
	rm b/meson-logs/testlog.json
	result one FAIL 0 $'1..2\nnot here\nnot ok 1 # SKIP a\nok 2 - b\n'
	sum 0 '1 passed, 0 failed, 1 skipped'
	[[ "$output" == *'SKIPPED b: one: a: not here'* ]]
}

@test "a program that dies before its plan is done is a failure" {
	result one ERROR -11 $'1..3\nok 1 a\n'
	sum 1 '1 passed, 1 failed, 0 skipped'
}

@test "a program that dies after its last test is a failure" {
	result one ERROR 99 $'1..1\nok 1 a\n'
	sum 1 '1 passed, 1 failed, 0 skipped'
}

@test "a run that did not get to all programs is a failure" {
	result one OK 0 $'1..1\nok 1 a\n'
	mkdir "$BATS_TEST_TMPDIR/b/meson-info"
	echo '[{"name": "one"}]' >"$BATS_TEST_TMPDIR/b/meson-info/intro-tests.json"
	sum 0 '1 passed, 0 failed, 0 skipped'
	echo '[{"name": "one"}, {"name": "two"}]' >"$BATS_TEST_TMPDIR/b/meson-info/intro-tests.json"
	sum 1 '1 passed, 1 failed, 0 skipped'
}

@test "a plan that is missing is a failure" {
	result one OK 0 $'ok 1 a\n'
	sum 1 '1 passed, 1 failed, 0 skipped'
}

@test "a timeout is a failure" {
	result one TIMEOUT -15 ''
	sum 1 '0 passed, 1 failed, 0 skipped'
}

@test "a sanitizer report is a failure, whatever the tests said" {
	result one OK 0 $'1..1\nok 1 a\n'
	mkdir "$BATS_TEST_TMPDIR/b/sanitizer"
	echo 'heap-use-after-free' >"$BATS_TEST_TMPDIR/b/sanitizer/asan.1"
	sum 1 '1 passed, 1 failed, 0 skipped'
	[[ "$output" == *heap-use-after-free* ]]
}

@test "no test at all is a failure" {
	sum 1 '0 passed, 1 failed, 0 skipped'
}

@test "a program whose tests are all filtered out is a failure" {
	result one OK 0 $'1..0\n'
	result two OK 0 $'1..1\nok 1 a\n'
	sum 1 '1 passed, 1 failed, 0 skipped'
	[[ "$output" == *'FAILED  b: one: has no test'* ]]
}
