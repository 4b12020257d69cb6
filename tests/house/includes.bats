#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The rooms' table holds, and the check of it can fail.

load tree

check() {
	run "$SOURCE_DIR/tests/house/check-includes" "$1"
}

# A tree of two files: $2 as a source at $1, beside all the contracts.
tree_with() {
	cp -r include "$BATS_TEST_TMPDIR"
	mkdir -p "$BATS_TEST_TMPDIR/$(dirname "$1")"
	printf '%s\n' "$2" >"$BATS_TEST_TMPDIR/$1"
}

refused() {
	tree_with "$1" "$2"
	check "$BATS_TEST_TMPDIR"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ "$output" == *"$1:1: "*"$3"* ]]
}

@test "every include of the tree follows the table" {
	check .
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "each contract compiles alone, with each compiler" {
	for header in include/pm/*.h; do
		for cc in gcc clang; do
			echo "$cc $header"
			echo "#include \"pm/${header##*/}\"" |
				"$cc" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
					-Wno-unused-parameter -Iinclude -fsyntax-only -xc -
		done
	done
}

@test "an arrow of the table is allowed" {
	tree_with src/symbol/x.c '#include "pm/proc.h"'
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 0 ]
}

@test "an arrow that the table lacks is refused" {
	refused src/perf/x.c '#include "pm/proc.h"' 'perf may not include proc'
}

@test "angle brackets hide no arrow" {
	refused unwind/x.c '# include <pm/perf.h>' 'unwind may not include perf'
}

@test "a contract that includes another room is refused" {
	tree_with include/pm/file.h '#include "pm/unwind.h"'
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
	[[ "$output" == "include/pm/file.h:1: "*"file may not include unwind"* ]]
}

@test "another room's private header is refused" {
	mkdir -p "$BATS_TEST_TMPDIR/src/perf"
	touch "$BATS_TEST_TMPDIR/src/perf/perf-internal.h"
	refused src/pmrec/x.c '#include "src/perf/perf-internal.h"' 'neither a contract'
	refused src/pmrec/x.c '#include "../perf/perf-internal.h"' 'neither a contract'
}

@test "jansson is refused outside of file and output" {
	refused src/profile/x.c '#include <jansson.h>' 'only file and output'
}

@test "a room that the table does not know is refused" {
	tree_with src/attic/x.c '#include "pm/base.h"'
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
	[[ "$output" == *"src/attic/x.c: belongs to no room"* ]]
}

@test "an empty tree is refused" {
	check "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
}
