#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The guest's tests from outside: nothing passes that has not run to its end.

load tree

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# said GUEST LINE...: what its console showed, which ends lines as consoles do.
said() {
	local guest=$1
	shift
	printf '%s\r\n' "$@" >"$guest.log"
}

# sum STATUS LAST_LINE GUEST...
sum() {
	local expected=$1 last=$2
	shift 2
	run "$SOURCE_DIR/tests/guest/sum" . "$@"
	echo "$output"
	[ "$status" -eq "$expected" ]
	[ "${lines[-1]}" = "$last" ]
}

GOOD=('@@ begin good' '1..2' 'ok 1 a' 'ok 2 b # skip why' '@@ end good 0 1.25')

@test "tests of all guests are added up, and what they recorded is unpacked" {
	echo word >file
	said one '[ 0.1] a kernel@@ begin x' '1..1' 'not ok 1 c' '# because' '@@ end x 1 2.50' '@@ done'
	said two-b "${GOOD[@]}" '@@ results' "$(tar -c file | zstd -q | base64)" '@@ end of results' \
		'@@ done'
	sum 1 '1 passed, 1 failed, 1 skipped' one two/b
	[[ $output == *'SKIPPED two/b: good: b: why'* ]]
	cmp file results/two-b/file
	sum 0 '1 passed, 0 failed, 1 skipped' two/b
}

@test "a guest that died, said nothing, or has run nothing is a failure" {
	said died "${GOOD[@]}" 'Kernel panic'
	sum 1 '1 passed, 1 failed, 1 skipped' died
	said good "${GOOD[@]}" '@@ done'
	sum 1 '1 passed, 1 failed, 1 skipped' good absent
	said idle '@@ done'
	sum 1 '1 passed, 1 failed, 1 skipped' good idle
	[[ $output == *'FAILED  idle: no test was run'* ]]
	said filtered '@@ begin x' '1..0' '@@ end x 0 1.25' '@@ done'
	sum 1 '1 passed, 2 failed, 1 skipped' good filtered nowhere
}

@test "a line that the kernel came into hides no program" {
	said one '@@ begin x[ 1.1] rcu: stall' '1..1' 'ok 1 c' '@@ end x 0 2.50' "${GOOD[@]}" '@@ done'
	sum 1 '1 passed, 1 failed, 1 skipped' one
	said one '@@ begin x' '1..1' 'not ok 1 c' '@@ end x 1 2.50[ 1.1] rcu: stall' "${GOOD[@]}" '@@ done'
	sum 1 '1 passed, 1 failed, 1 skipped' one
	[[ $output == *'FAILED  one: x: began, and its end is not told'* ]]
	said one "${GOOD[@]}" '@@ begin x' '1..1' 'ok 1 c' '@@ end x 0 2[ 1.1] rcu: stall' '@@ done'
	sum 1 '1 passed, 1 failed, 1 skipped' one
}

@test "a status of failure counts, whatever is left of the lines" {
	said one '@@ begin x' '1..1' 'not [ 1.1] rcu: stall' 'ok 1 c' '@@ end x 1 2.50' '@@ done'
	sum 1 '1 passed, 1 failed, 0 skipped' one
	[[ $output == *'FAILED  one: x: exit status 1'* ]]
	said one '@@ begin x' '1..1' 'ok 1 c' '@@ end x 124 2.50' '@@ done'
	sum 1 '1 passed, 1 failed, 0 skipped' one
	[[ $output == *'x: took too long'* ]]
}

@test "what was recorded and did not come over is a failure, not the end" {
	said one '@@ results' 'KLUv/QRYaQ' '[ 1.1] rcu: stall' '@@ end of results' "${GOOD[@]}" '@@ done'
	said two "${GOOD[@]}" '@@ done'
	sum 1 '2 passed, 1 failed, 2 skipped' one two
	said one "${GOOD[@]}" '@@ results' 'KLUv/QRYaQ' '@@ done'
	sum 1 '3 passed, 1 failed, 3 skipped' one two two
}

# refused ERROR ARGUMENT...: and nothing is fetched, compiled or booted, for the lock is ours.
refused() {
	local error=$1
	shift
	run "$SOURCE_DIR/tests/guest/run" "$@"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == "tests/guest/run: $error"* && ${#lines[@]} = 1 ]]
}

# A copy of the tree has a lock of its own: `make test-guest` may be running in this one.
@test "one run at a time, of tests that there are" {
	mkdir -p copy/tests
	cp -r "$SOURCE_DIR"/tests/{guest,unit,cli} copy/tests
	SOURCE_DIR=$PWD/copy
	exec {lock}<copy/tests/guest
	flock -n "$lock"
	refused 'it runs already, in '
	refused 'it runs already, in ' units/cfi units/flow pmu/paranoid programs/crash
	refused 'there is no unit test named no-such' units/no-such
	refused 'no test of pmu has no-such in its name' pmu/no-such
	# One of those that are not run in the guest.
	refused 'no test of programs has help in its name' programs/help
	refused 'there is no guest named no-such' no-such
	refused 'this is not one word: a b' 'pmu/a b'
	refused 'pmu is there twice' pmu pmu
}
