#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pmdiff run with the cases of a configuration: commits of a repository that is made here, whose
# truth is known. Counts are simulated, so that they are the same each time.

load common

# prog PARSE EMIT: `./prog parse` and `./prog emit` go round so many times.
prog() {
	cat >prog.c <<-END
		#include <stdlib.h>
		#include <string.h>
		static volatile unsigned sink;
		__attribute__((noinline)) void parse(int n) { while (n-- > 0) sink += n; }
		__attribute__((noinline)) void emit(int n) { while (n-- > 0) sink ^= n; }
		int main(int argc, char **argv) {
			if (argc > 1 && strcmp(argv[1], "parse") == 0)
				parse($1);
			else if (argc > 1 && strcmp(argv[1], "emit") == 0)
				emit($2);
			else
				abort();
			return 0;
		}
	END
}

commit() {
	git add -A
	git commit -qm "$1"
}

setup_file() {
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
	export GIT_AUTHOR_NAME='Ada Byron' GIT_AUTHOR_EMAIL=ada@example.org
	export GIT_COMMITTER_NAME='Ada Byron' GIT_COMMITTER_EMAIL=ada@example.org
	git init -q -b main "$BATS_FILE_TMPDIR/repo"
	cd "$BATS_FILE_TMPDIR/repo"
	printf 'prog\nseen\n' >.gitignore
	prog 10000 10000 && commit 'begin'
	git tag begin
	prog 10300 9000 && commit 'parse more carefully, emit less'
	git tag slow
	sed -i 's/"emit"/"send"/' prog.c && commit 'rename emit'
	git tag renamed
}

setup() {
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	cd "$BATS_FILE_TMPDIR/repo"
	CONFIG=$BATS_TEST_TMPDIR/pmdiff.json
}

# After each test: nothing is left.
teardown() {
	[ -z "$(ls -A "$TMPDIR")" ]
	cd "$BATS_FILE_TMPDIR/repo"
	[ "$(git worktree list | wc -l)" = 1 ]
	[ -z "$(git status --porcelain)" ]
}

# has TEXT...: each is in the output.
has() {
	local text
	for text; do
		[[ $output == *"$text"* ]] || {
			echo "not in the output: $text"
			echo "$output"
			return 1
		}
	done
}

# config CASES [MORE [BUILD]]: a configuration with these cases.
config() {
	cat >"$CONFIG" <<-END
		{
			"build": "${3-cc -g -O1 prog.c -o prog}",
			"engine": "callgrind", "runs": 1,
			${2-}
			"cases": [$1]
		}
	END
}

two_cases='
	{"name": "parse/small", "command": ["./prog", "parse"]},
	{"name": "emit", "command": ["./prog", "emit"]}'

# cases BASE HEAD ARGUMENT...
cases() {
	run "$PMDIFF" run --config "$CONFIG" --base "$1" --head "$2" "${@:3}"
}

@test "each case has its verdict, and all of them one" {
	config "$two_cases"
	cases begin slow --json="$BATS_TEST_TMPDIR/out.json" \
		--markdown="$BATS_TEST_TMPDIR/out.md" --junit="$BATS_TEST_TMPDIR/out.xml" \
		--sarif="$BATS_TEST_TMPDIR/out.sarif" --html="$BATS_TEST_TMPDIR/out.html"
	[ "$status" = 1 ]
	has 'worse, 1 of 2 gated numbers beyond the gate: parse/small//sim.Ir +' \
		'parse/small: worse' 'Most of it is in parse: +3.00 %' 'emit: better'
	run jq -r '.verdict, (.cases[] | .name + " " + .verdict),
		(.rows[] | select(.gated) | .case + " " + .event + " " + .verdict)' \
		"$BATS_TEST_TMPDIR/out.json"
	[ "$output" = "$(printf '%s\n' worse 'parse/small worse' 'emit better' \
		'parse/small sim.Ir worse' 'emit sim.Ir better')" ]
	# 300 rounds of 5 instructions more, and 1000 less; the emptiest loops have no others.
	run jq '[.rows[] | select(.scope == "parse" or .scope == "emit")
		| select(.event == "sim.Ir")
		| {key: (.case + " " + .scope), value: (.new.median - .base.median)}]
		| from_entries | (."parse/small parse" % 300 == 0 and ."parse/small parse" > 0)
			and (."emit emit" % 1000 == 0 and ."emit emit" < 0)' \
		"$BATS_TEST_TMPDIR/out.json"
	[ "$output" = true ]
	run cat "$BATS_TEST_TMPDIR/out.md"
	has '| ❌ | `parse/small` |' '| ✅ | `emit` |' '#### ❌ `parse/small`' '#### ✅ `emit`'
	run cat "$BATS_TEST_TMPDIR/out.xml"
	has '<testsuite id="0" package="pmdiff" name="parse/small" tests="1" failures="1"' \
		'name="emit" tests="1" failures="0"' 'name="parse/small//sim.Ir"'
	if command -v xmllint; then xmllint --noout "$BATS_TEST_TMPDIR/out.xml"; fi
	run jq -r '.runs[0].invocations[0].toolExecutionNotifications[].message.text' \
		"$BATS_TEST_TMPDIR/out.sarif"
	has 'parse/small//sim.Ir'
	grep -q 'parse/small</h1>' "$BATS_TEST_TMPDIR/out.html"
}

