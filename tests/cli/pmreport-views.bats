#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Tables by several keys, wall-clock shares, and lists. PMREPORT, PMREC and PROGRAMS come from
# meson; make-lists.py says what is in lists.json, and the tests compute from it what must come out.

bats_require_minimum_version 1.5.0

setup_file() {
	python3 "$SOURCE_DIR/tests/cli/make-lists.py" >"$BATS_FILE_TMPDIR/lists.json"
}

setup() {
	export LC_ALL=C.UTF-8
	unset NO_COLOR TERM
	cd "$BATS_TEST_TMPDIR" || return
	cp "$SOURCE_DIR/tests/cli/fixtures/truth.json" truth.json
	cp "$BATS_FILE_TMPDIR/lists.json" .
}

# report STATUS [argument...]: runs pmreport; stdout in out, stderr in err.
report() {
	local expected=$1 status=0
	shift
	"$PMREPORT" "$@" >out 2>err || status=$?
	[ "$status" = "$expected" ] || {
		echo "status $status, not $expected" >&2
		cat out err >&2
		return 1
	}
}

is() {
	diff -u - out >&2
}

fails_with() {
	[ ! -s out ] && head -1 err | grep -qF -- "$1" || {
		echo "expected: $1" >&2
		cat out err >&2
		return 1
	}
}

# json EXPRESSION...: true of the report d; e and rows are its first event and that one's rows.
json() {
	python3 -c 'import json, sys
d = json.load(open("out"))
e = d["events"][0]
rows = e.get("rows")
for x in sys.argv[1:]:
    if not eval("(" + x + ")"): sys.exit("not so: " + x)' "$@"
}

# ---- several keys -------------------------------------------------------------------------

@test "a table by three keys as perf users type it" {
	report 0 truth.json --event cpu-clock -q --sort comm,dso,sym --limit 3
	is <<-'END'
		   self    total  name     module    function
		  50.0%    50.0%  prog     prog      sixty(int)
		  20.0%    20.0%  prog     prog      ns::thirty
		  10.0%    10.0%  prog     prog      hot_inline (inlined)
		  10.0%    10.0%  work er  prog      sixty(int)
		   4.0%     4.0%  prog     prog      fib
		   4.0%     4.0%  work er  [kernel]  sys_read
	END
	report 0 truth.json --event cpu-clock --json --by comm,dso,sym
	json 'e["by"] == "comm,module,function"' \
		'sum(r["self"]["samples"] for r in rows) == 100' \
		'list(rows[0])[2:] == ["comm", "module", "path", "build_id", "function", "inlined"]'
	report 0 truth.json --event cpu-clock -x, --by thread,line
	[ "$(head -1 out | cut -d, -f8-)" = pid,tid,comm,file,line,function,module ]
}

@test "combinations are the rows of one key taken apart" {
	for key in function module line address; do
		report 0 truth.json --event cpu-clock --json --by $key
		cp out one
		report 0 truth.json --event cpu-clock --json --by $key,thread
		python3 - <<-END
			import json, collections
			def sums(name):
			    to = collections.Counter()
			    for r in json.load(open(name))["events"][0]["rows"]:
			        to[tuple(r[k] for k in ("function", "module", "line", "address", "path") if k in r and (k != "line" or "$key" != "function"))] += r["self"]["period"]
			    return {k: v for k, v in to.items() if v}
			assert sums("one") == sums("out"), (sums("one"), sums("out"))
		END
	done
}

@test "a table by CPU needs no other option" {
	report 0 lists.json --event cpu-clock --json --by cpu
	json '[(r["cpu"], r["self"]["samples"]) for r in rows] == [(0, 200), (1, 20)]'
	report 0 lists.json --event cpu-clock --json --by comm,cpu --comm '!swapper'
	json 'sorted((r["comm"], r["cpu"], r["self"]["samples"]) for r in rows) ==
		[("prog", 0, 20), ("sh", 0, 80), ("work er", 1, 20)]'
}

@test "wrong keys are told" {
	report 2 truth.json --by function,function
	fails_with "--by has 'function' twice"
	report 2 truth.json --by function,thread,cpu,comm
	fails_with "up to 3"
	report 2 truth.json --by function,
	fails_with "cannot make a table by ''"
}

@test "a process has all the names that it was sampled under" {
	report 0 lists.json --event cpu-clock -q --by process --comm '!swapper'
	is <<-'END'
		  share  samples  pid  name
		 100.0%      120   10  sh, prog
	END
}

# ---- leaving out --------------------------------------------------------------------------

