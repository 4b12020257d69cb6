#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pmstat as its users meet it: exit status, streams, files, repetitions, wrong words. What the
# numbers are worth is the business of pmstat-counts.bats and pmstat-functions.bats.

load common

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# measure STATUS ARGUMENT...: runs pmstat, keeping `out` and `err`, and expects this status.
measure() {
	local expected=$1 actual=0
	shift
	"$PMSTAT" "$@" >out 2>err || actual=$?
	[ "$actual" = "$expected" ] || {
		echo "status $actual instead of $expected: pmstat $*"
		cat err
		return 1
	}
}

# json FILE EXPRESSION...: all of them are true of the document `d`.
json() {
	python3 - "$@" <<-'END'
		import json, sys
		with open(sys.argv[1]) as file:
		    d = json.load(file)
		runs = d["runs"]
		wall = [e["name"] for e in d["events"]].index("wall-time")
		for e in sys.argv[2:]:
		    if not eval(e):
		        sys.exit("not so: " + e + "\n" + json.dumps(d)[:3000])
	END
}

# wrong TEXT ARGUMENT...: is refused with one clear line, before anything runs.
wrong() {
	local text=$1
	shift
	run --separate-stderr "$PMSTAT" "$@"
	[ "$status" = 125 ]
	[[ ${stderr_lines[0]} == "pmstat: "*"$text"* ]] || {
		echo "$stderr"
		return 1
	}
	[ "${#stderr_lines[@]}" -le 2 ]
	[ ! -e ran ]
}

@test "the exit status is the command's" {
	measure 0 -- true
	measure 3 -- sh -c 'exit 3'
	measure 137 -- sh -c 'kill -9 $$'
	measure 134 -- sh -c 'kill -ABRT $$'
	measure 127 -- nosuchcommand-at-all
	grep -q 'no such command' err
	measure 126 -- /
	printf 'MZ\0\0' >foreign
	chmod +x foreign
	measure 126 -- ./foreign
	grep -q 'not a program' err
}

@test "the command keeps its streams" {
	echo in | "$PMSTAT" -e task-clock -- sh -c 'cat; echo error >&2' >out 2>err
	[ "$(cat out)" = in ]
	grep -qx error err
	grep -q task-clock err
	measure 0 -o file -e task-clock -- sh -c 'echo out; echo error >&2'
	[ "$(cat out)" = out ]
	[ "$(cat err)" = error ]
	grep -q task-clock file
	# Standard output for the result: what the command prints there moves.
	measure 0 -o - --json -e task-clock -- sh -c 'echo out; echo error >&2'
	json out 'd["format"] == "pmstat"' 'len(runs) == 1'
	[ "$(cat err)" = "$(printf 'out\nerror')" ]
}

@test "signals of the command are as they were, in each run" {
	# shellcheck disable=SC2016
	measure 0 -q -r 2 -o /dev/null -- sh -c 'grep -E "SigBlk|SigIgn" /proc/self/status'
	grep -E "SigBlk|SigIgn" /proc/self/status >expected
	cat expected expected | diff - out
}

@test "-o FILE is complete or as it was" {
	measure 0 -o file --json -- true
	[ "$(stat -c %a file)" = 600 ]
	cp file before
	measure 127 -o file --json -- nosuchcommand-at-all
	measure 125 -o file --json -e nosuchevent -- touch ran
	measure 125 -o file --fn no_such_function_at_all -- touch ran
	cmp file before
	measure 125 -o no/such/folder -- touch ran
	[ ! -e ran ]
	[ "$(ls)" = "$(printf 'before\nerr\nfile\nout')" ]
	measure 125 -o /dev/full -- true
	grep -q 'No space left' err
}

@test "a result that cannot be written is no success" {
	local status=0
	for form in -v --json -x,; do
		status=0
		"$PMSTAT" -e task-clock $form -- true 2>/dev/full || status=$?
		[ "$status" = 125 ]
		status=0
		"$PMSTAT" -e task-clock $form -o - -- true >/dev/full 2>err || status=$?
		[ "$status" = 125 ]
		grep -q 'standard output: .*No space left' err
	done
	for word in --help --version; do
		status=0
		"$PMSTAT" "$word" >/dev/full 2>err || status=$?
		[ "$status" = 125 ]
	done
}