@test "--case picks, and gates are for the cases that they name" {
	config "$two_cases"
	cases begin slow --case 'em*'
	[ "$status" = 0 ]
	has 'better' 'emit: better'
	[[ $output != *parse/small* ]]
	cases begin slow --gate '*//sim.Ir=5%'
	[ "$status" = 0 ]
	# The other case is judged without gates.
	cases begin slow --gate 'emit//sim.Ir=±1%'
	[ "$status" = 1 ]
	has '2 of 2 gated numbers beyond the gate' 'parse/small: worse' 'emit: worse'
	cases begin slow --gate 'parse/small//fn:parse:sim.Ir=5%'
	[ "$status" = 0 ]
	has 'parse/small: nothing beyond the gate'
	cases begin slow --gate 'parse/smallx//sim.Ir=1%'
	[ "$status" = 2 ]
	has "the gate 'parse/smallx//sim.Ir' names no case" 'try: parse/small'
	cases begin slow --case nothing
	[ "$status" = 2 ]
	has '--case nothing means none of 2 cases' "--case 'parse/small'"
	# Of a file it is a warning: cases of a harness come and go.
	config "$two_cases" '"gates": {"parse/smallx//sim.Ir": "90%"},'
	cases begin slow
	[ "$status" = 1 ]
	has 'The gate parse/smallx//sim.Ir of pmdiff.json names no case that was'
	config "$two_cases"
	# A command of its own is no case.
	cases begin slow -- ./prog emit
	[ "$status" = 0 ]
	has 'better'
	[[ $output != *case* ]]
}

@test "a case has gates, engine, runs and functions of its own" {
	config '
		{"name": "a", "command": ["./prog", "parse"], "gates": {"fn:parse:sim.Ir": "5%"},
		 "functions": ["parse"]},
		{"name": "b", "command": ["./prog", "parse"], "runs": 2},
		{"name": "c", "command": ["./prog", "emit"], "engine": "count",
		 "events": ["task-clock"], "gates": {"task-clock": "900%"}, "runs": 3}' \
		'"gates": {"sim.Ir": "4%"},'
	cases begin slow --json="$BATS_TEST_TMPDIR/out.json"
	[ "$status" = 0 ]
	run jq -rc '.cases[] | [.name, .engine, .base.runs, .new.runs]' "$BATS_TEST_TMPDIR/out.json"
	has '["a","callgrind",1,1]' '["b","callgrind",2,2]' '["c","count",3,3]'
	run jq -rc '.rows[] | select(.gated) | [.case, .scope, .event, .gate]' \
		"$BATS_TEST_TMPDIR/out.json"
	has '["a","parse","sim.Ir",0.05]' '["b",null,"sim.Ir",0.04]' '["c",null,"task-clock",9]'
}

