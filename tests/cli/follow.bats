#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Reports of a recording while it is made.

bats_require_minimum_version 1.5.0
load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	truth=$SOURCE_DIR/tests/cli/fixtures/truth.json
	followed=
}

teardown() {
	[ -z "$followed" ] || kill -KILL "$followed" 2>/dev/null || :
}

# follow OPTION...: in the background, into `out` and `err`.
follow() {
	"$PMREPORT" --interval 0.1 --follow "$@" >out 2>err 3>&- &
	followed=$!
}

# await TEXT [FILE]: until it is there.
await() {
	for _ in {1..300}; do
		grep -qF -- "$1" "${2-out}" 2>/dev/null && return
		sleep 0.1
	done
	cat out err
	return 1
}

ended() {
	wait "$followed"
	followed=
}

# The last of the reports, which empty lines and a heading separate.
last() {
	tac out | sed "/^$1/q" | tac
}

@test "a file that grows, to its end: the last report is that of the whole file" {
	lines=$(wc -l <"$truth")
	head -n 1 "$truth" >grows.json
	follow grows.json
	await '0 samples of'
	# Within a line, and at its end.
	head -n $((lines / 2)) "$truth" | tail -n +2 | head -c -20 >>grows.json
	sleep 0.3
	head -n $((lines / 2)) "$truth" | tail -c 20 >>grows.json
	for _ in {1..300}; do
		[ "$(grep -c 'samples of' out)" -lt 2 ] || break
		sleep 0.1
	done
	tail -n +$((lines / 2 + 1)) "$truth" >>grows.json
	ended
	"$PMREPORT" grows.json >whole
	tail -n "$(wc -l <whole)" out | diff whole -
	[ "$(grep -c 'samples of' out)" -ge 2 ]
	[ ! -s err ]
	# While it grows it is neither cut nor short of samples.
	! grep -q 'cut short\|the recorder wrote' out
}

@test "a pipe, as the recorder writes it" {
	"$PMREC" -q -e cpu-clock -F 499 -o - -- "$PROGRAMS/split" 1.5 2>/dev/null |
		tee whole.json | "$PMREPORT" --interval 0.2 --follow - >out
	[ "$(grep -c 'samples of cpu-clock' out)" -ge 3 ]
	"$PMREPORT" - <whole.json >whole
	tail -n "$(wc -l <whole)" out | diff whole -
	# Names are there before the recorder gives them, at the end.
	before=$(head -n -"$(wc -l <whole)" out | tac | sed '/samples of/q')
	[[ $before == *sixty* ]]
}

@test "names wait for the recorder with --no-resymbolize" {
	"$PMREC" -q -e cpu-clock -F 499 -o - -- "$PROGRAMS/split" 1 2>/dev/null |
		"$PMREPORT" --no-resymbolize --interval 0.2 --follow - >out
	[ "$(grep -n 'unknown.*split' out | tail -n 1 | cut -d: -f1)" -lt \
		"$(grep -n sixty out | head -n 1 | cut -d: -f1)" ]
}

@test "a compressed recording, before it is there" {
	follow s.json.zst
	"$PMREC" -q -e cpu-clock -F 499 -o s.json.zst -- "$PROGRAMS/split" 1
	ended
	"$PMREPORT" s.json.zst >whole
	tail -n "$(wc -l <whole)" out | diff whole -
}

@test "a file that another one replaces, or that is cut, ends the report" {
	head -n -5 "$truth" >grows.json
	follow grows.json
	await 'samples of'
	cp "$truth" other.json
	mv other.json grows.json
	ended
	grep -q 'grows.json: another file stands there now' err
	grep -q 'is cut short' err

	head -n -5 "$truth" >grows.json
	follow grows.json
	await 'samples of'
	: >grows.json
	ended
	grep -q 'grows.json: the file has become shorter' err
}

@test "Ctrl-C ends it with a report of what is there" {
	head -n -5 "$truth" >grows.json
	for signal in INT TERM; do
		follow grows.json
		await 'samples of'
		kill -"$signal" "$followed"
		ended
		grep -q 'is cut short' err
		"$PMREPORT" grows.json >whole 2>/dev/null
		tail -n "$(wc -l <whole)" out | diff whole -
	done
}

@test "what has not run yet is no error while it may still come" {
	head -n 1 "$truth" >grows.json
	follow --comm nobody grows.json
	await 'nobody'
	tail -n +2 "$truth" >>grows.json
	! ended
	grep -q nobody err
}

@test "a line that is wrong is an error with its number" {
	head -n 5 "$truth" >grows.json
	follow grows.json
	await 'samples of'
	echo '{"type":"sample"}' >>grows.json
	! ended
	grep -q 'grows.json:6: sample' err
}

@test "options that do not go with it" {
	for wrong in "--follow --json" "--follow -o x" "--follow --time 0-1" "--follow --folded" \
		"--follow --latency" "--interval 1" "--follow --interval 0" "--follow --tui"; do
		# shellcheck disable=SC2086 # words
		run -2 --separate-stderr "$PMREPORT" $wrong "$truth"
		[[ $stderr == *--follow* || $stderr == *interval* ]]
		[ -z "$output" ]
	done
}
