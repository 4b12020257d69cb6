#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Results of other tools as sides and as history: files that the tools write here, and those that
# have the structure that the tools document. What is refused is the business of test-import.
# PMDIFF and SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export HOME=$BATS_TEST_TMPDIR/home GIT_CONFIG_NOSYSTEM=1
	mkdir home
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not there"
}

# import STATUS ARGUMENT...: keeps `out` and `err`, and expects this status.
import() {
	local expected=$1 actual=0
	shift
	"$PMDIFF" import "$@" >out 2>err || actual=$?
	[ "$actual" = "$expected" ] || {
		echo "status $actual instead of $expected: pmdiff import $*"
		cat out err
		return 1
	}
}

# is_so FILE EXPRESSION...: all of them are true of the document `d`; `case(NAME)` is that of a
# case, `values(NAME, EVENT)` what its runs have, in the event's unit.
is_so() {
	python3 - "$@" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		def case(name):
		    return next(c["stat"] for c in d["cases"] if c["case"] == name)
		def values(name, event):
		    s = case(name) if name is not None else d
		    at = [e["name"] for e in s["events"]].index(event)
		    scale = s["events"][at]["scale"]
		    return [None if r["counts"][at]["value"] is None
		            else r["counts"][at]["value"] * scale for r in s["runs"]]
		for e in sys.argv[2:]:
		    if not eval(e):
		        sys.exit("not so: " + e + "\n" + json.dumps(d)[:3000])
	END
}

# valid FILE: its documents are as the schema says.
valid() {
	rm -rf documents && mkdir documents
	python3 - "$1" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		for i, c in enumerate(d["cases"] if d["format"] == "pmstat-suite" else [{"stat": d}]):
		    json.dump(c["stat"], open(f"documents/{i}.json", "w"))
	END
	python3 "$SOURCE_DIR/tests/oracle/stat-schema.py" "$SOURCE_DIR/docs/pmstat.schema.json" \
		documents/*.json
}

# A result of hyperfine, its command `./a`, with five times around MS milliseconds.
hyperfine_result() {
	printf '{"results":[{"command":"./a","mean":0.01,"user":0.004,"system":0.001,"times":['
	for i in 0 1 2 3 4 5 6; do
		printf '%s%s' "${comma-}" "0.0$1$i"
		local comma=,
	done
	printf '],"exit_codes":[0,0,0,0,0,0,0]}]}\n'
}

@test "hyperfine: what it wrote here" {
	needs hyperfine
	hyperfine --style none --shell=none --warmup 0 --runs 3 --export-json h.json \
		--command-name true --command-name 'a sleep' true 'sleep 0.02'
	import 0 h.json -o counts.json
	[ ! -s out ] && [ ! -s err ]
	valid counts.json
	is_so counts.json 'd["format"] == "pmstat-suite"' 'len(d["cases"]) == 2' \
		'case("a sleep")["engine"] == "hyperfine"' \
		'all(t > 20e6 for t in values("a sleep", "wall-time"))' \
		'len(values("true", "wall-time")) == 3' \
		'case("true")["created"] is None' 'case("true")["host"]["cpu_model"] is None' \
		'case("true")["runs"][0]["begin_ns"] is None'
	# To the nanosecond what stands in the file.
	python3 - <<-'END'
		import json
		h = json.load(open("h.json"))["results"][1]["times"]
		d = json.load(open("counts.json"))["cases"][1]["stat"]["runs"]
		assert [round(t * 1e9) for t in h] == [r["counts"][0]["value"] for r in d]
	END
}

@test "google-benchmark: what it wrote here" {
	needs g++
	cat >b.cc <<-'END'
		#include <benchmark/benchmark.h>
		static void BM_sum(benchmark::State &state)
		{
			for (auto _ : state)
				for (int i = 0; i < state.range(0); i++)
					benchmark::DoNotOptimize(i);
			state.counters["rounds"] = 7;
			state.SetItemsProcessed(state.iterations());
		}
		static void BM_fails(benchmark::State &state)
		{
			state.SkipWithError("no such file");
			for (auto _ : state)
				;
		}
		BENCHMARK(BM_sum)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);
		BENCHMARK(BM_fails);
		BENCHMARK_MAIN();
	END
	g++ -O0 -o b b.cc -lbenchmark -lpthread 2>why || skip "no libbenchmark: $(head -n 1 why)"
	./b --benchmark_format=json --benchmark_repetitions=3 --benchmark_min_time=0.001 >g.json 2>/dev/null
	import 0 g.json -o counts.json
	grep -q 'BM_fails: A repetition did not end well: no such file' err
	valid counts.json
	python3 - <<-'END'
		import json
		g = [b for b in json.load(open("g.json"))["benchmarks"]
		     if b["run_type"] == "iteration" and b["run_name"] == "BM_sum/64"]
		d = {c["case"]: c["stat"] for c in json.load(open("counts.json"))["cases"]}
		assert sorted(d) == ["BM_fails", "BM_sum/64", "BM_sum/8"], sorted(d)
		s = d["BM_sum/64"]
		at = {e["name"]: i for i, e in enumerate(s["events"])}
		assert len(s["runs"]) == len(g) == 3
		for b, r in zip(g, s["runs"]):
		    for key, name in (("real_time", "wall-time"), ("cpu_time", "cpu-time")):
		        ns = r["counts"][at[name]]["value"] * s["events"][at[name]]["scale"]
		        assert abs(ns - b[key] * 1000) < 1e-5 * ns, (ns, b)
		    assert r["counts"][at["rounds"]]["value"] * 1e-6 == 7
		assert all(r["stopped"] and r["counts"][0]["value"] is None for r in d["BM_fails"]["runs"])
		assert s["created"] and s["host"]["cpus"] and s["host"]["hostname"]
	END
	# A side like any other.
	"$PMDIFF" counts.json counts.json --gate 'BM_sum*//cpu-time=50%' >out
	[[ $(head -n 1 out) == 'no change'* || $(head -n 1 out) == 'inconclusive'* ]] || { cat out; return 1; }
}