@test "what begins with ! is left out, and idling hints at it" {
	report 0 lists.json --event cpu-clock
	grep -qF "! 45.5% is the idle task: --comm '!swapper' leaves it out" out
	report 0 lists.json --event cpu-clock --comm '!swapper'
	run ! grep -q 'idle task' out
	grep -qF -- '--comm !swapper: 120 samples, 54.5% of all' out
	report 0 lists.json --event cpu-clock --json --module '![kernel]'
	json 'e["total"]["samples"] == 120'
	report 0 lists.json --event cpu-clock --json --symbol '!read_all'
	json 'e["total"]["samples"] == 120'
	report 2 lists.json --comm '!nobody'
	fails_with "no thread is called 'nobody'"
}

# ---- wall-clock ---------------------------------------------------------------------------

@test "shares of wall-clock time divide by the CPUs that ran" {
	# 0.8 s one thread in read_all, then 0.2 s two threads, in main and in read_all.
	report 0 lists.json --event cpu-clock --json --latency
	json 'e["wall_clock"]' \
		'{r["function"]: r["self"]["period"] for r in rows} ==
			{"read_all": 900000000, "main": 100000000, "schedule": 0}'
	report 0 lists.json --event cpu-clock --json --by parallelism --comm '!swapper'
	json '[(r["parallelism"], r["self"]["samples"]) for r in rows] == [(1, 80), (2, 40)]'
	report 0 lists.json --event cpu-clock --latency
	grep -q 'by wall-clock time' out
	grep -q '^  90.0%    90.0%    45.5%  read_all' out
	report 0 lists.json --event off-cpu --latency
	grep -qF '! off-cpu is not sampled by time: no shares of wall-clock time' out
	report 0 lists.json --event off-cpu --json --latency
	json 'not e["wall_clock"]' 'e["total"]["period"] == 605000000'
}

@test "wall-clock shares need an event that is sampled by time" {
	grep -v '"event": 0' lists.json >calls.json
	report 2 calls.json --latency
	fails_with 'no event of this recording is sampled by time'
	report 2 calls.json --by function,parallelism
	fails_with 'no event of this recording is sampled by time'
}

@test "a program that is alone, and then two of it on one CPU, never run twice" {
	taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')" \
		"$PMREC" -F 499 -o one.json "$PROGRAMS/parallel" 2>err || {
		cat err >&2
		return 1
	}
	report 0 one.json --event cpu-clock --json --by parallelism
	json 'len(rows) == 1' 'rows[0]["parallelism"] == 1' 'rows[0]["self"]["samples"] > 100'
}

@test "one thread runs on one CPU at a time, whichever" {
	"$PMREC" -F 499 -o two.json "$PROGRAMS/parallel" 2>err || {
		cat err >&2
		return 1
	}
	report 0 two.json --event cpu-clock --json --by function,parallelism --symbol alone
	json 'all(r["parallelism"] == 1 for r in rows)' 'len(rows) > 0'
	report 0 two.json --event cpu-clock --json --by parallelism --symbol together
	json 'all(r["parallelism"] in (1, 2) for r in rows)' 'len(rows) > 0'
}

# ---- what makes a table easier to read ---------------------------------------------------

# names INLINED LENGTH: a recording of ten functions, the first INLINED of which are inlined into
# main; their names have LENGTH letters.
names() {
	python3 - "$@" <<-'END'
		import json, sys
		inlined, length = map(int, sys.argv[1:])
		head = open("lists.json").readline()
		print(head, end="")
		print(json.dumps({"type": "module", "id": 0, "path": "/bin/prog", "kind": "file"}))
		for i in range(10):
		    names = ["f%d" % i + "_" * (length - 2)] + ["main"] * (i < inlined)
		    print(json.dumps({"type": "frame", "id": i, "module": 0, "address": hex(i), "how": "ip"}))
		    print(json.dumps({"type": "symbol", "frame": i, "functions": [{"name": n} for n in names]}))
		    print(json.dumps({"type": "stack", "id": i, "parent": None, "frames": [i]}))
		for i in range(100):
		    print(json.dumps({"type": "sample", "time": i, "pid": 1, "tid": 1, "cpu": 0,
		                      "event": 0, "period": 1, "stack": i % 10}))
	END
}

@test "what makes a table easier to read is asked first, in the same line" {
	names 6 20 >names.json
	report 0 names.json --event cpu-clock
	[ "$(tail -1 out)" = 'next: pmreport names.json --no-inline | --tree | --callers f0__________________' ]
	report 0 names.json --event cpu-clock --no-inline
	tail -1 out | grep -qF 'next: pmreport names.json --tree | --callers main'
	names 5 20 >names.json
	report 0 names.json --event cpu-clock
	tail -1 out | grep -qF 'next: pmreport names.json --tree'
	names 0 90 >names.json
	report 0 names.json --event cpu-clock
	tail -1 out | grep -qF 'next: pmreport names.json --width 0 | --tree'
	[ "$(tail -1 out | wc -m)" -le 81 ]
	report 0 names.json --event cpu-clock --width 0
	tail -1 out | grep -qF 'next: pmreport names.json --tree'
}

