#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The shells' completions know the options of --help, and the shells can read them.

load tree

here=$BUILD_DIR/docs/completions

setup() {
	cd "${SOURCE_DIR:?set by meson test}" || return
	[ -e "$here/pmrec" ] || skip 'completions are not built: this machine cannot run the programs'
}

# The options that a --help text lists: those that begin a line, with their other names.
help_options() {
	"$BUILD_DIR/src/$1/$1" --help | grep -E '^ +-' | sed 's/  *$//; s/^ *//; s/   *.*//' |
		grep -oE '(^|[ ,|])--?[A-Za-z0-9][A-Za-z0-9-]*' | tr -d ' ,|' | sort -u
}

# same NAME SHELL: the options on stdin are those of --help, no more and no fewer.
same() {
	sort -u >"$BATS_TEST_TMPDIR/completed"
	help_options "$1" >"$BATS_TEST_TMPDIR/help"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/help")" -gt 10 ]
	echo "$1, $2: - only in --help, + only in the completion"
	diff -u "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/completed"
}

# What bash offers for a line, of which the last word is being typed. `complete` calls the
# function with the program's name, the word and the one before it.
offered() {
	PATH=$BUILD_DIR/src/pmrec:$BUILD_DIR/src/pmreport:$BUILD_DIR/src/pmstat:$BUILD_DIR/src/pmdiff:$PATH \
		bash --norc -c '
		source "$1"
		COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=9
		IFS=" " read -r -a COMP_WORDS <<<"$2"
		case $2 in *" ") COMP_WORDS+=("") ;; esac
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		function_name=$(complete -p "${COMP_WORDS[0]}" | sed "s/.* -F //; s/ .*//")
		"$function_name" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" \
			"${COMP_WORDS[COMP_CWORD - 1]}"
		printf "%s\n" "${COMPREPLY[@]}"
		' bash "$here/${1%% *}" "$1"
}

@test "bash completes the options of --help" {
	for name in pmrec pmreport pmstat pmdiff; do
		bash -n "$here/$name"
		shellcheck --shell=bash "$here/$name"
		offered "$name -" | same "$name" bash
	done
}

@test "zsh completes the options of --help" {
	for name in pmrec pmreport pmstat pmdiff; do
		# {-e+,--event=} and [--json[...
		sed '1,/^_arguments/d' "$here/_$name" | sed 's/\[.*//; s/^[^{]*({*[^)]*)//' |
			grep -oE -- "--?[A-Za-z][A-Za-z0-9-]*" |
			same "$name" zsh
	done
	command -v zsh >/dev/null || skip 'zsh is not installed'
	for name in pmrec pmreport pmstat pmdiff; do
		zsh -n "$here/_$name"
	done
}

@test "fish completes the options of --help" {
	for name in pmrec pmreport pmstat pmdiff; do
		grep "^complete -c $name " "$here/$name.fish" |
			sed "s/ -d .*//; s/ -a '[^']*'//; s/ -n '[^']*'//" |
			grep -oE -- ' -[sl] [A-Za-z][A-Za-z0-9-]*' |
			sed 's/ -s /-/; s/ -l /--/' | same "$name" fish
	done
	command -v fish >/dev/null || skip 'fish is not installed'
	for name in pmrec pmreport pmstat pmdiff; do
		fish -n "$here/$name.fish"
	done
}

@test "fish offers what the completion says" {
	command -v fish >/dev/null || skip 'fish is not installed'
	for word in '--off-cpu' '--call-graph'; do
		HOME=$BATS_TEST_TMPDIR fish --no-config -c "source $here/pmrec.fish
			complete -C 'pmrec --'" | grep -q -- "^$word"
	done
	HOME=$BATS_TEST_TMPDIR fish --no-config -c "source $here/pmreport.fish
		complete -C 'pmreport --color '" | grep -q '^never'
}

@test "bash completes events, values, and what is typed in part" {
	run offered 'pmrec -e page-f'
	[ "$output" = page-faults ]
	run offered 'pmrec -e cpu-clock,page-f'
	[ "$output" = cpu-clock,page-faults ]
	run offered 'pmrec --event=task-c'
	[ "$output" = task-clock ]
	run offered 'pmrec -e upr'
	[ "$output" = uprobe: ]
	run offered 'pmrec --call-graph l'
	[ "$output" = lbr ]
	run offered 'pmrec --list tr'
	[ "$output" = tracepoint ]
	run offered 'pmreport --by mod'
	[ "$output" = module ]
	run offered 'pmreport --no-i'
	[ "$output" = --no-inline ]
}

@test "bash completes files, folders, revisions and modes" {
	run offered 'pmreport --flamegraph tests/house/completions.b'
	[ "$output" = tests/house/completions.bats ]
	run offered 'pmdiff --json=tests/house/completions.b'
	[ "$output" = tests/house/completions.bats ]
	run offered 'pmdiff --history git-n'
	[ "$output" = git-notes ]
	run offered 'pmdiff bis'
	[ "$output" = bisect ]
	run offered 'pmreport --by module,thr'
	[ "$output" = module,thread ]
	run offered 'pmstat -e sim.I1'
	[ "$output" = sim.I1mr ]
	run offered 'pmstat --time '
	[ -z "$output" ]
	run offered 'pmreport --folded=per'
	[ "$output" = period ]
	run offered 'pmreport --folded per'
	[ -z "$output" ]
}

# The words that bash offers after a line, and those in the message about a wrong one.
words_agree() {
	offered "$1 " | sort >"$BATS_TEST_TMPDIR/offered"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/offered")" -gt 1 ]
	run "$BUILD_DIR/src/${1%% *}/"$1 no-such-word
	[ "$status" -ne 0 ]
	echo "$1: $output"
	sed -E "1!d; s/.*$2 //; s/ or |, /\n/g" <<<"$output" | sort |
		diff - "$BATS_TEST_TMPDIR/offered"
}

@test "the words that are completed are those that the programs know" {
	words_agree 'pmreport --format' 'there are'
	words_agree 'pmreport --by' 'it is'
	words_agree 'pmdiff import --format' 'one of'
	words_agree 'pmdiff run --engine' expected
	words_agree 'pmstat --engine' expected
	words_agree 'pmstat --per' expected
	words_agree 'pmrec --engine' expected
	words_agree 'pmrec --unwinder' expected
}

@test "bash completes the command and its arguments, not our options" {
	run offered 'pmrec -q -e cs sleep --'
	[ -z "$output" ]
	run offered 'pmrec -q /usr/bin/en'
	[[ "$output" == */usr/bin/env* ]]
	run offered 'pmrec -- ls /usr/bin/en'
	[[ "$output" == */usr/bin/env* ]]
	run offered 'pmrec unsha'
	[[ "$output" == *unshare* ]]
}