@test "perf stat: what it wrote here" {
	needs perf
	perf stat -j -o j.json -e task-clock,cycles,page-faults -- true 2>why ||
		skip "perf cannot count: $(head -n 1 why)"
	grep -q counter-value j.json || skip 'this perf writes no JSON'
	perf stat -x, -o x.csv -r 2 -e task-clock,page-faults -- true
	import 0 j.json -o j-counts.json
	valid j-counts.json
	is_so j-counts.json 'd["format"] == "pmstat"' 'd["engine"] == "perf-stat"' \
		'[e["name"] for e in d["events"]][0] == "task-clock"' \
		'd["events"][0]["unit"] == "ns"' '1e5 < values(None, "task-clock")[0] < 1e10' \
		'values(None, "page-faults")[0] > 5'
	if grep -q 'not supported' j.json; then
		is_so j-counts.json 'd["runs"][0]["counts"][1]["status"] == "not_supported"' \
			'd["runs"][0]["counts"][1]["value"] is None' 'd["events"][1]["why"]'
	fi
	import 0 x.csv -o x-counts.json
	grep -q 'means of several runs' err
	is_so x-counts.json '1e5 < values(None, "task-clock")[0] < 1e10'
	"$PMDIFF" j-counts.json x-counts.json --gate 'page-faults=50%' >out
	grep -q 'page-faults' out || "$PMDIFF" j-counts.json x-counts.json --all | grep -q page-faults
}

@test "callgrind's file, and a summary of iai-callgrind" {
	needs valgrind
	valgrind -q --tool=callgrind --callgrind-out-file=callgrind.out true 2>/dev/null
	import 0 callgrind.out -o counts.json
	valid counts.json
	is_so counts.json "values(None, 'sim.Ir') == [$(sed -n 's/^totals: //p' callgrind.out)]" \
		'd["events"][0]["class"] == "exact"'
	cat >summary.json <<-'END'
		{"version":"6","kind":"LibraryBenchmark","project_root":"/p","package_dir":"/p",
		 "benchmark_file":"/p/benches/b.rs","benchmark_exe":"/p/target/b","function_name":"parse",
		 "module_path":"b::group::parse","id":"short","details":null,"baselines":[null,null],
		 "summary_output":null,"profiles":[{"tool":"Callgrind","log_paths":[],"out_paths":[],
		 "flamegraphs":[],"summaries":{"parts":[],"total":{"regressions":[],"summary":{"Callgrind":{
		 "Ir":{"metrics":{"Both":[{"Int":1030},{"Int":1000}]},"diffs":{"diff_pct":"3","factor":"1.03"}},
		 "EstimatedCycles":{"metrics":{"Left":{"Int":2000}}}}}}}}]}
	END
	import 0 summary.json -o counts.json
	valid counts.json
	is_so counts.json 'values("b::group::parse short", "sim.Ir") == [1030]' \
		'values("b::group::parse short", "sim.cycles") == [2000]'
	sed 's/1030/1000/' summary.json >old.json
	import 0 old.json -o base.json
	local status=0
	"$PMDIFF" base.json counts.json --gate 'sim.Ir=1%' >out || status=$?
	[ "$status" = 1 ]
	grep -qF '+3.00 %' out
}

