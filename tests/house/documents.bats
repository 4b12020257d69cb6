#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The documents refer to files and names that exist, and the check of it can fail.

load tree

check() {
	run "$SOURCE_DIR/tests/house/check-documents" "$1"
	echo "$output"
}

# refused TEXT WHY: a page of docs/how/ with TEXT, in a tree with one source.
refused() {
	mkdir -p "$BATS_TEST_TMPDIR/docs/how" "$BATS_TEST_TMPDIR/src/base"
	echo 'int pm_known(void);' >"$BATS_TEST_TMPDIR/src/base/known.c"
	printf '%s\n' '```' known.c '```' "$1" >"$BATS_TEST_TMPDIR/docs/how/x.md"
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
	[[ "$output" == "docs/how/x.md: $2"* ]]
}

@test "what the documents refer to exists" {
	check .
	[ "$status" -eq 0 ]
}

@test "a path, a file, a name or a link that is not there is refused" {
	# shellcheck disable=SC2016 # marks of Markdown
	refused '`src/base/gone.c`' 'there is no src/base/gone.c'
	# shellcheck disable=SC2016
	refused '`src/base/known.c` and `gone.c`' 'there is no file gone.c'
	# shellcheck disable=SC2016
	refused '`pm_known()` calls `pm_gone()`' 'no source has pm_gone'
	refused '[there](gone.md)' 'the link to gone.md leads nowhere'
}

@test "a page about a subject has one drawing and two screens" {
	refused '```' 'it has not exactly one drawing'
	refused "$(seq 100)" 'it has more than 90 lines'
}

@test "a tree without documents is refused" {
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
}