@test "what fails or is on one side only does not end the others" {
	config "$two_cases"', {"name": "send", "command": ["./prog", "send"]}'
	cases begin renamed --json="$BATS_TEST_TMPDIR/out.json" --junit="$BATS_TEST_TMPDIR/out.xml"
	[ "$status" = 1 ]
	has 'parse/small: worse' 'send: new' 'was ended by signal 6'
	run jq -rc '.cases[] | [.name, .verdict, .failed_base, .failed_new, .rows > 0]' \
		"$BATS_TEST_TMPDIR/out.json"
	has '["parse/small","worse",false,false,true]' '["emit","unknown",false,true,false]' \
		'["send","new",true,false,true]'
	grep -q 'name="emit" tests="1" failures="0" errors="1"' "$BATS_TEST_TMPDIR/out.xml"
	# Without a regression a case that failed is a failure all the same.
	cases begin renamed --case '[es]*'
	[ "$status" = 125 ]
	# A program that is not there is a case that is gone.
	config '
		{"name": "a", "command": ["./prog", "emit"]},
		{"name": "b", "command": ["./none"]}'
	cases begin slow
	[ "$status" = 125 ]
	has 'a: better' 'b: failed: ' './none is not in its worktree'
	config '
		{"name": "a", "command": ["./prog", "emit"]},
		{"name": "b", "command": ["./old", "emit"]}' '' \
		'cc -g -O1 prog.c -o prog; grep -q 10300 prog.c || cp prog old'
	cases begin slow
	[ "$status" = 0 ]
	has 'b: gone'
	# Where that is all, nothing is called unchanged.
	cases begin slow --case b
	[ "$status" = 0 ]
	has 'no case is on both sides; 1 case: 1 gone'
	# A hard limit needs no base.
	config '{"name": "send", "command": ["./prog", "send"], "gates": {"sim.Ir": "<=1k"}}'
	cases begin renamed
	[ "$status" = 1 ]
	has 'send: worse'
}

@test "set-up comes before each run, and is not counted" {
	config '{"name": "a", "command": ["./prog", "parse"], "runs": 2,
		"setup": "echo x >>seen; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; ls >/dev/null"}'
	cases begin slow --case a --json="$BATS_TEST_TMPDIR/with.json"
	[ "$status" = 1 ]
	config '{"name": "a", "command": ["./prog", "parse"], "runs": 2}'
	cases begin slow --json="$BATS_TEST_TMPDIR/without.json"
	[ "$(jq '[.rows[] | select(.scope == "parse") | .base.values]' "$BATS_TEST_TMPDIR/with.json")" = \
		"$(jq '[.rows[] | select(.scope == "parse") | .base.values]' "$BATS_TEST_TMPDIR/without.json")" ]
	config '{"name": "a", "command": ["./prog", "parse"], "setup": "test $(wc -l <seen) -lt 2; ec=$?; echo >>seen; exit $ec"}'
	sed -i 's/"runs": 1/"runs": 3/' "$CONFIG"
	cases begin slow
	[ "$status" = 125 ]
	has 'the set-up' 'failed with status'
}

@test "a configuration is read to the last case" {
	config '{"name": "a", "command": ["./prog", "parse"]}, {"name": "a", "command": ["x"]}'
	cases begin slow
	[ "$status" = 2 ]
	has 'two cases are called "a"' "$CONFIG:5"
	config '{"name": "a"}'
	cases begin slow
	[ "$status" = 2 ]
	has 'the case "a" has no "command"'
	config '{"command": ["a"]}'
	cases begin slow
	[ "$status" = 2 ]
	has 'a case has no "name"'
	config '{"name": "a", "commandx": ["a"]}'
	cases begin slow
	[ "$status" = 2 ]
	has '"commandx": there is no such key; did you mean "command"?'
	config '{"name": "a", "command": ["a"], "harness": "x"}'
	cases begin slow
	[ "$status" = 2 ]
	has '"google-benchmark"'
	config '{"name": "a", "command": ["a"], "gates": {"b//sim.Ir": "1%"}}'
	cases begin slow
	[ "$status" = 2 ]
	has 'names another case'
}

@test "suites are compared as files, and kept in a history" {
	config "$two_cases"
	cases begin slow --history "$BATS_TEST_TMPDIR/history"
	[ "$status" = 1 ]
	[ "$(ls "$BATS_TEST_TMPDIR/history" | wc -l)" = 2 ]
	base=$BATS_TEST_TMPDIR/history/$(git rev-parse begin).json
	new=$BATS_TEST_TMPDIR/history/$(git rev-parse slow).json
	run jq -r '.format, .cases[].case' "$new"
	[ "$output" = "$(printf '%s\n' pmstat-suite parse/small emit)" ]
	run "$PMDIFF" "$base" "$new"
	[ "$status" = 1 ]
	has 'parse/small: worse' 'emit: better'
	run "$PMDIFF" "$base" "$new" --case emit
	[ "$status" = 0 ]
	jq -c '.cases[0].stat' "$new" >"$BATS_TEST_TMPDIR/one.json"
	run "$PMDIFF" "$base" "$BATS_TEST_TMPDIR/one.json"
	[ "$status" = 3 ]
	has 'has no cases'
	run "$PMDIFF" "$base"
	[ "$status" = 3 ]
	# The noise of the history is that of each case.
	cases begin slow --history "$BATS_TEST_TMPDIR/history"
	[ "$status" = 1 ]
	# What --case leaves out is not lost.
	cases begin slow --history "$BATS_TEST_TMPDIR/history" --case emit
	[ "$status" = 0 ]
	run jq -r '.cases[].case' "$new"
	[ "$(sort <<<"$output")" = "$(printf '%s\n' emit parse/small)" ]
}