@test "a standard stream that is closed stays so, and is no file of ours" {
	# shellcheck disable=SC2016
	local is_closed='[ ! -e /proc/$$/fd/'
	"$PMSTAT" -v -o file --json -- sh -c "${is_closed}2 ]" 2>&-
	json file 'len(runs) == 1'
	"$PMSTAT" -o file --json -- sh -c "${is_closed}1 ]" >&-
	"$PMSTAT" -o file --json -- sh -c "${is_closed}0 ]" <&-
	json file 'len(runs) == 1'
}

@test "-x has one line of names and a line for each number" {
	measure 0 -x , -o csv -e task-clock,page-faults -- true
	python3 - <<-'END'
		import csv
		rows = list(csv.DictReader(open("csv")))
		assert {r["event"] for r in rows} >= {"task-clock", "page-faults"}, rows
		assert all(None not in r for r in rows), rows
	END
	LC_ALL=de_DE.UTF-8 measure 0 -x '\t' -o tsv -e task-clock -- true
	head -1 tsv | grep -q "$(printf '\t')"
	wrong 'exclude each other' -x , --json -- touch ran
	wrong 'cannot separate' -x '"' -- touch ran
}

@test "-r keeps every run, and the first that fails is the last" {
	measure 0 -r 3 --json -o file -- true
	json file 'len(runs) == 3' 'all(r["exit_code"] == 0 for r in runs)'
	# shellcheck disable=SC2016
	measure 7 -r 5 --json -o file -- sh -c 'echo x >>count; [ "$(wc -l <count)" -lt 2 ] || exit 7'
	json file '[r["exit_code"] for r in runs] == [0, 7]'
	rm count
	# shellcheck disable=SC2016
	measure 7 -r 4 --keep-going --json -o file -- \
		sh -c 'echo x >>count; [ "$(wc -l <count)" != 2 ] || exit 7'
	json file '[r["exit_code"] for r in runs] == [0, 7, 0, 0]'
	measure 0 -w 2 -r 2 --json -o file -- sh -c 'echo run'
	[ "$(wc -l <out)" = 4 ]
	json file 'len(runs) == 2' 'd["warmups"] == 2'
	measure 3 -q -w 2 -- sh -c 'exit 3'
	grep -q 'to warm up failed (exit status 3)' err
}

@test "a command of one thread takes at least as long as its CPU time" {
	measure 0 -r 30 --json -o file -e task-clock -- true
	json file 'all(r["counts"][wall]["value"] >= r["counts"][0]["value"] for r in runs)'
}

@test "--time runs again until it is over" {
	measure 0 --time 2s --json -o file -- sleep 0.05
	json file 'len(runs) >= 2' \
		'sum(r["counts"][wall]["value"] for r in runs[:-1]) <= 2e9'
	measure 0 --time 100s -r 2 --json -o file -- true
	json file 'len(runs) == 2'
}

@test "ab runs both in turns, in environments of other sizes" {
	# shellcheck disable=SC2016
	measure 0 ab -r 4 --json -o file -- sh -c 'echo "A ${#PMSTAT_PADDING}"' ::: \
		sh -c 'echo "B ${#PMSTAT_PADDING}"'
	[ "$(cut -d' ' -f1 out | tr -d '\n')" = ABBAABBA ]
	[ "$(cut -d' ' -f2 out | sort -u | wc -l)" -gt 1 ]
	json file '[r["variant"] for r in runs] == [0, 1, 1, 0, 0, 1, 1, 0]' \
		'len(d["subjects"]) == 2' 'any(s["name"] == "PMSTAT_PADDING" for s in d["settings"])'
	measure 0 ab -r 2 -e task-clock -- true ::: true
	grep -q 'too few runs' err
	measure 5 ab -r 2 -- true ::: sh -c 'exit 5'
	measure 127 ab -- touch ran ::: nosuchcommand-at-all
	[ ! -e ran ]
	wrong 'two commands' ab -- touch ran
	wrong 'two commands' ab -- touch ran :::
	wrong 'two commands' ab -- ::: touch ran
	wrong 'one :::' ab -- touch ran ::: true ::: true
	wrong 'not what runs already' ab -p $$ -- true ::: true
}

@test "Ctrl-C ends the run and prints what there is" {
	"$PMSTAT" -r 5 --json -o file -- sh -c 'echo up; exec sleep 60' >out 2>err 3>&- &
	local pmstat=$! status=0
	for _ in {1..1200}; do
		grep -q up out && break
		sleep 0.1
	done
	kill -TERM "$pmstat"
	wait "$pmstat" || status=$?
	[ "$status" = 143 ]
	json file 'len(runs) == 1' 'runs[0]["stopped"]' 'runs[0]["signal"] == 15'
}