@test "criterion's folder, one benchmark of it, and an estimate" {
	local of
	for of in fib/20 'fib/a b'; do
		mkdir -p "target/criterion/$of/new" "target/criterion/$of/base" "target/criterion/$of/report"
		printf '{"group_id":"fib","function_id":"x","full_id":"%s","directory_name":"%s","title":"%s"}' \
			"$of" "$of" "$of" >"target/criterion/$of/new/benchmark.json"
		echo '{"sampling_mode":"Linear","iters":[10.0,20.0,30.0],"times":[1000.0,2200.0,3000.0]}' \
			>"target/criterion/$of/new/sample.json"
		echo '{"mean":{"point_estimate":101.5},"median_abs_dev":{"point_estimate":1},"slope":{"point_estimate":102.5}}' \
			>"target/criterion/$of/new/estimates.json"
		cp "target/criterion/$of/new/sample.json" "target/criterion/$of/base"
	done
	ln -s .. target/criterion/fib/circle
	import 0 target/criterion -o counts.json
	valid counts.json
	is_so counts.json 'len(d["cases"]) == 2' \
		'[round(v) for v in values("fib/20", "wall-time")] == [100, 110, 100]' \
		'case("fib/a b")["engine"] == "criterion"'
	import 0 target/criterion/fib/20/new/estimates.json
	is_so out 'len(values("fib/20", "wall-time")) == 3' # of sample.json beside it
	rm target/criterion/fib/20/new/sample.json
	import 0 target/criterion/fib/20/new/estimates.json
	is_so out 'round(values("fib/20", "wall-time")[0], 3) == 102.5'
	grep -q 'an estimate alone' err
	echo '{"iters":[1],"times":[-1]}' >'target/criterion/fib/a b/new/sample.json'
	import 2 target/criterion
	[[ $(cat err) == 'pmdiff: target/criterion: fib/a b: sample.times: value 0: '* ]]
	mkdir empty
	import 2 empty
	grep -q 'no new/sample.json' err
}

@test "pytest-benchmark" {
	cat >p.json <<-'END'
		{"machine_info":{"node":"ci","processor":"","machine":"x86_64","python_version":"3.11.2",
		 "release":"6.1.0","system":"Linux","cpu":{"brand_raw":"Some CPU","count":2}},
		 "commit_info":{"id":"unversioned","dirty":false},
		 "benchmarks":[{"group":null,"name":"test_a[1]","fullname":"tests/test_a.py::test_a[1]",
		 "params":{"n":1},"stats":{"min":1e-6,"max":2e-6,"mean":1.5e-6,"median":1.5e-6,"rounds":2,
		 "iterations":10,"data":[1e-6,2e-6]}}],"datetime":"2026-11-26T01:00:00+00:00","version":"4.0.0"}
	END
	import 0 p.json -o counts.json
	valid counts.json
	is_so counts.json \
		'[round(v) for v in values("tests/test_a.py::test_a[1]", "wall-time")] == [1000, 2000]' \
		'd["cases"][0]["stat"]["host"]["cpu_model"] == "Some CPU"' \
		'"commit" not in d["cases"][0]["stat"]["subjects"][0]'
}

@test "imported sides are judged: a gate fails, and without one wall-time decides nothing" {
	hyperfine_result 1 >base.json
	hyperfine_result 2 >new.json
	import 0 base.json -o b.json
	import 0 --format hyperfine new.json -o n.json
	local status=0
	"$PMDIFF" b.json n.json --gate 'wall=10%' >out 2>err || status=$?
	[ "$status" = 1 ] || { cat out err; return 1; }
	grep -qF './a//wall-time' out
	"$PMDIFF" b.json n.json >out
	# Numbers of two tools do not compare.
	echo '{"iters":[1],"times":[1]}' >c.json
	import 0 c.json -o c-counts.json
	status=0
	import 0 <base.json - -o b.json
	hyperfine_result 1 | sed 's/"command":"[^"]*",//' >nameless.json
	import 2 nameless.json
	[[ $(cat err) == 'pmdiff: nameless.json: hyperfine.results[0].command: missing'* ]]
}

@test "imports as history: a trend over commits" {
	needs git
	git init -q -b main .
	for i in 1 1 1 1 2 2 2 2; do
		git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m "Do $i"
		hyperfine_result "$i" >r.json
		import 0 r.json --history h --commit HEAD
		[ ! -s out ]
	done
	import 0 r.json --history git-notes --commit HEAD
	[ "$(git notes --ref pmdiff list | wc -l)" = 1 ]
	[ "$(find h -name '*.json' | wc -l)" = 8 ]
	"$PMDIFF" --trend --history h >out
	grep -qF './a//wall-time' out
	grep -q "worse .* Do 2" out || { cat out; return 1; }
	import 2 r.json --history h
	[[ $(head -n 1 err) == 'pmdiff: r.json: the file does not say of which commit it is' ]]
	import 2 r.json --history h --commit nothing
}

@test "wrong use is told in one line" {
	import 2
	[[ $(head -n 1 err) == 'pmdiff: no file to import' ]]
	import 2 a b
	import 2 nowhere.json
	[[ $(cat err) == 'pmdiff: nowhere.json: '*'No such file'* ]]
	echo '{}' >nothing.json
	import 2 nothing.json
	[[ $(head -n 1 err) == 'pmdiff: nothing.json: has nothing in it by which a tool is known' ]]
	import 2 nothing.json --format something
	grep -q 'expected one of auto, google-benchmark' err
	import 2 --gate 'wall=1%' nothing.json
	[[ $(head -n 1 err) == 'pmdiff: --gate does not go with pmdiff import' ]]
}