@test "bisect measures one case" {
	config "$two_cases"
	run "$PMDIFF" bisect --config "$CONFIG" --good begin --bad renamed --case parse/small
	[ "$status" = 0 ]
	has 'parse more carefully' 'sim.Ir'
	run "$PMDIFF" bisect --config "$CONFIG" --good begin --bad renamed
	[ "$status" = 2 ]
	has 'means 2 of 2 cases, and bisect measures one'
}

# marks BASE HEAD: a program that works so much in the part that it marks, and otherwise elsewhere.
marks() {
	cat >mark.c <<-END
		#include <pmself.h>
		static volatile unsigned sink;
		__attribute__((noinline)) void part(int n) { while (n-- > 0) sink += n; }
		__attribute__((noinline)) void rest(int n) { while (n-- > 0) sink ^= n; }
		int main(void) {
			rest($2);
			for (int i = 0; i < 3; i++) {
				if (perf_start() != 0) return 2;
				part($1);
				if (perf_stop() != 0) return 3;
				rest(10);
			}
			return 0;
		}
	END
}

@test "the part that a program marks is all that counts" {
	local build="cc -g -O1 -I$SOURCE_DIR/include mark.c -o mark -L$BUILD_DIR/src/self -Wl,-rpath,$BUILD_DIR/src/self -l:libpmself.so.1"
	git checkout -q --detach begin
	printf 'mark\nprog\n' >.gitignore
	marks 1000 50000 && commit 'mark'
	git tag -f marks
	marks 1000 90000 && commit 'work elsewhere'
	git tag -f elsewhere
	marks 1100 90000 && commit 'work in the part'
	git tag -f part
	sed -i '/perf_st/d' mark.c && commit 'mark nothing'
	git tag -f nothing
	git checkout -q main
	config '{"name": "m", "command": ["./mark"], "measured": "marked"}' '' "$build"
	cases marks elsewhere --json="$BATS_TEST_TMPDIR/out.json"
	[ "$status" = 0 ]
	# Beside three times 1,000 rounds of six instructions it is some calls, and the loader that
	# looks for perf_stop(), once.
	run jq '.rows[] | select(.scope == null and .event == "sim.Ir")
		| .base.median > 3 * 6000 and .base.median < 3 * 7000 and .base.median == .new.median' \
		"$BATS_TEST_TMPDIR/out.json"
	[ "$output" = true ]
	cases elsewhere part
	[ "$status" = 1 ]
	has 'Most of it is in part'
	cases part nothing
	[ "$status" = 125 ]
	has 'it has marked no part to count' 'm: failed'
	# Without the mark all counts.
	config '{"name": "m", "command": ["./mark"]}' '' "$build"
	PMSELF=off cases marks elsewhere
	[ "$status" = 1 ]
	has 'Most of it is in rest'
}