@test "nothing is cut in a file or a pipe, unless COLUMNS says so" {
	local name
	name=$(printf '_%.0s' {1..198})
	names 0 200 >names.json
	for table in '' '--by function,module'; do
		# shellcheck disable=SC2086
		env -u COLUMNS "$PMREPORT" names.json --event cpu-clock -q $table >out
		[ "$(grep -c "f[0-9]$name  prog" out)" = 10 ]
		head -1 out | grep -qE 'function {50,60}module'
		# shellcheck disable=SC2086
		COLUMNS=100 "$PMREPORT" names.json --event cpu-clock -q $table >out
		[ "$(wc -L <out)" -le 100 ]
		run ! grep -q "$name" out
	done
}

# ---- blocked time -------------------------------------------------------------------------

@test "blocked time has seconds, and says where the program waits" {
	report 0 lists.json --event off-cpu
	grep -qF '2 samples of off-cpu, 605 ms in all' out
	grep -qE '^ blocked +share +waits +longest +function +waits in +kernel$' out
	grep -qE '^  605 ms +100.0% +2 +600 ms +read_all +- +do_wait$' out
	grep -q '→ read_all → do_wait → schedule  100.0% self' out
	[ "$(tail -1 out)" = 'next: pmreport lists.json --tree | --callers read_all | --by line | --threads' ]
	report 0 lists.json --event off-cpu -q --by line
	is <<-'END'
		 blocked   share  waits  longest  function  source     waits in
		  605 ms  100.0%      2   600 ms  read_all  prog.c:17  -
	END
	# The table by function is what it was where it is asked for, and for programs.
	report 0 lists.json --event off-cpu -q --children
	grep -q '^   0.0%   100.0%  605 ms  read_all' out
	report 0 lists.json --event off-cpu --json
	json '[(r["function"], r["self"]["period"]) for r in rows][:1] == [("schedule", 605000000)]' \
		'e["waits"] == [{"blocked_ns": 605000000, "percent": 100.0, "waits": 2,
			"longest_ns": 600000000, "function": "read_all", "module": "prog",
			"call": None, "kernel": "do_wait"}]'
	report 0 lists.json --event cpu-clock --json
	json '"waits" not in e'
	report 0 lists.json --event off-cpu -q --percentile period:50 --by function
	grep -qE 'read_all +prog$' out
	report 0 lists.json --event off-cpu -q --percentile period:50 --by line
	grep -qE 'prog.c +17 +read_all +prog$' out
	report 0 lists.json --event off-cpu --percentile period:50 --by function --json
	json '[r["function"] for r in rows] == ["schedule"]'
	report 0 lists.json --event off-cpu -q --by thread
	is <<-'END'
		  share    time  samples  pid  tid  name
		 100.0%  605 ms        2   10   11  work er
	END
}

@test "a heading has the filter and the group of its event" {
	report 0 lists.json --event block:done
	grep -qF '12 samples of block:done   where bytes > -9' out
	report 0 lists.json --event page-faults
	grep -qF 'grouped with cpu-clock' out
	report 0 lists.json --json
	json 'd["events"][1]["filter"] == "bytes > -9"' 'd["events"][3]["group"] == "cpu-clock"' \
		'"group" not in e and "filter" not in e'
}

# ---- lists --------------------------------------------------------------------------------

@test "threads: when they ran, when they were blocked" {
	report 0 lists.json --event cpu-clock --threads -q
	is <<-'END'
		   time  blocked  first   last  activity          pid  tid  name
		 1.00 s     0 ms  0.010  1.000  ████████████████    0    0  swapper
		 1.00 s     0 ms  0.010  1.000  ████████████████   10   10  prog
		 200 ms   605 ms  0.100  1.000              ▂███   10   11  work er
	END
	LC_ALL=C report 0 lists.json --event cpu-clock --threads -q --tid 11
	is <<-'END'
		   time  blocked  first   last  activity          pid  tid  name
		 200 ms   605 ms  0.100  1.000              :###   10   11  work er
	END
	report 0 lists.json --event cpu-clock --threads --json
	json 'e["list"] == "threads"' 'rows[2]["blocked_ns"] == 605000000' \
		'all(sum(r["activity"]) == r["period"] for r in rows)' \
		'all(len(r["activity"]) == 16 for r in rows)'
	report 0 lists.json --event cpu-clock --threads --by process --json
	json 'e["list"] == "processes"' \
		'[(r["pid"], r["samples"], r["blocked"]) for r in rows] == [(10, 120, 2), (0, 100, 0)]'
	report 0 truth.json --event cpu-clock --threads -x,
	[ "$(head -1 out)" = event,percent,samples,period,first_ns,last_ns,activity,pid,tid,comm ]
	[ "$(wc -l <out)" = 3 ]
}

