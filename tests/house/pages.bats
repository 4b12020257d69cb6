#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Man pages, --help and README.md tell of the same programs.

load tree

# Programs that are built and have a page.
programs() {
	local found=
	for name in pmrec pmreport pmstat pmdiff; do
		if [ -x "$BUILD_DIR/src/$name/$name" ] && [ -e "docs/$name.1.scd" ]; then
			found="$found $name"
		fi
	done
	[ -n "$found" ] || skip 'no program is built yet'
	echo "$found"
}

# The options that a --help text lists: those that begin a line, with their other names.
help_options() {
	"$BUILD_DIR/src/$1/$1" --help | grep -E '^ +-' | sed 's/  *$//; s/^ *//; s/   *.*//' |
		grep -oE '(^|[ ,|])--?[A-Za-z0-9][A-Za-z0-9-]*' | tr -d ' ,|' | sort -u
}

# The options that a page explains: bold, at the beginning of a line.
page_options() {
	grep -E '^\*-' "docs/$1.1.scd" | grep -oE '\*--?[A-Za-z0-9\\][A-Za-z0-9\\-]*' |
		tr -d '*\\' | sort -u
}

@test "every option of --help is in the man page, and the reverse" {
	names=$(programs)
	for name in $names; do
		help_options "$name" >"$BATS_TEST_TMPDIR/help"
		page_options "$name" >"$BATS_TEST_TMPDIR/page"
		[ -s "$BATS_TEST_TMPDIR/help" ]
		echo "$name: - only in --help, + only in the page"
		diff -u "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/page"
	done
}

@test "pmreport(1) explains each figure of the heading" {
	"$BUILD_DIR/src/pmreport/pmreport" --width 0 tests/cli/fixtures/truth.json |
		sed -n 's/^[0-9,]* samples of cpu-clock[^ ]* @ [0-9,]* Hz   //p' |
		sed 's/   /\n/g' | sed 's/ .*//' >"$BATS_TEST_TMPDIR/words"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/words")" = 4 ]
	while read -r word; do
		grep -qxF "*$word*" docs/pmreport.1.scd
	done <"$BATS_TEST_TMPDIR/words"
}

@test "--help fits 80 columns and goes to stdout" {
	names=$(programs)
	for name in $names; do
		"$BUILD_DIR/src/$name/$name" --help >"$BATS_TEST_TMPDIR/out" \
			2>"$BATS_TEST_TMPDIR/err"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -gt 5 ]
		wide=$(wc -L <"$BATS_TEST_TMPDIR/out")
		echo "$name: $wide columns"
		[ "$wide" -le 80 ]
		[ ! -s "$BATS_TEST_TMPDIR/err" ]
	done
}

@test "the man pages are mandoc clean" {
	pages=$(find "$BUILD_DIR/docs" -name '*.[1-8]')
	[ -n "$pages" ]
	# scdoc writes more paragraph macros than are needed, everywhere.
	# Up to 4 is how bad the worst finding is, more that nothing was read: mandoc(1).
	mandoc -Tlint -Wwarning $pages >"$BATS_TEST_TMPDIR/lint" || [ $? -le 4 ]
	none grep -v 'skipping paragraph macro' "$BATS_TEST_TMPDIR/lint"
}

@test "the relative links of the documents lead to files" {
	for file in $(tree '*.md'); do
		grep -oE '\]\([^)# ]+' "$file" | sed 's/^](//' | grep -v : | while read -r link; do
			[ -e "$(dirname "$file")/$link" ] || echo "$file: $link"
		done
	done >"$BATS_TEST_TMPDIR/dead"
	none cat "$BATS_TEST_TMPDIR/dead"
}

# In the indented or fenced code of README.md every `make X` and every option of a program.
@test "the commands of README.md exist" {
	for target in $(grep -oE '^(sudo )?make [a-z]+' README.md | sed 's/.*make //' | sort -u); do
		echo "make $target"
		grep -qE "^$target:" Makefile
	done
	names=$(programs)
	for name in $names; do
		for option in $(grep -oE "(^|[\`\$ ])$name [^\`|]*" README.md | sed 's/ -- .*//' |
			grep -oE ' --?[A-Za-z][A-Za-z0-9-]*' | sort -u); do
			echo "$name $option"
			help_options "$name" | grep -qxe "$option"
		done
	done
}