@test "where the added cost is: functions, lines and a flame graph, exactly" {
	local out=$BATS_TEST_TMPDIR/out
	mkdir "$out"
	config "$two_cases"
	cases begin slow --json="$out/out.json" --markdown="$out/out.md" --html="$out/out.html"
	[ "$status" = 1 ]
	# Six instructions a round: 300 rounds more, all of them in one line.
	run jq -c '.cases[] | select(.hot) | .name, .hot.exact, .hot.event,
		(.hot.functions_self.rows[0] | [.function, .base, .new, .added]),
		(.hot.functions_total.rows[] | select(.function == "main") | .added),
		(.hot.lines.rows[0] | [.file, .line, .added])' "$out/out.json"
	[ "${lines[0]}" = '"parse/small"' ]
	[ "${lines[1]}" = true ]
	[ "${lines[3]}" = '["parse",60004,61804,1800]' ]
	[ "${lines[4]}" = 1800 ]
	[ "${lines[5]}" = '["prog.c",4,1800]' ]
	[ "${#lines[@]}" = 6 ]
	run cat "$out/out.md"
	has 'Where the added cost is (exact counts of callgrind, sim\.Ir)' '+1,800' \
		'<details><summary>' '`prog.c:4`' 'pmdiff-flame-parse_small=1.html'
	[ -s "$out/pmdiff-flame-parse_small=1.html" ]
	[ "$(ls "$out" | grep -c flame)" = 1 ]
	grep -q 'href="pmdiff-flame-parse_small=1.html"' "$out/out.html"
	# Its graph has the costs of both sides as they are, not as shares.
	if command -v node; then
		node - "$SOURCE_DIR/src/output/page" "$out/pmdiff-flame-parse_small=1.html" <<-'END'
			const assert = require('node:assert/strict');
			const [folder, file] = process.argv.slice(2);
			const pm = require(folder + '/data.js');
			require(folder + '/graph.js');
			const html = require('node:fs').readFileSync(file, 'utf8');
			const text = /<script type="application\/json" id="pm-data">([^<]*)</.exec(html)[1];
			const data = pm.decode(JSON.parse(text)), whole = { event: 0 };
			const graph = pm.flame(data, pm.select(data, whole),
				{ base: pm.select(data, { ...whole, base: true }) });
			const at = [...graph.fn].findIndex((fn) => fn >= 0 && data.functions.name[fn] === 'parse');
			assert.equal(graph.total[at], 61804);
			assert.equal(graph.baseTotal[at], 60004);
		END
	fi
	# Also without cases, and not where nobody wants it.
	run "$PMDIFF" run --config "$CONFIG" --base begin --head slow --html="$out/one.html" \
		-- ./prog parse
	[ "$status" = 1 ]
	[ -s "$out/pmdiff-flame.html" ]
	config "$two_cases" '"profile": false,'
	cases begin slow --json="$out/out.json"
	run jq -c '.cases[].hot' "$out/out.json"
	[ "$output" = "$(printf 'null\nnull')" ]
}

@test "lines are told apart by what became of them" {
	git checkout -q --detach begin
	cat >lines.c <<-'END'
		static volatile unsigned sink;
		int main(void) {
			for (int i = 0; i < 1000; i++) sink += i;
			for (int i = 0; i < 500; i++) sink += i;
			return 0;
		}
	END
	printf 'lines\nprog\n' >.gitignore
	commit 'two loops' && git tag -f loops
	# Three lines above, and the second loop goes round more often.
	sed -i -e '1i // one\n// two\n// three' -e 's/500/700/' lines.c
	commit 'more of the second' && git tag -f more
	git checkout -q main
	config '{"name": "l", "command": ["./lines"]}' '' 'cc -g -O0 lines.c -o lines'
	cases loops more --json="$BATS_TEST_TMPDIR/out.json"
	[ "$status" = 1 ]
	run jq -c '.cases[0].hot.lines.rows | map(select(.file == "lines.c")) | map(.line), .[0].added % 200 == 0' \
		"$BATS_TEST_TMPDIR/out.json"
	[ "$output" = "$(printf '[7]\ntrue')" ]
}

@test "samples tell where real counters saw the cost" {
	config '{"name": "t", "command": ["./prog", "parse"], "engine": "count", "runs": 6,
		"events": ["page-faults"], "gates": {"page-faults": "<=0"}}'
	sed -i 's/10300/200000000/' prog.c && git commit -qam 'take long' && git tag -f long
	git reset -q --hard HEAD~1
	cases renamed long --json="$BATS_TEST_TMPDIR/out.json" --markdown="$BATS_TEST_TMPDIR/out.md"
	[ "$status" = 1 ]
	run cat "$BATS_TEST_TMPDIR/out.md"
	has 't//page-faults'
	# The base has next to no samples; with some on both sides the tables are there.
	run jq -r '.cases[0].hot.exact, .warnings[]' "$BATS_TEST_TMPDIR/out.json"
	[[ $output == false* || $output == *'Where the added cost is cannot be told'* ]]
}

