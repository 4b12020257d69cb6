#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The report as its readers meet it. PMREPORT and SOURCE_DIR come from meson.
#
# fixtures/truth.json: 100 samples of cpu-clock (requested: cycles), 1 ms each. sixty(int) has
# 60 of them (50 below main, 10 below worker in a second thread), ns::thirty 20 (one of them in
# a stack that is cut off), hot_inline 10 (inlined into ten), fib 4 (two and three deep),
# sys_read 4 (kernel), a place without a symbol 2. Then 5 samples of page-faults in ns::thirty.

bats_require_minimum_version 1.5.0

setup() {
	export LC_ALL=C.UTF-8
	unset NO_COLOR TERM
	FIXTURES=$SOURCE_DIR/tests/cli/fixtures
	cp "$FIXTURES/truth.json" "$BATS_TEST_TMPDIR/samples.json"
	cd "$BATS_TEST_TMPDIR" || return
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

# Compares a file with standard input.
is() {
	diff -u - "$1" >&2
}

# fails_with TEXT: one or two lines on stderr, the first with TEXT; nothing on stdout.
fails_with() {
	[ ! -s out ] && [ "$(wc -l <err)" -le 2 ] && head -1 err | grep -qF -- "$1" || {
		echo "expected: $1" >&2
		cat err >&2
		return 1
	}
}

json() {
	python3 -c 'import json, sys
d = json.load(open("out"))
for e in sys.argv[1:]:
    if not eval("(" + e + ")"): sys.exit("not so: " + e)' "$@"
}

# ---- the text -----------------------------------------------------------------------------

@test "the default report" {
	report 0
	is out <<-'END'
		./prog -n 3 (pid 10)  200 ms wall  100 ms CPU (0.50 cores)  2 threads  exit 3
		! cycles is not there: cpu-clock is sampled instead
		! 3 samples were lost (2.8%), because the buffers were full; record with more of
		  them (pmrec -m PAGES), or less often (pmrec -F HZ)
		100 samples of cpu-clock @ 1,000 Hz   lost 3   truncated 1.0%   incomplete 2.0%
		  unknown 2.0%

		   self    total  function              module     source
		  60.0%    60.0%  sixty(int)            prog       prog.c:20
		  20.0%    20.0%  ns::thirty            prog       prog.c:30
		  10.0%    10.0%  hot_inline (inlined)  prog       hot.h:7
		   4.0%     4.0%  fib                   prog       prog.c:51
		   4.0%     4.0%  sys_read              [kernel]
		   2.0%     2.0%  [unknown]             libx.so.1
		  … 3 more below 0.5% (0.0% in all; --limit 0 shows all)

		hottest path
		  83.0%  main
		  50.0%  ├─ sixty(int)  50.0% self
		  19.0%  ├─ ns::thirty  19.0% self
		  10.0%  └─ ten → hot_inline  10.0% self

		5 samples of page-faults, one every 2   lost 0   truncated 0.0%   unknown 0.0%
		! only 5 samples: percentages are good to about ±44 points; record for longer or
		  more often (pmrec -F HZ)

		   self    total  function    module  source
		 100.0%   100.0%  ns::thirty  prog    prog.c:30
		  … 1 more below 0.5% (0.0% in all; --limit 0 shows all)

		hottest path
		 100.0%  main → ns::thirty  100.0% self

		next: pmreport --tree | --callers ns::thirty | --annotate ns::thirty
	END
	[ ! -s err ]
}

@test "stacks in execve(2) are counted apart, and none of their callers is missing" {
	sed 's/"no_cfi"/"exec"/g' "$SOURCE_DIR/tests/cli/fixtures/truth.json" >exec.json
	run -0 "$PMREPORT" exec.json
	[[ ${output//$'\n'  / } == *"lost 3   truncated 1.0%   in execve 2.0% unknown"* ]]
	[[ $output != *incomplete* && $output != *"lack callers"* ]]
}

@test "the same in plain ASCII where the locale has nothing else" {
	LC_ALL=C report 0 --event page-faults --limit 1
	grep -qF "  ... 1 more below 1%" out
	grep -qF " 100.0%  main > ns::thirty" out
	grep -qF "good to about +-44 points" out
	LC_ALL=C report 0 -q --tree --event cpu-clock
	is out <<-'END'
		  total     self  function
		  83.0%    0.0%  main [prog]
		  50.0%   50.0%  |- sixty(int)
		  19.0%   19.0%  |- ns::thirty
		  10.0%   10.0%  |- ten > hot_inline (inlined)
		   4.0%    4.0%  `- fib (recursive)

		  14.0%    0.0%  worker [prog]
		  10.0%   10.0%  |- sixty(int)
		   4.0%    4.0%  `- sys_read [kernel]

		   2.0%    2.0%  [unknown] in libx.so.1

		   1.0%    1.0%  ns::thirty [prog]
	END
}

# without_names: stripped.json, where sixty(int), ns::thirty and fib are known by where they
# begin alone.
without_names() {
	sed -E -e '/"symbol","frame":1,/s/:\[.*/:[{"name":null,"start":"0x1f00"}]}/' \
		-e '/"symbol","frame":2,/s/:\[.*/:[{"name":null,"start":"0x2f00"}]}/' \
		-e '/"symbol","frame":[45],/s/:\[.*/:[{"name":null,"start":"0x4f00"}]}/' \
		samples.json >stripped.json
}

@test "functions without a name are told apart by where they begin" {
	without_names
	report 0 stripped.json --event cycles --limit 3
	grep -qF 'unknown 86.0%' out
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF '! 86.0% in functions without a name: 84.0% in prog (stripped; build-id 0011223344556677); 2.0% in libx.so.1 (stripped;' flat
	grep -qE '^ +60\.0% +60\.0% +\[0x1f00\] +prog$' out
	grep -qE '^ +50\.0% .*\[0x1f00\] in prog  50\.0% self$' out
	grep -qF "next: pmreport stripped.json --tree | --callers '[0x1f00]'" out
	report 0 -q stripped.json --event cycles --callers '[0x1f00]'
	is out <<-'END'
		callers of [0x1f00]: 60.0% of all samples, 60

		  share  function
		  60.0%  [0x1f00] in prog
		  50.0%  ├─ main
		  10.0%  └─ worker
	END
	report 0 -q stripped.json --event cycles --tree
	grep -qF '[0x4f00] in prog (recursive)' out
	report 0 -q stripped.json --event cycles --symbol '![0x1f00]'
	run ! grep -qF '[0x1f00]' out

	report 0 stripped.json --json --event cycles
	json 'd["events"][0]["rows"][0]["function"] is None' \
		'd["events"][0]["rows"][0]["start"] == "0x1f00"' \
		'[r["self"]["samples"] for r in d["events"][0]["rows"] if "start" in r] == [60, 20, 4]' \
		'[r["function"] for r in d["events"][0]["rows"] if "start" not in r] == ["hot_inline", "sys_read", None, "main", "worker", "ten"]' \
		'd["events"][0]["unknown"]["samples"] == 86'
	report 0 stripped.json --json --event cycles --by function,thread
	json '{r["start"]: r["self"]["samples"] for r in d["events"][0]["rows"] if r["tid"] == 11 and "start" in r} == {"0x1f00": 10}'
	report 0 stripped.json --json --event cycles --tree
	json 'sum(n["total"]["samples"] for n in d["events"][0]["nodes"] if n.get("start") == "0x1f00" and n["function"] is None) == 60'
	report 0 stripped.json -x , --event cycles
	grep -qE ',\[0x1f00\],prog,' out
	report 0 stripped.json --folded --event cycles
	grep -qx 'prog;main;\[0x1f00\] in prog 50' out
	grep -qx 'work_er;\[libx.so.1\] 2' out

	# Those that wait, too; what they call, by a name alone.
	sed 's/cpu-clock/off-cpu/g' stripped.json >waits.json
	report 0 waits.json --event off-cpu
	grep -qE '^ +60 ms +60\.0% .* \[0x1f00\]' out
	grep -qF "| --callers '[0x1f00]'" out
	report 0 waits.json --json --event off-cpu
	json '[w["waits"] for w in d["events"][0]["waits"] if w.get("start") == "0x1f00" and w["function"] is None] == [60]'

	# In another build they begin elsewhere.
	report 0 stripped.json --event cycles --flamegraph one.svg
	grep -qF '[0x1f00] in prog' one.svg
	report 0 stripped.json --event cycles --flamegraph both.svg --diff samples.json
	grep -qF '[unknown] in prog' both.svg
	run ! grep -qF '[0x1f00]' both.svg
}

@test "top-down, bottom-up, callers and callees" {
	report 0 -q --event cycles --tree --limit 5
	is out <<-'END'
		  total     self  function
		  83.0%    0.0%  main [prog]
		  50.0%   50.0%  ├─ sixty(int)
		  19.0%   19.0%  ├─ ns::thirty
		  10.0%   10.0%  └─ ten → hot_inline (inlined)

		  14.0%    0.0%  worker [prog]
		  10.0%   10.0%  → sixty(int)
	END
	report 0 -q --event cpu-clock --bottom-up --limit 10
	is out <<-'END'
		  share  function
		  60.0%  sixty(int) [prog]
		  50.0%  ├─ main
		  10.0%  └─ worker

		  20.0%  ns::thirty [prog]
		  19.0%  ← main

		  10.0%  hot_inline (inlined) [prog] ← ten ← main
	END
	report 0 -q --event cpu-clock --callers sixty
	is out <<-'END'
		callers of sixty: 60.0% of all samples, 60

		  share  function
		  60.0%  sixty(int) [prog]
		  50.0%  ├─ main
		  10.0%  └─ worker
	END
	report 0 -q --event cpu-clock --callees worker
	is out <<-'END'
		what is called by worker: 14.0% of all samples, 14

		  total     self  function
		  14.0%    0.0%  worker [prog]
		  10.0%   10.0%  ├─ sixty(int)
		   4.0%    4.0%  └─ sys_read [kernel]
	END
}

@test "tables by everything" {
	report 0 -q --event cpu-clock --by module
	is out <<-'END'
		   self    total  module     path
		  94.0%    98.0%  prog       /opt/app/prog
		   4.0%     4.0%  [kernel]   [kernel]
		   2.0%     2.0%  libx.so.1  /usr/lib/libx.so.1
	END
	report 0 -q --event cpu-clock --by thread
	is out <<-'END'
		  share  samples  pid  tid  name
		  84.0%       84   10   10  prog
		  16.0%       16   10   11  work er
	END
	report 0 -q --event cpu-clock --by process
	is out <<-'END'
		  share  samples  pid  name
		 100.0%      100   10  prog
	END
	report 0 -q --event cpu-clock --by line --limit 5
	is out <<-'END'
		   self    total  source     function    module
		  60.0%    60.0%  prog.c:20  sixty(int)  prog
		  20.0%    20.0%  prog.c:30  ns::thirty  prog
		  10.0%    10.0%  hot.h:7    hot_inline  prog
	END
	report 0 -q --event cpu-clock --by address --limit 4
	is out <<-'END'
		   self    total  address             function    module    source
		  60.0%    60.0%  0x2000              sixty(int)  prog      prog.c:20
		  20.0%    20.0%  0x3000              ns::thirty  prog      prog.c:30
		  10.0%    10.0%  0x4000              hot_inline  prog      hot.h:7
		   4.0%     4.0%  0x5010              fib         prog      prog.c:51
		   4.0%     4.0%  0xffffffff81000010  sys_read    [kernel]
	END
}

@test "names of processes and of threads have titles of their own" {
	for keys in process,comm process,thread process,tid,comm; do
		report 0 --by "$keys" samples.json
		grep -m 1 -E '^ +share' out >titles
		[ "$(tr -s ' ' '\n' <titles | sort | uniq -d)" = "" ]
	done
	report 0 --by process,comm samples.json
	grep -qE ' pid +process +comm$' out
	for format in csv json; do
		report 0 --format "$format" --by process,comm samples.json
		[ "$format" = json ] || [ "$(head -1 out | tr , '\n' | sort | uniq -d)" = "" ]
	done
}

@test "a process and a thread that the kernel did not tell have no name" {
	sed -i '/"type":"sample"/s/"pid":[0-9]*,"tid":[0-9]*/"pid":null,"tid":null/' samples.json
	report 0 -q --event cpu-clock --by pid,tid samples.json
	grep -qE '^ *100.0% +100 +\? +\? +\? +\?$' out
	report 0 --json --by pid samples.json
	grep -q '"pid":null,"comm":null,"title":null}' out
}

@test "by total, and without inlined functions" {
	report 0 -q --event cpu-clock --children --limit 14 --no-inline
	is out <<-'END'
		   self    total  function    module  source
		   0.0%    83.0%  main        prog    prog.c:80
		  60.0%    60.0%  sixty(int)  prog    prog.c:20
		  20.0%    20.0%  ns::thirty  prog    prog.c:30
		   0.0%    14.0%  worker      prog    prog.c:60
	END
	report 0 -q --event cpu-clock --no-inline
	grep -qF "  10.0%    10.0%  ten" out
	run ! grep -qF hot_inline out
}

@test "filters" {
	report 0 --event cpu-clock --comm "work er" --limit 0
	grep -qF -- "--comm work er: 16 samples, 16.0% of all" out
	grep -qF "  62.5%    62.5%  sixty(int)" out
	report 0 -x, --event cpu-clock --tid 11 --symbol worker
	[ "$(awk -F, 'NR > 1 { n += $4 } END { print n }' out)" = 14 ]
	report 0 -x, --event cpu-clock --module 'libx.so.1,[kernel]'
	[ "$(awk -F, 'NR > 1 { n += $4 } END { print n }' out)" = 6 ]
	# The recording begins at 1 ms, its first sample is at 11 ms, then one comes each ms.
	report 0 -x, --time 0.01-0.0195
	[ "$(awk -F, 'NR > 1 { n += $4 } END { print n }' out)" = 10 ]
	report 0 -x, --time 0%-10%
	[ "$(awk -F, 'NR > 1 { n += $4 } END { print n }' out)" = 11 ]
	report 0 --time 50-60 --event cpu-clock
	grep -qF "! no sample of this event in that time" out
}

@test "a wait has in a range of time what overlaps it" {
	python3 "$SOURCE_DIR/tests/cli/waits.py" waits.json
	# The range, then nanoseconds of long_wait, [1 s, 3 s), and of other_wait, [0.5 s, 0.6 s)
	# and [2.98 s, 9 s), where the recording ends. It begins at 0.5 s.
	local range long other
	while read -r range long other; do
		report 0 --json --event off-cpu --time "$range" waits.json
		python3 - "$range" "$long" "$other" <<-'END'
			import json, sys
			(event,) = json.load(open("out"))["events"]
			name, *truth = sys.argv[1:]
			blocked = {w["function"]: w["blocked_ns"] for w in event.get("waits", [])}
			told = [blocked.get(f, 0) for f in ("long_wait", "other_wait")]
			assert told == [int(ns) for ns in truth], (name, told, truth)
			assert event["total"]["period"] == sum(told), (name, event["total"])
		END
		report 0 --folded=period --event off-cpu --time "$range" waits.json
		[ "$(awk '{ sum += $NF } END { printf "%.0f", sum }' out)" = $((long + other)) ]
	done <<-'END'
		0- 2000000000 6120000000
		-100 2000000000 6120000000
		1.5-1.52 20000000 0
		2.48-2.5 20000000 20000000
		0-0.05 0 50000000
		0.1-0.5 0 0
		0.5-3.5 2000000000 1020000000
		0%-50% 2000000000 1870000000
		8.48- 0 20000000
		0.123456789-0.523456789 23456789 0
	END
	report 0 --event off-cpu --threads --time 2.48-2.5 waits.json
	[ "$(grep -cE '^ +1 +20 ms +2\.480 +2\.500 ' out)" = 2 ]
}

@test "colours only where they are wanted" {
	local escape=$'\033'
	report 0
	run ! grep -q "$escape" out
	report 0 --color=always
	grep -q "$escape\[1;31m 60.0%" out || grep -q "$escape\[1;31m60.0%" out
	NO_COLOR=1 report 0 --color=auto
	run ! grep -q "$escape" out
	# With the escapes taken out it is the same text.
	sed "s/$escape\[[0-9;]*m//g" out >plain
	report 0 --color=never
	is out <plain
	TERM=xterm script -qec "'$PMREPORT' -q" /dev/null >out
	grep -q "$escape" out
	TERM=xterm NO_COLOR=1 script -qec "'$PMREPORT' -q" /dev/null >out
	run ! grep -q "$escape" out
}

@test "it fits 80 columns, or as many as asked for" {
	report 0 -q
	[ "$(awk '{ if (length > n) n = length } END { print n }' out)" -le 80 ]
	report 0 -q --width 40
	grep -qE '60\.0% +60\.0%  sixty\(int\)' out
	report 0 --width 0
	grep -qF "because the buffers were full; record with more of them (pmrec -m PAGES), or" out
}

# ---- for programs -------------------------------------------------------------------------

@test "folded stacks" {
	report 0 --folded --event cpu-clock
	is out <<-'END'
		prog;main;sixty(int) 50
		prog;main;ns::thirty 19
		prog;main;ten;hot_inline_[i] 10
		prog;main;fib;fib 2
		prog;main;fib;fib;fib 2
		prog;ns::thirty 1
		work_er;worker;sixty(int) 10
		work_er;worker;sys_read_[k] 4
		work_er;[libx.so.1] 2
	END
	[ ! -s err ]
	report 0 --folded=period --event page-faults
	is out <<<"prog;main;ns::thirty 10"
	report 0 --folded
	grep -qF "the first of 2 events, cpu-clock; --event chooses" err
}

@test "separated values" {
	report 0 '-x;' --event page-faults
	is out <<-'END'
		event;self_percent;total_percent;self_samples;total_samples;self_period;total_period;function;module;file;line;inlined
		page-faults;100.0000;100.0000;5;5;10;10;ns::thirty;prog;/src/prog.c;30;0
		page-faults;0.0000;100.0000;0;5;0;10;main;prog;/src/prog.c;80;0
	END
	report 0 -x , --tree --event cpu-clock --symbol fib
	is out <<-'END'
		event,self_percent,total_percent,self_samples,total_samples,self_period,total_period,depth,function,module,inlined
		cpu-clock,0.0000,100.0000,0,4,0,4000000,0,main,prog,0
		cpu-clock,0.0000,100.0000,0,4,0,4000000,1,fib,prog,0
		cpu-clock,50.0000,100.0000,2,4,2000000,4000000,2,fib,prog,0
		cpu-clock,50.0000,50.0000,2,2,2000000,2000000,3,fib,prog,0
	END
}

@test "JSON" {
	report 0 --json
	json 'd["format"] == "pmreport" and d["version"] == 1' \
		'd["recording"]["command"] == ["./prog", "-n", "3"]' \
		'd["recording"]["exit_code"] == 3 and d["recording"]["exit_signal"] is None' \
		'd["recording"]["cut"] is False and d["recording"]["lost"] == 3' \
		'[e["event"] for e in d["events"]] == ["cpu-clock", "page-faults"]' \
		'd["events"][0]["requested"] == "cycles" and d["events"][0]["freq"] == 1000' \
		'd["events"][0]["stops"] == {"root": 97, "no_cfi": 2, "truncated": 1}' \
		'd["events"][0]["unknown"]["samples"] == 2' \
		'sum(r["self"]["samples"] for r in d["events"][0]["rows"]) == 100' \
		'sum(r["self"]["period"] for r in d["events"][0]["rows"]) == 100000000' \
		'[r["function"] for r in d["events"][0]["rows"]][:3] ==
			["sixty(int)", "ns::thirty", "hot_inline"]' \
		'{"function": None, "module": "libx.so.1", "file": None, "line": None,
			"inlined": False}.items() <= d["events"][0]["rows"][5].items()'
	report 0 --json --bottom-up --event cpu-clock
	json 'd["events"][0]["tree"] == "bottom-up"' \
		'sum(n["total"]["samples"] for n in d["events"][0]["nodes"]
			if n["parent"] is None) == 100' \
		'all(n["id"] == i and (n["parent"] is None or n["parent"] < i)
			for i, n in enumerate(d["events"][0]["nodes"]))'
	local key
	for key in function module thread process line address; do
		report 0 --json --by $key
		json "d['events'][0]['by'] == '$key'" \
			'sum(r["self"]["samples"] for r in d["events"][0]["rows"]) == 100'
	done
	report 0 --json --callers fib --event cpu-clock
	json 'd["events"][0]["of"] == "fib"' 'd["events"][0]["nodes"][0]["function"] == "fib"' \
		'd["events"][0]["nodes"][1]["function"] == "main"'
}

@test "all formats agree" {
	local sum
	for sum in \
		"$("$PMREPORT" --folded --event cpu-clock | awk '{ n += $NF } END { print n }')" \
		"$("$PMREPORT" -x, --event cpu-clock | awk -F, '{ n += $4 } END { print n }')" \
		"$("$PMREPORT" -x, --tree --event cpu-clock | awk -F, '{ n += $4 } END { print n }')" \
		"$("$PMREPORT" -x, --by address --event cpu-clock | awk -F, '{ n += $4 } END { print n }')"; do
		[ "$sum" = 100 ]
	done
}

# ---- where it is read from and written to ---------------------------------------------------

@test "the file: default, named, -i, standard input, compressed" {
	report 0 -q
	cp out expected
	mv samples.json other.json
	report 0 -q other.json
	is out <expected
	report 0 -q -i other.json
	is out <expected
	report 0 -q --stdio - <other.json
	is out <expected
	report 0 other.json
	grep -qF "next: pmreport other.json --tree" out
	if command -v zstd; then
		zstd -q other.json
		report 0 -q other.json.zst
		is out <expected
	fi
	report 2 other.json -i third.json
	fails_with "two files"
}

@test "-o writes all of it or nothing" {
	report 0 -q
	cp out expected
	report 0 -q -o report.txt
	[ ! -s out ]
	is report.txt <expected
	[ "$(stat -c %a report.txt)" = "$(touch x && stat -c %a x)" ]
	echo old >report.txt
	chmod 640 report.txt
	report 2 -o report.txt --comm nobody
	[ "$(cat report.txt)" = old ]
	report 0 -q -o report.txt
	[ "$(stat -c %a report.txt)" = 640 ]
	ln -s samples.json link.json
	report 2 -o link.json
	fails_with "link.json: the report would overwrite the recording"
	cmp samples.json "$FIXTURES/truth.json"
	report 1 -o missing/report.txt
	fails_with "missing/report.txt: cannot write: No such file or directory"
	report 1 -o .
	fails_with ".: cannot write: Is a directory"
	report 0 -q -o /dev/stdout
	is out <expected
	[ "$(ls report.txt* missing* 2>/dev/null)" = report.txt ]
}

@test "a full disk and a closed pipe are told" {
	status=0
	"$PMREPORT" >/dev/full 2>err || status=$?
	[ "$status" = 1 ]
	grep -qxF "pmreport: standard output: cannot write: No space left on device" err
	status=0
	"$PMREPORT" --help >/dev/full 2>err || status=$?
	[ "$status" = 1 ]
	report 1 -o /dev/full
	fails_with "/dev/full: cannot write: No space left on device"
	# Who reads the first lines only, as head does, has seen what he wanted: as of other
	# programs, no word, and an end by SIGPIPE.
	python3 - "$PMREPORT" 2>err <<-'END'
	import os, signal, subprocess, sys
	reader, writer = os.pipe()
	os.close(reader)
	assert subprocess.run(sys.argv[1:], stdout=writer).returncode == -signal.SIGPIPE
	END
	[ ! -s err ]
	status=0
	"$PMREPORT" >&- 2>err || status=$?
	[ "$status" = 1 ]
}

# ---- bad input ------------------------------------------------------------------------------

@test "no file, no file of ours" {
	rm samples.json
	report 1
	fails_with "samples.json: cannot be opened: No such file or directory"
	grep -qF "try: pmrec" err
	mkdir folder
	report 1 folder
	fails_with "folder: cannot be read: Is a directory"
	: >empty.json
	report 1 empty.json
	fails_with "empty.json: the file is empty"
	echo '{"some":"json"}' >other.json
	report 1 other.json
	fails_with "other.json: "
	printf 'PERFILE2\0\0\0\0' >perf.data
	report 1 perf.data
	fails_with "perf.data"
	head -c 4096 /dev/urandom >noise
	report 1 noise
	fails_with "noise: "
}

@test "a newer file is refused, newer keys and types are not" {
	report 0 --json
	cp out expected
	sed '1s/"version":1/"version":2/' samples.json >newer.json
	report 1 newer.json
	fails_with "newer.json: file version 2 is newer"
	sed -e 's/}$/,"more":[1,{"x":null}]}/' -e '3i{"type":"novelty","a":{}}' \
		samples.json >keys.json
	report 0 --json keys.json
	is out <expected
}

@test "errors name the line" {
	local n
	n=$(grep -n -m1 '"type":"sample"' samples.json | cut -d: -f1)
	sed "${n}s/\"stack\":[0-9]*/\"stack\":4000/" samples.json >bad.json
	report 1 bad.json
	fails_with "bad.json:$n: "
	sed "${n}s/\"event\":0/\"event\":7/" samples.json >bad.json
	report 1 bad.json
	fails_with "bad.json:$n: "
	sed "${n}s/\"period\":[0-9]*/\"period\":\"x\"/" samples.json >bad.json
	report 1 bad.json
	fails_with "bad.json:$n: "
	sed "${n}s/{/{{/" samples.json >bad.json
	report 1 bad.json
	fails_with "bad.json:$n: "
	sed 's/"type":"symbol","frame":0/"type":"symbol","frame":99/' samples.json >bad.json
	n=$(grep -n '"frame":99' bad.json | cut -d: -f1)
	report 1 bad.json
	fails_with "bad.json:$n: "
}

@test "a file cut short is reported, with a warning" {
	local n
	n=$(grep -n -m1 '"type":"symbol"' samples.json | cut -d: -f1)
	head -n $((n - 10)) samples.json >cut.json
	printf '{"type":"sample","time":12' >>cut.json
	report 0 cut.json
	grep -qxF "pmreport: cut.json is cut short: the recorder was stopped before it could finish, or records still" err
	grep -qF "! the file is cut short" out
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "names of functions, written at the end, are missing" flat
	grep -qF "CPU time unknown" out
	grep -qF "lost unknown" out || grep -qF "lost 0 or more" out
	report 0 --json cut.json
	json 'd["recording"]["cut"] is True' 'd["recording"]["cpu_ns"] is None' \
		'sum(e["recorded"]["samples"] for e in d["events"]) == 96'
}

@test "cut anywhere, it is a report or an error, never a crash" {
	local size n status
	size=$(stat -c %s samples.json)
	for ((n = 0; n < size; n += 173)); do
		head -c $n samples.json >cut.json
		status=0
		"$PMREPORT" cut.json >out 2>err || status=$?
		[ "$status" -le 1 ]
		[ -s err ]
	done
}

@test "what came while a snapshot was written is told once, and is no want of buffers" {
	sed '2s/.*/{"type":"note","text":"3 samples came while a snapshot was written, and are in no file"}/' \
		samples.json >snapshot.json
	report 0 snapshot.json
	grep -qxF "! 3 samples came while a snapshot was written, and are in no file" out
	run ! grep -qF "buffers were full" out
}

@test "zero samples: it says so, and why" {
	grep -v '"type":"sample"' samples.json |
		sed -e 's/"samples":[0-9]*/"samples":0/g' -e 's/"lost":3/"lost":0/g' \
			-e 's/"cpu_ns":[0-9]*/"cpu_ns":3000000/' >none.json
	report 0 none.json
	grep -qF "0 samples of cpu-clock @ 1,000 Hz   lost 0" out
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "! no samples: the program ran for 3 ms of CPU time, and 1000 samples a second were asked for; record more often (pmrec -F max)" flat
	grep -qF "! no samples: page-faults happened less than 2 times in 3 ms" flat
	run ! grep -qF "next:" out
	sed 's/"lost":0/"lost":2500/g' none.json >lost.json
	report 0 lost.json
	grep -qF "! no samples: all of them were lost" out
	run ! grep -qF "record more often" out
	report 0 --tree none.json
	report 0 --folded --event cpu-clock none.json
	[ ! -s out ]
	report 0 --json none.json
	json 'd["events"][0]["rows"] == []' 'd["events"][0]["total"]["percent"] == 0'
}

@test "the recorder's death, and what is unknown, are told" {
	sed -e 's/"exit":{"code":3}/"exit":{"signal":11}/' \
		-e 's/"stack":1}/"stack":10}/' samples.json >bad.json
	report 0 --event cpu-clock bad.json
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "! the program was ended by signal 11, SIGSEGV" flat
	grep -qF "! 52.0% in functions without a name: 52.0% in libx.so.1 (stripped; build-id ffeeddccbbaa9988); try: its -dbgsym package, an unstripped copy of it (--symfs DIR), --debuginfod, or --by address" flat
	grep -v '"type":"footer"' bad.json >cut-names.json
	report 0 --event cpu-clock cut-names.json
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "52.0% in libx.so.1 (the recording was cut before its names, and none were found here; build-id ffeeddccbbaa9988); try: --symfs DIR" flat
	sed -e 's/"samples":105/"samples":106/' samples.json >bad.json
	report 0 bad.json
	grep -qF "! the recorder wrote 106 samples, but the file has 105" out
	sed -e '/"type":"note"/d' samples.json >bad.json
	report 0 bad.json
	grep -qF "! event cycles was not available: cpu-clock was used instead" out
	sed -e 's/"stack":1}/"stack":11,"stop":"truncated"}/' samples.json >bad.json
	report 0 --event cpu-clock bad.json
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "! 51.0% of the stacks are cut off after 32768 bytes; record with pmrec --stack-bytes 65528" flat
	sed -i 's/^{"type":"footer"/{"type":"note","text":"2 of 2 truncated stacks have a frame beyond what the kernel copies: a larger --stack-bytes does not help"}\n&/' bad.json
	report 0 --event cpu-clock bad.json
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "! 51.0% of the stacks are cut off at frames that are too large for any copy (at most 65528 bytes): their outer callers are missing" flat
	[[ $(<flat) != *"record with pmrec --stack-bytes"* ]]
}

@test "two events that became the same are told apart" {
	sed '1s/"page-faults"/"cpu-clock"/g' samples.json >twice.json
	report 0 twice.json
	grep -q "samples of cpu-clock (for cycles) @ 1,000 Hz" out
	grep -q "samples of cpu-clock, one every 2" out
	report 0 -x, twice.json
	[ "$(cut -d, -f1 out | sort -u | tr '\n' ,)" = \
		"cpu-clock,cpu-clock (for cycles),event," ]
}

@test "functions without names: no recursion is made up, and addresses are offered" {
	grep -v '"type":"symbol"' samples.json |
		sed 's/"kind":"file"/"kind":"anon"/' >nameless.json
	report 0 --event cpu-clock --tree nameless.json
	grep -qF "[unknown] in" out
	run ! grep -qF "(recursive)" out
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "[anon] (code made while running, and not told of by who made it; record" flat
	grep -qF "node --perf-basic-prof, java" flat
	sed '1s|"command":\["[^"]*"|"command":["/usr/bin/node"|' nameless.json >node.json
	report 0 --event cpu-clock node.json
	tr '\n' ' ' <out | tr -s ' ' >flat
	grep -qF "made it; record node --perf-basic-prof)" flat
	report 0 --event cpu-clock nameless.json
	[ "$(tail -1 out)" = "next: pmreport nameless.json --tree | --by address" ]
}

@test "hostile names reach no terminal" {
	sed -e 's/"name":"sixty(int)"/"name":"\\u001b]0;owned\\u0007\\u009b2J\\u0000x"/' \
		-e 's/work er/\\u001b[2J;\\nx/' -e 's#/opt/app/prog#/opt/\\u001b[31m#' \
		-e 's#"\./prog"#"\\r\\u001b[2J"#' samples.json >evil.json
	local view
	for view in --tree --bottom-up "--by module" "--by thread" "--callers main" --folded; do
		# shellcheck disable=SC2086
		report 0 $view evil.json || report 1 $view evil.json
		run ! env LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" out err
		run ! grep -q $'\u009b' out err
	done
}

# ---- the command line -----------------------------------------------------------------------

@test "two recordings as text: the command that compares them is named" {
	report 2 new.json --diff samples.json
	grep -qxF "pmreport: try: pmdiff samples.json new.json" err
}

@test "wrong options name near ones" {
	report 2 --calers main
	fails_with "unknown option --calers"
	fails_with "did you mean --callers?"
	grep -qxF "pmreport: try: pmreport --help" err
	report 2 --bottomup
	fails_with "did you mean --bottom-up?"
	report 2 --xyzzy
	grep -qxF "pmreport: try: pmreport --help" err
	report 2 -Z
	fails_with "unknown option -Z"
	report 2 -qZ
	fails_with "unknown option -Z"
	report 2 --tree=3
	fails_with "option --tree takes no value"
	report 2 --callers
	fails_with "option --callers needs a value"
}

@test "wrong values say what is right" {
	report 2 --by colour
	fails_with "function, module, thread, process, line, address, comm, cpu or"
	local time
	for time in 3-2 1 x-y 5%-6 - 1-2-3 1e3-2 -- ''; do
		report 2 --time "$time"
		fails_with "is no range of time: it looks like 1.5-2 (seconds) or 10%-20%"
	done
	local limit
	for limit in -1 101 x 1e1 '' nan; do
		report 2 --limit "$limit"
		fails_with "is no percentage"
	done
	report 2 --color=blue
	fails_with "--color is auto, always or never"
	report 2 --width 3
	fails_with "is no width"
	report 2 --folded=bytes
	fails_with "--folded counts samples or period"
	report 2 -x ''
	fails_with "cannot separate fields"
	report 2 --json --folded
	fails_with "either json or folded"
	report 2 --tree --bottom-up
	fails_with "only one at a time"
	report 2 --folded --tree
	fails_with "--format folded has whole stacks"
	report 2 a b
	fails_with "one file at a time"
}

@test "names that are not there name those that are" {
	report 2 --callers sxity
	fails_with "no function of this recording matches 'sxity'"
	report 2 --callers fob
	grep -qxF "pmreport: try: fib" err
	report 2 --callers 'i'
	fails_with "'i' fits 5 functions"
	grep -qF "one of: main" err
	report 2 --callers '('
	fails_with "no function is called '('"
	report 2 --event instructions
	fails_with "event 'instructions' was not recorded"
	grep -qF "cpu-clock, page-faults" err
	report 2 --comm nobody
	fails_with "no thread is called 'nobody'"
	report 2 --tid 99
	fails_with "no thread 99 in this recording"
	report 2 --pid x
	fails_with "'x' is no process id"
	report 2 --module libz
	fails_with "no module of this recording matches 'libz'"
}

@test "help, version and perf's words" {
	report 0 --help
	grep -q "^usage: pmreport" out
	report 0 --version
	grep -qE '^pmreport [0-9]+\.[0-9]+\.[0-9]+$' out
	report 0 -q --event cpu-clock
	cp out expected
	report 0 -q --event cpu-clock --stdio --no-children --sort symbol
	is out <expected
	report 0 -q --event cpu-clock -s dso -c prog -d prog -S main
	grep -qF "/opt/app/prog" out
}
