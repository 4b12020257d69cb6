#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What every file of the tree keeps to.

load tree

@test "every C file begins with its licence" {
	for file in $(tree '*.c' '*.h'); do
		read -r first <"$file" || true
		[ "$first" = '/* SPDX-License-Identifier: MIT */' ] || echo "$file"
	done >"$BATS_TEST_TMPDIR/without"
	none cat "$BATS_TEST_TMPDIR/without"
}

@test "every script names its licence" {
	for file in $(scripts); do
		mapfile -t -n 3 first <"$file"
		printf '%s\n' "${first[@]}" | grep -qxF '# SPDX-License-Identifier: MIT' || echo "$file"
	done >"$BATS_TEST_TMPDIR/without"
	none cat "$BATS_TEST_TMPDIR/without"
}

@test "the sources are laid out by clang-format" {
	version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
	# Another major version lays out the same style differently.
	[ "$version" = 14 ] || skip "clang-format is $version, the style is checked with 14"
	# All at once, for it takes longer to begin than to read a file.
	run clang-format --dry-run -Werror $(tree '*.c' '*.h')
	grep -oE '^[^ :]+:[0-9]+:[0-9]+: error: ' <<<"$output" | cut -d : -f 1 | sort -u |
		sed 's/^/clang-format -i /'
	[ "$status" = 0 ]
}

@test "the scripts are shellcheck clean" {
	shellcheck $(scripts | grep -v '\.bats$')
}

# only_negated FILE: its lines, but empty ones for tests that negate no command. shellcheck takes
# much longer for the rest.
only_negated() {
	awk 'function print_block() {
	         for (i = 1; i <= lines; i++)
	             print negates ? line[i] : ""
	         lines = negates = 0
	     }
	     /^@test / { print_block() }
	     { line[++lines] = $0 }
	     /(^|[;&|({]|[[:space:]](then|do|else|if|elif|while|until))[[:space:]]*![[:space:]]/ { negates = 1 }
	     END { print_block() }' "$1"
}

@test "no test has a negated command that cannot fail it" {
	local file
	for file in $(tree '*.bats'); do
		mkdir -p "$BATS_TEST_TMPDIR/${file%/*}"
		only_negated "$file" >"$BATS_TEST_TMPDIR/$file"
	done
	printf '%s\n' '@test "a" {' '	! false' '	true' '}' >"$BATS_TEST_TMPDIR/bad.bats"
	only_negated "$BATS_TEST_TMPDIR/bad.bats" >"$BATS_TEST_TMPDIR/kept.bats"
	cd "$BATS_TEST_TMPDIR"
	run shellcheck --shell=bats --include=SC2314,SC2315 kept.bats
	[[ $status = 1 && $output == *SC2314* ]]
	rm bad.bats kept.bats
	# shellcheck disable=SC2046 # a list of words
	shellcheck --shell=bats --include=SC2314,SC2315 $(find . -name '*.bats' -size +0)
}

@test "the words are spelled" {
	codespell --ignore-words tests/house/words $(tree '*.c' '*.h' '*.md' '*.scd' '*.bats' '*meson.build')
}

@test "no text names a machine's paths" {
	# Written so that this file does not match itself.
	none grep -nIE '/(wor[k]|roo[t])/[a-z]|/tmp/[b]-|/hom[e]/[a-z]' $(tree '*')
}

@test "no trailing white space, every text ends with a newline" {
	none grep -nE '[[:blank:]]+$' $(tree '*.c' '*.h' '*.md' '*.scd' '*.bats' '*meson.build')
	# Which one is asked only when there is one.
	[ -z "$(tail -q -c 1 $(tree '*.c' '*.h' '*.md' '*.scd' '*.bats' '*meson.build'))" ] ||
		for file in $(tree '*.c' '*.h' '*.md' '*.scd' '*.bats' '*meson.build'); do
			[ -z "$(tail -c 1 "$file")" ] || { echo "$file" && false; }
		done
}
