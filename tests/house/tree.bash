# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tree tests share. SOURCE_DIR and BUILD_DIR come from meson.

setup() {
	cd "${SOURCE_DIR:?set by meson test}" || return
}

# tree PATTERN...: the files of the tree, as git counts them; without git (a tarball) all
# but build directories. Never empty: a test over nothing would pass for the wrong reason.
tree() {
	local files
	if git rev-parse --git-dir >/dev/null 2>&1; then
		# Files deleted in the work tree are still listed: leave them out.
		files=$(git ls-files --cached --others --exclude-standard -- "$@" |
			while read -r file; do [ -e "$file" ] && echo "$file"; done)
	else
		files=$(find . -path './build*' -prune -o -type f -printf '%P\n' |
			while read -r file; do
				for pattern; do
					# shellcheck disable=SC2053 # a pattern
					[[ $file == $pattern ]] && echo "$file" && break
				done
			done)
	fi
	[ -n "$files" ] || { echo "no file matches $*" >&2 && return 1; }
	echo "$files"
}

# The scripts of the tree, by their first line.
scripts() {
	tree '*' | while read -r file; do
		case $file in
		tests/fuzz/*) continue ;;
		esac
		IFS= read -r -n 64 first <"$file" || true
		if [[ $first =~ ^#!.*(/| )(sh|bash|bats)( |$) ]]; then
			echo "$file"
		fi
	done
}

# none COMMAND...: the command must find nothing; what it finds is the explanation. 1 is how
# grep says so; more is a command that could not look.
none() {
	local found
	found=$("$@") || [ $? = 1 ] || { echo "failed: $*" && return 2; }
	[ -z "$found" ] || { echo "$found" && return 1; }
}
