#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Reports of a recording while it is made.

bats_require_minimum_version 1.5.0
load common
load terminal

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$PMREC" -q -e cpu-clock -F 499 -o split.json -- "$PROGRAMS/split" 0.5
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	truth=$SOURCE_DIR/tests/cli/fixtures/truth.json
	split=$BATS_FILE_TMPDIR/split.json
	followed=
}

teardown() {
	close_terminal
	[ -z "$followed" ] || kill -KILL "$followed" 2>/dev/null || :
}

# follow OPTION...: in the background, into `out` and `err`, where nothing of an earlier one is left.
follow() {
	rm -f out err
	"$PMREPORT" --interval 0.1 --follow "$@" >out 2>err 3>&- 4>&- &
	followed=$!
}

# await TEXT [FILE]: until it is there.
await() {
	for _ in {1..1200}; do
		grep -qF -- "$1" "${2-out}" 2>/dev/null && return
		sleep 0.1
	done
	cat out err
	return 1
}

# sleeps PID: waits until that process, which is pmreport by then, has nothing to do.
sleeps() {
	local asleep=0
	for _ in {1..2400}; do
		if [ "/proc/$1/exe" -ef "$PMREPORT" ] && grep -q '^State:	S' "/proc/$1/status"; then
			asleep=$((asleep + 1))
		else
			asleep=0
		fi
		[ "$asleep" -lt 3 ] || return 0
		sleep 0.05
	done
	return 1
}

# ended [STATUS]: by itself, with it.
ended() {
	local status=0
	wait "$followed" || status=$?
	followed=
	[ "$status" -eq "${1-0}" ]
}

# ends_as RECORDING: the last report, in `out`, is that of the whole file.
ends_as() {
	(cd "$(dirname "$1")" && "$PMREPORT" "$(basename "$1")") >whole 2>/dev/null
	tail -n "$(wc -l <whole)" out | diff whole -
}

@test "a file that grows, to its end: the last report is that of the whole file" {
	half=$(($(wc -l <"$truth") / 2))
	head -n 1 "$truth" >grows.json
	follow grows.json
	await '0 samples of'
	run ! grep -q 'no samples:' out
	# Within a line, and at its end.
	head -n "$half" "$truth" | tail -n +2 | head -c -20 >>grows.json
	sleep 0.3
	head -n "$half" "$truth" | tail -c 20 >>grows.json
	for _ in {1..1200}; do
		[ "$(grep -c 'samples of' out)" -lt 2 ] || break
		sleep 0.1
	done
	tail -n +"$((half + 1))" "$truth" >>grows.json
	ended
	ends_as grows.json
	[ "$(grep -c 'samples of' out)" -ge 2 ]
	[ ! -s err ]
	# While it grows it is neither cut nor short of samples.
	run ! grep -q 'cut short\|the recorder wrote' out
}

@test "a pipe, as the recorder writes it" {
	"$PMREC" -q -e cpu-clock -F 499 -o - -- "$PROGRAMS/split" 0.5 2>/dev/null |
		tee whole.json | "$PMREPORT" --interval 0.1 --follow - >out
	ends_as - <whole.json
	# What is sampled instead of cycles is told with the first line, before there are samples.
	"$PMREC" -q -o instead.json -- sleep 0.3
	mkfifo slow.json
	follow slow.json
	exec 4>slow.json
	sed '/"type":"sample"/Q' instead.json >&4
	await '0 samples of'
	sed -n '/"type":"sample"/,$p' instead.json >&4
	exec 4>&-
	ended
	run ! grep -q 'was used instead' out
}

# feed OPTION...: all of a recording but what its recorder writes at the end, and when the report
# has the text $1, that.
feed() {
	local text=$1
	shift
	mkfifo split.json
	follow "$@" split.json
	exec 4>split.json
	sed '/"type":"symbol"/Q' "$split" >&4
	await "$text"
	sed -n '/"type":"symbol"/,$p' "$split" >&4
	exec 4>&-
	ended
	[ ! -s err ]
	ends_as "$split"
}

@test "names are there before the recorder gives them" {
	feed sixty
}

