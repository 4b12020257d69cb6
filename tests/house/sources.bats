#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Names, conditional expressions and circles of the sources, and the check of them can fail.

load tree

check() {
	command -v ctags >/dev/null || skip "universal-ctags is not installed"
	run "$SOURCE_DIR/tests/house/check-sources" "$1"
	echo "$output"
}

# A tree of two sources, the second without a fault.
tree_with() {
	mkdir -p "$BATS_TEST_TMPDIR/src/base"
	printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/src/base/first.c"
	printf '%s\n' "${2-int second(void);}" >"$BATS_TEST_TMPDIR/src/base/second.c"
}

refused() {
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
	[[ "$output" == *"$1"* ]]
}

@test "the sources of the tree keep to it" {
	check .
	[ "$status" -eq 0 ]
}

@test "names that say what they do are allowed" {
	tree_with 'static int list_sort_rows(void) { return 0; }
int first(void) { return list_sort_rows(); }' 'int first(void);
int second(void) { return first(); }'
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 0 ]
}

@test "a static function of one word is refused" {
	tree_with 'static int sort(void) { return 0; }'
	refused 'src/base/first.c:1: sort: a name of one word'
}

@test "two files with a static function of one name are refused" {
	tree_with 'static int list_sort(void) { return 0; }' 'static
int list_sort(void) { return 1; }'
	refused 'list_sort: a static function of several files: src/base/first.c, src/base/second.c'
}

@test "too many conditional expressions are refused" {
	tree_with 'int first(int a) { return a ? 1 : 2; }'
	refused '500.00 conditional expressions per 1,000 lines'
}

@test "a question mark in a text or a comment is no conditional expression" {
	tree_with '/* is it a ? b : c */
const char *first(void) { return " ? a : b ? c : d"; }'
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 0 ]
}

@test "chained conditional expressions are refused" {
	tree_with 'int first(int a) { return a ? 1 : a > 2 ? 2 : 3; }'
	refused '500.00 chained conditional expressions'
}

@test "a result that is not called ret is refused" {
	tree_with 'int second(void);
int first(void)
{
	int rc = second();

	return rc;
}'
	refused 'src/base/first.c:2: first: call rc ret'
}

@test "an argument that is returned may have any name" {
	tree_with 'int first(int code)
{
	return code;
}'
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 0 ]
}

@test "two files that call each other are refused" {
	tree_with 'int second(void);
int first(void) { return second(); }' 'int first(void);
int second(void) { return first(); }'
	refused 'files that call each other: src/base/first.c uses second; src/base/second.c uses first'
}

@test "three files in a circle are refused, a pointer to a function counts" {
	tree_with 'int second(void);
int first(void) { return second(); }' 'int third(void);
int (*second_next)(void) = third;
int second(void) { return second_next(); }'
	printf '%s\n' 'int first(void);' 'int third(void) { return first(); }' >"$BATS_TEST_TMPDIR/src/base/third.c"
	refused 'src/base/third.c uses first'
}

@test "a tree without sources is refused" {
	refused 'no sources'
}