@test "a program of google-benchmark has the cases that it lists" {
	if ! echo '#include <benchmark/benchmark.h>' | g++ -x c++ -fsyntax-only -; then
		skip 'libbenchmark-dev is not installed'
	fi
	git checkout -q --detach begin
	cat >bench.cc <<-'END'
		#include <benchmark/benchmark.h>
		static volatile unsigned sink;
		__attribute__((noinline)) void turn(int n) { while (n-- > 0) sink += n; }
		static void BM_small(benchmark::State &state) { for (auto _ : state) turn(1000); }
		static void BM_of(benchmark::State &state) { for (auto _ : state) turn(state.range(0)); }
		BENCHMARK(BM_small);
		BENCHMARK(BM_of)->Arg(8)->Arg(64);
		BENCHMARK_MAIN();
	END
	printf 'bench\nprog\n' >.gitignore
	commit 'benchmarks' && git tag -f benchmarks
	sed -i -e 's/turn(1000)/turn(101000)/' -e 's/->Arg(64)/->Arg(512)/' bench.cc
	commit 'more of the small one' && git tag -f slower
	git checkout -q main
	config '{"name": "micro", "command": ["./bench"], "harness": "auto"},
		{"name": "other", "command": ["./prog", "parse"], "harness": "auto"}' '' \
		'g++ -g -O1 bench.cc -o bench -lbenchmark -lpthread; cc -g -O1 prog.c -o prog'
	cases benchmarks slower --json="$BATS_TEST_TMPDIR/out.json"
	[ "$status" = 1 ]
	has 'micro: 3 cases of google-benchmark'
	run jq -rc '.cases[] | [.name, .verdict]' "$BATS_TEST_TMPDIR/out.json"
	has '["BM_small","worse"]' '["BM_of/8","same"]' '["BM_of/512","new"]' '["BM_of/64","gone"]' \
		'["other","same"]'
	# One iteration: 100,000 rounds of six instructions.
	run jq '.rows[] | select(.case == "BM_small" and .scope == null and .event == "sim.Ir")
		| .new.median - .base.median | . > 599900 and . < 600100' "$BATS_TEST_TMPDIR/out.json"
	[ "$output" = true ]
	# The loop alone: eight rounds, and some 2,000 instructions of the library's clocks.
	run jq '.rows[] | select(.case == "BM_of/8" and .scope == null and .event == "sim.Ir")
		| .new.median | . > 48 and . < 5000' "$BATS_TEST_TMPDIR/out.json"
	[ "$output" = true ]
	cases benchmarks slower --case 'BM_of/*' --gate 'micro//sim.Ir=1%'
	[ "$status" = 0 ]
	cases benchmarks slower --case micro --gate 'BM_small//sim.Ir<=1k'
	[ "$status" = 1 ]
}

@test "a program that lists as criterion does is asked for one case at a time" {
	git checkout -q --detach begin
	cat >crit <<-'END'
		#!/bin/sh
		case "$*" in
		'--bench --list --format terse') printf 'parse/small: benchmark\nemit it: bench\n' ;;
		'parse/small --exact --test') exec ./prog parse ;;
		'emit it --exact --test') exec ./prog emit ;;
		*) exit 3 ;;
		esac
	END
	chmod +x crit
	commit 'a harness' && git tag -f harness
	sed -i 's/parse(10000)/parse(11000)/' prog.c && commit 'slower' && git tag -f slower-harness
	git checkout -q main
	config '{"name": "rust", "command": ["./crit"], "harness": "auto"}'
	cases harness slower-harness --json="$BATS_TEST_TMPDIR/out.json"
	[ "$status" = 1 ]
	has 'rust: 2 cases of criterion'
	run jq -rc '.cases[] | [.name, .verdict]' "$BATS_TEST_TMPDIR/out.json"
	has '["parse/small","worse"]' '["emit it","same"]'
	config '{"name": "rust", "command": ["./prog"], "harness": "criterion"}'
	cases harness slower-harness
	[ "$status" = 125 ]
	has 'does not list its cases'
	# It waits instead of listing, while a child of its own keeps its output open.
	config '{"name": "rust", "command": ["sh", "-c", "sleep 200 & sleep 200"], "harness": "criterion",
		"timeout": "300ms"}'
	SECONDS=0
	cases harness slower-harness
	[ "$status" = 125 ]
	[ "$SECONDS" -lt 150 ]
	has 'did not list its cases in time'
}