@test "fields: which there are" {
	report 0 lists.json --event block:done --fields --json
	json 'rows[0] == {"field": "bytes", "samples": 11, "numbers": 10, "min": -3,
		"max": 2**64 - 1, "examples": "7, -3, 0"}' \
		'rows[1]["min"] is None and rows[1]["examples"] == "even, odd"'
	report 0 lists.json --event cpu-clock --fields
	grep -qF '(there are no fields)' out
}

@test "percentiles are exact, by nearest rank" {
	report 0 lists.json --event block:done --json --percentile bytes:0,10,50,90,99.9,100
	python3 - <<-'END'
		import json, math
		values = []
		for line in map(json.loads, open("lists.json")):
		    if line.get("event") == 1 and "bytes" in line.get("fields", {}):
		        value = line["fields"]["bytes"]
		        if value != "none": values.append(int(str(value), 0))
		values.sort()
		e = json.load(open("out"))["events"][0]
		(row,) = e["rows"]
		for p in 0, 10, 50, 90, 99.9, 100:
		    rank = max(1, math.ceil(p / 100 * len(values) - 1e-9))
		    assert row["p%g" % p] == values[rank - 1], (p, row)
		assert (row["count"], row["others"]) == (len(values), 1), row
		assert (row["min"], row["max"], row["sum"]) == (values[0], values[-1], sum(values)), row
		for b in e["histogram"]:
		    low = b["from"] if b["from"] is not None else -2**63
		    assert b["count"] == sum(low <= v < b["below"] for v in values), b
		assert sum(b["count"] for b in e["histogram"]) == len(values)
	END
}

@test "percentiles by what --by says, and of blocked time" {
	report 0 lists.json --event block:done --json --percentile bytes --by tid
	json '[(r["tid"], r["count"], r["others"]) for r in rows] == [(11, 5, 0), (10, 5, 1)] or
		[(r["tid"], r["count"], r["others"]) for r in rows] == [(10, 5, 1), (11, 5, 0)]'
	report 0 lists.json --event off-cpu -q --percentile period:50,99
	is <<-'END'
		 count   min   p50     p99     max     sum
		     2  5 ms  5 ms  600 ms  600 ms  605 ms
	END
	report 2 lists.json --percentile byte
	fails_with "no sample has a field 'byte'"
	grep -qF 'bytes, who' err
	report 2 lists.json --percentile bytes:101
	fails_with 'no list of percentiles'
	report 2 lists.json --percentile :5
	fails_with 'no name of a field'
}

@test "branches: from where to where, and how often mispredicted" {
	report 0 lists.json --event cpu-clock --branches -q
	is <<-'END'
		  share  taken  mispred  cycles  from            to
		  66.7%     18     0.0%       5  loop prog.c:22  loop prog.c:20
		  33.3%      9   100.0%       3  loop prog.c:20  loop prog.c:22
	END
	report 0 lists.json --event cpu-clock --branches --json
	json 'rows[0]["predicted"] == 18 and rows[1]["mispredicted"] == 9' \
		'rows[1]["from_line"] == 20 and rows[1]["to_function"] == "loop"'
	report 0 truth.json --branches
	grep -qF '(there are no branches)' out
	report 2 lists.json --branches --time 0-1
	fails_with 'without --time'
}

@test "one list at a time, and none for stacks" {
	report 2 lists.json --threads --fields
	fails_with 'only one'
	report 2 lists.json --threads --folded
	fails_with 'no list'
}

@test "lists keep to the width, whatever the names" {
	python3 - >long.json <<-'END'
		import json
		for line in map(json.loads, open("lists.json")):
		    if line["type"] == "thread": line["comm"] = "n" * 300
		    for f in line.get("functions", []): f["name"] = "f" * 300
		    print(json.dumps(line))
	END
	for list in --threads --fields '--percentile bytes:50 --by function,thread' --branches \
		'--by comm,function,module' '--by function,line,cpu' --latency --tree; do
		# shellcheck disable=SC2086
		report 0 long.json --event cpu-clock -q $list
		[ "$(wc -L <out)" -le 80 ] || {
			echo "$list" >&2
			cat out >&2
			return 1
		}
	done
}
