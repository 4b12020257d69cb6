#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The sum at the end of CI: of all parts, also of one that has died.

load tree

# sum STATUS LAST_LINE COMMAND_LINE...
sum() {
	local expected=$1 last=$2
	shift 2
	run "$SOURCE_DIR/tests/sum-parts" "$@"
	echo "$output"
	[ "$status" -eq "$expected" ]
	[ "${lines[-1]}" = "$last" ]
}

@test "the tests of all parts are added up" {
	sum 0 '12 passed, 0 failed, 3 skipped' \
		'echo FAILED one; echo 2 passed, 3 failed, 4 skipped; echo 5 passed, 0 failed, 1 skipped' \
		'echo 7 passed, 0 failed, 2 skipped; echo'
}

@test "a failure does not end what comes after it" {
	sum 1 '12 passed, 2 failed, 0 skipped' \
		'echo 5 passed, 2 failed, 0 skipped; exit 2' 'echo 7 passed, 0 failed, 0 skipped'
}

@test "a part that dies before it has counted is a failure, and is named" {
	sum 1 '7 passed, 1 failed, 0 skipped' 'kill -KILL $$' 'echo 7 passed, 0 failed, 0 skipped'
	[[ $output == *'FAILED  kill -KILL $$: status 137, before'* ]]
	sum 1 '7 passed, 1 failed, 0 skipped' 'echo 7 passed, 0 failed, 0 skipped' \
		'echo 9 passed, 0 failed, 0 skipped; echo and then nothing'
}

@test "a status of failure without one that was counted is a failure" {
	sum 1 '5 passed, 1 failed, 0 skipped' 'echo 5 passed, 0 failed, 0 skipped; exit 1'
	[[ $output == *'status 1, though no test of it failed'* ]]
}

@test "a part that skipped everything fails nothing, unless all of them did" {
	sum 0 '5 passed, 0 failed, 1 skipped' 'echo 5 passed, 0 failed, 0 skipped' \
		'echo 0 passed, 0 failed, 1 skipped'
	sum 1 '0 passed, 0 failed, 1 skipped' 'echo 0 passed, 0 failed, 1 skipped'
}

@test "what is no text does not hide the line" {
	sum 1 '5 passed, 1 failed, 0 skipped' \
		"printf 'FAILED \\0 \\377\\n5 passed, 1 failed, 0 skipped\\n'"
}