@test "Ctrl-C on a terminal reaches the command once" {
	run python3 "$SOURCE_DIR/tests/cli/tty-interrupt.py" up "$PMSTAT" -r 5 --json -o file -- \
		sh -c 'yes "\"type\":\"sample\"" | head -n 101 >up; exec sleep 60'
	[ "$status" = 130 ]
	json file 'len(runs) == 1' 'runs[0]["stopped"]' 'runs[0]["signal"] == 2'
}

@test "the second Ctrl-C kills" {
	"$PMSTAT" --json -o file -- sh -c 'trap "echo no" TERM; echo up
		while :; do sleep 0.1; done' >out 2>err 3>&- &
	local pmstat=$! status=0
	for _ in {1..1200}; do
		grep -q up out && break
		sleep 0.1
	done
	kill -TERM "$pmstat"
	for _ in {1..1200}; do
		grep -q no out && break
		sleep 0.1
	done
	kill -TERM "$pmstat"
	wait "$pmstat" || status=$?
	[ "$status" = 137 ]
	json file 'runs[0]["stopped"]' 'runs[0]["signal"] == 9'
}

@test "a command that has stopped itself ends, too" {
	# shellcheck disable=SC2016
	"$PMSTAT" --json -o file -- sh -c 'echo up; kill -STOP $$; sleep 60' >out 2>err 3>&- &
	local pmstat=$! child state=
	for _ in {1..1200}; do
		child=$(cat "/proc/$pmstat/task/$pmstat/children" 2>/dev/null) || child=
		[ -z "$child" ] || read -r _ _ state _ <"/proc/${child% }/stat"
		[ "$state" != T ] || break
		sleep 0.1
	done
	kill -TERM "$pmstat"
	for _ in {1..1200}; do
		[ -e file ] && break
		sleep 0.1
	done
	# Nobody shall wait for ever where it did not end.
	kill -KILL "${child% }" 2>/dev/null || true
	wait "$pmstat" || true
	json file 'runs[0]["signal"] == 15'
}

@test "--timeout ends each run, and that is no failure" {
	measure 0 --timeout 100ms -r 2 --json -o file -- sleep 60
	json file 'len(runs) == 2' 'all(r["stopped"] for r in runs)'
	# A bare number counts milliseconds, as perf's does.
	measure 0 --timeout 100 --json -o file -- sleep 60
	json file 'runs[0]["stopped"]'
	measure 4 --timeout 60s --json -o file -- sh -c 'exit 4'
	json file 'not runs[0]["stopped"]'
}

@test "-I prints while it runs" {
	measure 0 -I 50 -x , -o csv -e task-clock -- sleep 0.3
	grep -q '^interval,' csv
	measure 0 -I 50 --json -o file -e task-clock -- sleep 1
	json file 'len(runs[0]["intervals"]) >= 2'
}

@test "-I without a command ends with its reader" {
	timeout -k 1 120 "$PMSTAT" -a -I 20 -x, -o - -e cpu-clock 2>err 3>&- \
		> >(head -1 >first) || status=$?
	[ "${status-0}" = 141 ]
	grep -q '^what,' first
}

@test "where the delay was longer, nothing is known" {
	measure 0 -D 60000 --json -o file -e task-clock,page-faults -- true
	json file 'all(c["status"] == "not_counted" for c in runs[0]["counts"][:wall + 1])'
	measure 0 -D 60000 -e task-clock -- true
	grep -q 'not counted *task-clock' err
	grep -q 'before the delay did' err
}

@test "running processes are counted" {
	sleep 60 3>&- &
	local pid=$!
	measure 0 -p "$pid" --timeout 100ms --json -o file -e task-clock
	json file "d['target'] == '-p $pid'"
	measure 0 -p "$pid" --json -o file -e task-clock -- sleep 0.1
	kill "$pid"
	measure 125 -p 4194304
	grep -q 'no process' err
}

