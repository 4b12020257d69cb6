#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pmdiff as its users meet it: what it is given, what it says, its documents and exit status.
# How rows are judged is the business of test-compare; commits are that of pmdiff-run.bats.

load common

# The documents and recordings that tests look at: counts of a program that does 1,000 rounds
# in parse() or 3 % more, exact ones by valgrind, and times; made once.
setup_file() {
	cd "$BATS_FILE_TMPDIR"
	cat >rounds.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) unsigned parse(unsigned n)
		{
			unsigned s = 0;
			for (unsigned i = 0; i < n; i++)
				__asm__ volatile("add %1, %0" : "+r"(s) : "r"(i));
			return s;
		}
		__attribute__((noinline)) unsigned emit(unsigned n)
		{
			unsigned s = 1;
			for (unsigned i = 0; i < n; i++)
				__asm__ volatile("xor %1, %0" : "+r"(s) : "r"(i));
			return s;
		}
		int main(int argc, char **argv)
		{
			volatile unsigned sum = parse(atoi(argv[1])) + emit(1000);
			(void)sum;
			return argc > 2;
		}
	END
	cc -g -O1 -o rounds rounds.c
	if command -v valgrind >/dev/null; then
		for rounds in 1000 1030; do
			"$PMSTAT" -q --engine callgrind --fn parse --fn emit --json \
				-o "$rounds.json" -- ./rounds "$rounds"
		done
	fi
	"$PMSTAT" -q -r 3 -e task-clock --json -o times.json -- ./rounds 1000
	# So much slower that it shows, also where the host takes the CPU away from the fast one for
	# tens of milliseconds, in which task-clock goes on.
	"$PMSTAT" ab -q -r 7 -e task-clock,page-faults --json -o ab.json -- \
		./rounds 1000 ::: ./rounds 300000000
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	for file in "$BATS_FILE_TMPDIR"/*.json "$BATS_FILE_TMPDIR/rounds"; do
		[ ! -e "$file" ] || ln -s "$file" .
	done
}

need_exact() {
	[ -e 1030.json ] || skip 'needs valgrind'
}

# judge STATUS ARGUMENT...: runs pmdiff, keeping `out` and `err`, and expects this status.
judge() {
	local expected=$1 actual=0
	shift
	"$PMDIFF" "$@" >out 2>err || actual=$?
	[ "$actual" = "$expected" ] || {
		echo "status $actual instead of $expected: pmdiff $*"
		cat out err
		return 1
	}
}

# wrong STATUS TEXT ARGUMENT...: is refused with one clear line, and perhaps a remedy.
wrong() {
	local expected=$1 text=$2
	shift 2
	judge "$expected" "$@"
	[ ! -s out ]
	[[ $(head -n 1 err) == "pmdiff: "*"$text"* ]] || {
		cat err
		return 1
	}
	[ "$(wc -l <err)" -le 2 ]
	[ "$(wc -l <err)" = 1 ] || [[ $(tail -n 1 err) == 'pmdiff: try: '* ]]
}

# edit FILE STATEMENT...: FILE, of a document `d`, with `new` as its copy.
edit() {
	python3 - "$@" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		for statement in sys.argv[3:]:
		    exec(statement)
		json.dump(d, open(sys.argv[2], "w"))
	END
}

# json FILE EXPRESSION...: all of them are true of the document `d` with `rows` by name.
json() {
	python3 - "$@" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		rows = {(r["scope"], r["event"]): r for r in d["rows"]}
		for e in sys.argv[2:]:
		    if not eval(e):
		        sys.exit("not so: " + e + "\n" + json.dumps(d)[:3000])
	END
}

# compress FILE TO: a frame of zstd (RFC 8878) with plain blocks, for not every machine has it.
compress() {
	python3 - "$@" <<-'END'
		import sys
		data = open(sys.argv[1], "rb").read()
		with open(sys.argv[2], "wb") as file:
		    file.write(b"\x28\xb5\x2f\xfd\x00\x58")
		    for at in range(0, len(data), 65536):
		        block = data[at:at + 65536]
		        last = at + 65536 >= len(data)
		        file.write((len(block) << 3 | last).to_bytes(3, "little") + block)
	END
}

@test "what got worse is a regression, with function, place and numbers" {
	need_exact
	judge 1 1000.json 1030.json
	[[ $(head -n 1 out) == worse* ]]
	grep -qE 'parse .*rounds\.c:2' out
	grep -qE 'sim\.Ir .*\+[23]\.[0-9]+ %' out
	# The other way round it is better, and a thing with itself has not changed.
	judge 0 1030.json 1000.json
	[[ $(head -n 1 out) == better* ]]
	judge 0 1000.json 1000.json
	[[ $(head -n 1 out) == 'no change'* ]]
	[ ! -s err ]
}

@test "a tenth of a percent of simulated instructions is seen" {
	need_exact
	edit 1000.json more.json 'd["runs"][0]["counts"][0]["value"] *= 1001' \
		'd["runs"][0]["counts"][0]["value"] //= 1000'
	judge 1 1000.json more.json --json
	json out 'rows[(None, "sim.Ir")]["verdict"] == "worse"' 'd["verdict"] == "worse"'
}

@test "gates decide what fails" {
	need_exact
	judge 0 1000.json 1030.json --gate fn:parse:sim.Ir=3%,sim.Ir=5%
	judge 1 1000.json 1030.json --gate fn:parse:sim.Ir=2.9%
	grep -q -- '--gate' out
	# Nothing but the gated row.
	judge 0 1000.json 1030.json --gate fn:emit:sim.Ir=0%
	judge 0 1000.json 1030.json --gate 'fn:*:calls=0%'
	# The last one holds.
	judge 0 1000.json 1030.json --gate 'fn:*:sim.Ir=1%' --gate fn:parse:sim.Ir=5%
	judge 1 1000.json 1030.json --gate fn:parse:sim.Ir=5% --gate 'fn:*:sim.Ir=1%'
	# Both ways.
	judge 0 1030.json 1000.json --gate fn:parse:sim.Ir=1%
	judge 1 1030.json 1000.json --gate fn:parse:sim.Ir=+-1%
	# What another machine counts is not known here.
	judge 1 1000.json 1030.json --gate 'instructions:u=0.5%,wall=5%,fn:parse:sim.Ir=1%'
	judge 0 1000.json 1000.json --gate 'instructions:u=0.5%,fn:parse:sim.Ir=1%' --strict
	grep -q 'unknown: instructions:u' out
	wrong 2 'fn:prase' 1000.json 1030.json --gate fn:prase:sim.Ir=1%
	wrong 2 'much' 1000.json 1030.json --gate sim.Ir=much
}

@test "pmdiff.json of the repository holds where options say nothing" {
	need_exact
	mkdir -p .git below
	echo '{"gates": {"fn:parse:sim.Ir": "5%"}}' >pmdiff.json
	judge 0 1000.json 1030.json
	cd below
	judge 0 ../1000.json ../1030.json
	judge 1 ../1000.json ../1030.json --gate fn:parse:sim.Ir=1%
	echo '{}' >empty.json
	judge 1 ../1000.json ../1030.json --config empty.json
	printf '{\n"gate": {}}' >wrong.json
	wrong 2 'wrong.json:2: "gate": there is no such key; did you mean "gates"?' \
		../1000.json ../1030.json --config wrong.json
	wrong 2 'none.json: cannot be read' ../1000.json ../1030.json --config none.json
}

@test "several documents a side, from files, pipes and zstd" {
	need_exact
	judge 1 1000.json 1000.json ::: 1030.json 1030.json 1030.json
	grep -qE '^base .* 2 runs' out
	grep -qE '^new .* 3 runs' out
	compress 1030.json new.json.zst
	judge 1 - new.json.zst <1000.json
	mkfifo pipe
	cat new.json.zst >pipe &
	judge 1 --json 1000.json pipe
	wait
	json out 'd["verdict"] == "worse"'
	# shellcheck disable=SC2002
	cat 1000.json | judge 0 1000.json -
}

@test "a document of ab is both sides" {
	judge 1 ab.json
	grep -q 'task-clock' out
	judge 0 ab.json --gate page-faults=50%
	wrong 3 'has both sides in it' ab.json times.json
	wrong 3 'is one side alone' times.json
}

@test "few runs are inconclusive, and --strict minds" {
	judge 0 times.json times.json
	edit times.json slower.json 'for r in d["runs"]: r["counts"][0]["value"] *= 2'
	judge 0 times.json slower.json
	[[ $(head -n 1 out) == inconclusive* ]]
	grep -q 'Too few runs' out
	judge 4 times.json slower.json --strict
	edit ab.json many.json 'del d["subjects"][1]' \
		'd["runs"] = [r for r in d["runs"] if r["variant"] == 0]' 'd["metrics"] = []' \
		'for i, r in enumerate(d["runs"]): r["counts"][0]["value"] = 500000 + 1000 * i'
	judge 0 many.json many.json --strict --gate task-clock=1000%
}

@test "what does not compare is refused, unless forced" {
	need_exact
	edit 1000.json other.json 'd["host"]["cpu_model"] = "Other 9000"'
	wrong 3 'Other 9000 on the new side' 1000.json other.json
	grep -q 'try: --force' err
	judge 0 1000.json other.json --force
	grep -q 'Other 9000' out
	edit other.json another.json 'd["engine"] = "uprobe"'
	judge 3 1000.json another.json
	grep -q 'Other 9000' err
	grep -q 'engine: callgrind on the base, uprobe on the new side' err
	[ ! -s out ]
	wrong 3 'engine' 1000.json times.json
	# Jobs show documents, which say it, too.
	judge 3 1000.json another.json --json=j --markdown=m --junit=u --sarif=s --html=h
	[ ! -s out ]
	[[ $(head -n 1 m) == '### ❔ pmdiff: nothing was compared: '* ]]
	grep -q 'Not the same: engine: callgrind on the base' m
	grep -q '<error message="the sides do not compare' u
	for form in json:j junit:u sarif:s; do
		local status=0
		python3 "$SOURCE_DIR/tests/oracle/diff-schema.py" "${form%:*}" "${form#*:}" || status=$?
		[ "$status" = 0 ] || [ "$status" = 77 ]
	done
	grep -q 'class="unknown">nothing was compared' h
	wrong 2 'cannot be read' 1000.json none.json --markdown=m
	grep -q 'nothing was compared: none\\.json: .*; try: pmstat' m
}

@test "every document is written, and the text beside it" {
	need_exact
	judge 1 1000.json 1030.json --json=j --markdown=m --junit=u --sarif=s --html=h
	[[ $(head -n 1 out) == worse* ]]
	json j 'd["verdict"] == "worse"' \
		'rows[("parse", "sim.Ir")]["change"] > 0.02' \
		'rows[("parse", "sim.Ir")]["file"].endswith("rounds.c")'
	grep -q parse m
	grep -q '<testsuite' u
	python3 -m json.tool s >/dev/null
	grep -qi '<!doctype html' h
	for form in json markdown junit sarif html; do
		judge 1 1000.json 1030.json --$form
		cmp out "${form/#json/j}" 2>/dev/null || cmp out "${form:0:1}" ||
			cmp out u
	done
	judge 1 1000.json 1030.json -q
	none_wider out 80
}

none_wider() {
	[ "$(wc -L <"$1")" -le "$2" ]
}

@test "files are complete or as they were" {
	need_exact
	echo before >j
	wrong 125 'No space left' 1000.json 1030.json --json=/dev/full
	wrong 125 'cannot write' 1000.json 1030.json --markdown=none/m --json=j
	wrong 2 'would be overwritten' 1000.json 1030.json --json=1000.json
	[ "$(cat j)" = before ]
	echo '{ "gates": { "sim.Ir": "1%" } }' >settings
	wrong 2 'overwritten: it has the settings' 1000.json 1030.json --config settings --json=settings
	grep -q gates settings
	wrong 2 'written twice: j is the same' 1000.json 1030.json --json=j --html=./j
	[ "$(cat j)" = before ]
	wrong 2 'cannot be read' 1000.json none.json --json=j
	grep -q '"verdict":"unknown"' j
	python3 -m json.tool 1000.json >/dev/null
	[ -z "$(find . -name 'j.*' -o -name 'm*')" ]
}

@test "a result that cannot be written is no success" {
	need_exact
	for word in '1000.json 1000.json' --help --version; do
		status=0
		# shellcheck disable=SC2086
		"$PMDIFF" $word >/dev/full 2>err || status=$?
		[ "$status" = 125 ]
		grep -q 'standard output: .*No space left' err
		status=0
		# shellcheck disable=SC2086
		"$PMDIFF" $word >&- 2>err || status=$?
		[ "$status" = 125 ]
	done
}

@test "what is no document is told apart" {
	: >empty
	head -c 300 times.json >cut.json
	echo '{"some": "json"}' >foreign.json
	edit times.json newer.json 'd["version"] = 99'
	edit times.json none.json 'd["runs"] = []' 'd["metrics"] = []'
	wrong 2 'missing.json: cannot be read: No such file' times.json missing.json
	wrong 2 '.: cannot be read: Is a directory' . times.json
	wrong 2 'empty: is empty' empty times.json
	wrong 2 'rounds: is neither' rounds times.json
	wrong 2 'cut.json: cannot be read as JSON' times.json cut.json
	wrong 2 'foreign.json: is no file of pmstat' times.json foreign.json
	wrong 2 'newer.json: has version 99' times.json newer.json
	wrong 3 'none.json: has no runs' times.json none.json
	wrong 3 'truth.json: is a recording' times.json \
		"$SOURCE_DIR/tests/cli/fixtures/truth.json"
	wrong 3 'is one recording' "$SOURCE_DIR/tests/cli/fixtures/truth.json"
}

@test "wrong words are told in one line" {
	wrong 2 'no files to compare'
	wrong 2 'did you mean --markdown?' times.json times.json --markdwon
	wrong 2 '--base does not go with files' times.json times.json --base main
	wrong 2 '--base is missing' run -- true
	wrong 2 '--trend needs a history' --trend
	judge 0 --version
	[[ $(cat out) == 'pmdiff '[0-9]* ]]
}

@test "text is plain where nobody can see colours, and ASCII where need be" {
	need_exact
	judge 1 1000.json 1030.json
	run ! grep -q $'\e' out
	judge 1 1000.json 1030.json --color always
	grep -q $'\e' out
	LC_ALL=C judge 1 1000.json 1030.json --all
	LC_ALL=C run ! grep -q '[^ -~]' out
}

# The same program twice. steady() and twist() get the same CPU time at each level, however fast
# the machine is meanwhile. add_up() gets the same work, for which -O2 needs less time. At -O2,
# twist() is inlined.
record_both() {
	[ ! -e "$BATS_FILE_TMPDIR/0.rec" ] || return 0
	cat >"$BATS_FILE_TMPDIR/work.c" <<-'END'
		#include <time.h>
		#define ROUNDS(n) __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n))
		__attribute__((noinline)) void steady(unsigned long n) { ROUNDS(n); }
		static inline void twist(unsigned long n) { ROUNDS(n); }
		__attribute__((noinline)) unsigned add_up(const unsigned *v, unsigned n)
		{
			unsigned sum = 0;
			for (unsigned i = 0; i < n; i++)
				sum += v[i];
			return sum;
		}
		static long cpu_us(void)
		{
			struct timespec now;
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
			return now.tv_sec * 1000000L + now.tv_nsec / 1000;
		}
		static unsigned values[200000];
		int main(void)
		{
			volatile unsigned sum = 0;
			for (int i = 0; i < 100; i++) {
				for (long end = cpu_us() + 2000; cpu_us() < end;)
					steady(100000);
				for (long end = cpu_us() + 2000; cpu_us() < end;)
					twist(100000);
				for (int j = 0; j < 15; j++)
					sum += add_up(values, 200000);
			}
		}
	END
	for level in 0 2; do
		cc -g -O$level -o "$BATS_FILE_TMPDIR/work" "$BATS_FILE_TMPDIR/work.c"
		"$PMREC" -q -e cpu-clock -o "$BATS_FILE_TMPDIR/$level.rec" -- \
			"$BATS_FILE_TMPDIR/work"
	done
}

@test "two recordings: what grew, shrank, stayed and was inlined" {
	record_both
	judge 0 "$BATS_FILE_TMPDIR/0.rec" "$BATS_FILE_TMPDIR/2.rec" --json=j --html=h
	json j 'd["kind"]' \
		'rows[("add_up", "cpu-clock self")]["verdict"] == "better"' \
		'all(rows[(f, "cpu-clock self")]["verdict"] in ("same", "inconclusive")
		  for f in ("steady", "twist"))'
	grep -A 40 better out | grep -q add_up
	grep -qi '<!doctype html' h
}

@test "recordings: functions without a name are one, wherever they begin" {
	record_both
	for start in 0x1100 0x2200; do
		sed "/\"type\":\"symbol\".*work\.c/s/\"functions\":.*/\"functions\":[{\"name\":null,\"start\":\"$start\"}]}/" \
			"$BATS_FILE_TMPDIR/2.rec" >"$start.rec"
	done
	grep -q '"start":"0x2200"' 0x2200.rec
	judge 0 0x1100.rec 0x2200.rec --json=j --html=h --all
	json j 'rows[("[unknown]", "cpu-clock self")]["verdict"] == "same"' \
		'not any((scope or "").startswith("[0x") for scope, event in rows)'
	run ! grep -qF '[0x' out
}

@test "recordings: gates, kinds and cuts" {
	record_both
	judge 1 "$BATS_FILE_TMPDIR/2.rec" "$BATS_FILE_TMPDIR/0.rec" --gate fn:add_up:self=5%
	judge 0 "$BATS_FILE_TMPDIR/2.rec" "$BATS_FILE_TMPDIR/0.rec" --gate fn:add_up:self=900%
	wrong 3 'one for each side' "$BATS_FILE_TMPDIR/2.rec" "$BATS_FILE_TMPDIR/0.rec" ::: \
		"$BATS_FILE_TMPDIR/2.rec"
	wrong 3 'times.json: is a document of pmstat' "$BATS_FILE_TMPDIR/2.rec" times.json
	head -n -1 "$BATS_FILE_TMPDIR/2.rec" >cut.rec
	judge 0 "$BATS_FILE_TMPDIR/2.rec" cut.rec
	grep -q 'cut' out
	head -n 1 cut.rec >head.rec
	wrong 3 'head.rec: has no samples' cut.rec head.rec
	compress cut.rec cut.zst
	judge 0 - cut.rec <cut.zst
}