@test "names wait for the recorder with --no-resymbolize" {
	feed '[unknown]' --no-resymbolize
	[ "$(grep -n 'unknown.*split' out | tail -n 1 | cut -d: -f1)" -lt \
		"$(grep -n sixty out | head -n 1 | cut -d: -f1)" ]
}

@test "what nobody names is told at the end" {
	grep -v '"type":"symbol"' "$split" | sed 's/"build_id":"[0-9a-f]*"/"build_id":"00"/' >grows.json
	follow grows.json
	ended
	grep -q 'no names for .*% of the samples' err
	grep -q 'split  build-id 00  (another build stands at its path)' err
}

@test "a compressed recording, before it is there" {
	follow s.json.zst
	"$PMREC" -q -e cpu-clock -F 499 -o s.json.zst -- "$PROGRAMS/split" 1
	ended
	ends_as s.json.zst
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
		ends_as grows.json
	done
}

@test "what has not run yet is no error while it may still come" {
	head -n 1 "$truth" >grows.json
	follow --comm nobody grows.json
	await 'nobody'
	tail -n +2 "$truth" >>grows.json
	ended 2
	grep -q nobody err
}

@test "a line that is wrong is an error with its number" {
	head -n 5 "$truth" >grows.json
	follow grows.json
	await 'samples of'
	echo '{"type":"sample"}' >>grows.json
	ended 1
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

one_report_in_seven_lines() {
	screen >seen
	[ "$(grep -c '^[1-9][0-9]* samples of' seen)" -eq 1 ] && [ "$(grep -c . seen)" -le 7 ]
}

@test "on a terminal the report stays in its place, and has its size" {
	half=$(($(wc -l <"$truth") / 2))
	head -n "$half" "$truth" >grows.json
	open_terminal
	run_in_terminal 80x12 "'$PMREPORT' --limit 0 --interval 0.1 --follow grows.json"
	shows '^ *self'
	[ "$(grep -c '^[1-9][0-9]* samples of cpu-clock' seen)" -eq 1 ]
	# Names are at the end, so that there is no reason yet to miss them.
	run ! grep -q stripped seen
	# What is too wide or too high is cut, and the rest is not pushed out.
	t resize-window -x 30 -y 8
	tail -n +"$((half + 1))" "$truth" | head -n -1 >>grows.json
	shows '^100 samples of cpu-clock'
	# It is drawn from the top to the bottom.
	until_true one_report_in_seven_lines
	# The last one is whole and as wide as the terminal is now; what ended it is told, too.
	t resize-window -x 120 -y 100
	: >grows.json
	shows 'status=0'
	[ "$(grep -c '^100 samples of cpu-clock' seen)" -eq 1 ]
	grep -q '^! the file is cut short: .* or records still' seen
	grep -q 'the file has become shorter' seen
	grep -q '^hottest path' seen
	diff <(sed 1d before) <(sed 1d after)
}

@test "on a terminal a line keeps its last column" {
	local width=69 full=
	head -n -1 "$truth" >grows.json
	until [ -n "$full" ] || [ "$width" -gt 120 ]; do
		width=$((width + 1))
		full=$("$PMREPORT" --width "$width" --limit 0 grows.json 2>/dev/null |
			grep -E -m1 "^.{$width}\$") || true
	done
	[ -n "$full" ]
	open_terminal
	run_in_terminal "${width}x100" "'$PMREPORT' --limit 0 --interval 0.1 --follow grows.json"
	shows '^ *self'
	grep -qxF -- "$full" seen
	: >grows.json
	shows 'status=0'
}

@test "Ctrl-C on a terminal, before there is a recording and while it grows" {
	open_terminal
	mkfifo pipe
	run_in_terminal 80x24 \
		"trap : INT; sh -c 'echo \$\$ begins; exec \"$PMREPORT\" --follow pipe'"
	shows begins
	# Before it is in its place the key would be for the shell.
	sleeps "$(sed -n 's/ begins//p' seen)"
	press C-c
	shows 'status=130'
	head -n -1 "$truth" >grows.json
	t respawn-pane -k "trap : INT; '$PMREPORT' --follow grows.json; echo status=\$?; exec sleep 600"
	shows 'samples of'
	press C-c
	shows 'status=0'
	grep -q 'is cut short' seen
}