@test "wrong use is told in one line" {
	wrong 'no command to count'
	wrong 'no command to count' --
	wrong 'did you mean --repeat?' --repaet 3 -- touch ran
	wrong 'unknown option -Z' -Z -- touch ran
	wrong 'needs a value' -e
	wrong 'takes no value' --live=3 -- touch ran
	wrong 'at least 1' -r 0 -- touch ran
	wrong 'a number of runs' -w x -- touch ran
	wrong 'expected a time' --time soon -- touch ran
	wrong 'expected a time' --timeout soon -- touch ran
	wrong 'milliseconds' -I 0 -- touch ran
	wrong 'milliseconds' -D -1 -- touch ran
	wrong 'thread or cpu' --per core -- touch ran
	wrong 'auto, uprobe, ptrace or callgrind' --engine bpf -- touch ran
	wrong 'go with --fn' --live -- touch ran
	wrong 'go with --fn' --engine ptrace -- touch ran
	wrong '-I and -D do not go with' -I 100 --fn main -- touch ran
	wrong 'of a command' --fn main -a
	wrong 'exclude each other' -a -p 1
	wrong 'run a command again' -r 3 -p 1
	wrong '-u is for' --user root -p 1
	wrong 'near names' -e page-fautls -- touch ran
	wrong 'auto, always or never' --color red -- touch ran
}

@test "simulated events and those of the kernel do not mix" {
	wrong 'is simulated: only --engine callgrind' -e sim.Ir -- touch ran
	wrong 'counts sim.* alone' --engine callgrind -e task-clock -- touch ran
	wrong 'counts sim.* alone' --engine callgrind -e sim.Ir,task-clock -- touch ran
	wrong 'a command that it starts' --engine callgrind -p 1
}

@test "perf's users find their words" {
	measure 0 -e cycles:u -- true
	measure 0 true
	measure 0 -a -e task-clock sleep 0.1
	measure 0 -i -e task-clock,page-faults:u -- true
	# Options behind the command are the command's.
	measure 0 -e task-clock echo -r 5 --json
	[ "$(cat out)" = '-r 5 --json' ]
}

@test "ab says in the text, in --json and in -x which number decides, and how" {
	measure 0 ab -r 7 --json -o ab.json -- true ::: true
	python3 - <<-'END'
		import json
		d = json.load(open('ab.json'))
		rows = d['differences']
		assert [row['event'] for row in rows] == list(range(len(d['events'])))
		decides = [d['events'][row['event']]['name'] for row in rows if row['decides']]
		assert decides in (['task-clock'], ['cycles']), decides
		of = next(row for row in rows if row['decides'])
		assert of['runs_a'] == of['runs_b'] == 7 and of['median_a'] > 0
		assert of['low'] <= of['difference'] <= of['high']
		assert of['change_low'] <= of['change'] <= of['change_high']
		assert 0 <= of['p'] <= 1 and of['p'] == of['p_corrected']
		assert of['verdict'] in ('more', 'less', 'undecided'), of
		assert all(row['p'] == row['p_corrected'] for row in rows)
	END
	measure 0 ab -r 7 -x, -o ab.csv -- true ::: true
	python3 - <<-'END'
		import csv
		rows = [row for row in csv.DictReader(open('ab.csv')) if row['what'] == 'difference']
		of = [row for row in rows if row['decides'] == '1']
		assert len(of) == 1 and of[0]['event'] in ('task-clock', 'cycles')
		assert float(of[0]['low']) <= float(of[0]['value']) <= float(of[0]['high'])
		assert float(of[0]['change_low']) <= float(of[0]['change_high'])
		assert 0 <= float(of[0]['p']) <= 1 and of[0]['verdict']
	END
	measure 0 ab -r 7 -o ab.txt -- true ::: true
	grep -Eq '^(task-clock|cycles) decides: ' ab.txt
	grep -q 'secondary: not corrected' <(tr '\n' ' ' <ab.txt | tr -s ' ')
	# Requested events decide, and are corrected for their number.
	measure 0 ab -r 7 -e task-clock,page-faults --json -o ab.json -- true ::: true
	python3 - <<-'END'
		import json
		d = json.load(open('ab.json'))
		names = [d['events'][row['event']]['name'] for row in d['differences'] if row['decides']]
		assert names == ['task-clock', 'page-faults'], names
	END
}

@test "a program called ab is no comparison" {
	printf '#!/bin/sh\necho "ab $*"\n' >ab
	chmod +x ab
	PATH=.:$PATH measure 0 -- ab -n 5
	[ "$(cat out)" = 'ab -n 5' ]
}

@test "intervals that nobody reads any more end the counting" {
	# Without SIGPIPE only write(2) says that the reader has gone.
	(
		trap '' PIPE
		status=0
		timeout -k 5 60 "$PMSTAT" -I 20 -o - -- sleep 1000 2>err || status=$?
		echo "$status" >status
	) | head -n 1 >first
	grep -q 'seconds' first
	[ "$(cat status)" = 125 ]
	grep -q 'Broken pipe' err
}
