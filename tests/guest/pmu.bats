#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What only a machine with a PMU can show. Its processor does 1 cycle a nanosecond and an
# instruction every second cycle, by instruction count: times and counts do not depend on what
# else the host does.

load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	level=$(cat "$LEVEL_FILE")
	echo -1 >"$LEVEL_FILE"
}

teardown() {
	echo "$level" >"$LEVEL_FILE"
	if [ -n "${mounted-}" ]; then
		umount "$mounted"
	fi
}

# keep NAME: the recording goes to whoever started the guest.
keep() {
	mkdir -p "$RESULTS"
	cp "$1" "$RESULTS/"
}

# ---- sampling -----------------------------------------------------------------------------

@test "a frequency gives as many samples as it says, within 3 %" {
	"$PMREC" -q -e cycles -F 999 -o frequency.json -- "$PROGRAMS/split" 2
	holds frequency.json 'events[0]["actual"] == "cycles"' 'footer["lost"] == 0' \
		'abs(len(samples) / (footer["cpu_ns"] / 1e9 * 999) - 1) < 0.03' \
		'abs(footer["events"][0]["period"] / footer["cpu_ns"] - 1) < 0.03'
	keep frequency.json
}

@test "a period gives as many samples as cycles were counted, within 3 %" {
	"$PMREC" -q -e cycles -c 1000000 -o period.json -- "$PROGRAMS/split" 1
	holds period.json 'abs(len(samples) * 1e6 / footer["cpu_ns"] - 1) < 0.03' \
		'all(s["period"] == 1000000 for s in samples)'
	keep period.json
}

# This emulator sees an overflow of its counter for instructions not before the kernel is entered
# next, at the latest by the clock's tick, every 4 ms. So periods are longer than that; of 1 ms
# a third is sampled, by perf as well as by us.
@test "instructions are sampled: half as many as cycles here" {
	"$PMREC" -q -e instructions:u -c 5000000 -o period.json -- "$PROGRAMS/split" 2
	holds period.json 'abs(len(samples) * 1e7 / footer["cpu_ns"] - 1) < 0.03'
	"$PMREC" -q -e instructions:u -F 99 -o frequency.json -- "$PROGRAMS/split" 2
	holds frequency.json 'abs(len(samples) / (footer["cpu_ns"] / 1e9 * 99) - 1) < 0.05' \
		'abs(2 * footer["events"][0]["period"] / footer["cpu_ns"] - 1) < 0.05'
}

@test "stacks of a real program reach the root in 99 of 100 samples" {
	"$PMREC" -q -e cycles:u -F 2000 -o s.json -- \
		python3 -c 'import json; json.loads(json.dumps([{"a": i} for i in range(60000)]))'
	holds s.json 'len(samples) > 1000' \
		'footer["stops"]["root"] >= 0.99 * footer["samples"]'
	keep s.json
}

# agrees COMMAND...: with libdwfl, in every sample; adds to $equal and $all.
agrees() {
	"$BUILD_DIR/tests/oracle/oracle-dwfl" --event cycles:u --hz 1000 --command -- "$@" \
		>said || {
		head -n 60 said
		return 1
	}
	grep ' samples of ' said
	grep -q '^ok .* 0 mismatches' said
	equal=$((equal + $(sed -n 's/.*verdicts:.* equal \([0-9]*\).*/\1/p' said)))
	all=$((all + $(sed -n 's/.* - \([0-9]*\) samples of .*/\1/p' said)))
}

# Of Debian's gcc. clang 14's CFI for aarch64 is that of calls only: in its prologues and
# epilogues nobody knows where the return address is.
@test "stacks are those of libdwfl, sample by sample" {
	local equal=0 all=0
	agrees jq -n '[range(20000)] | map(. * 2 | tostring) | sort | length'
	agrees gawk 'BEGIN {
		for (i = 0; i < 150000; i++) {
			x[i % 100] = x[i % 100] i
			if (length(x[i % 100]) > 50)
				x[i % 100] = ""
		}
	}'
	# shellcheck disable=SC2016
	agrees bash -c 'for ((i = 0; i < 20000; i++)); do a[i % 10]=$((i * 3)); done'
	agrees python3 -c 'import json; json.loads(json.dumps([{"a": i} for i in range(20000)]))'
	# What libdwfl has no CFI for, mostly the PLT, is compared as far as it has.
	echo "$equal of $all are equal"
	[ "$all" -gt 3000 ]
	[ "$equal" -gt $((all * 90 / 100)) ]
}

# The CFI of glibc's resolver leaves out the 16 bytes that the PLT has pushed: of a caller that
# counts its frame from the stack pointer, its own caller was not found, by us and by libdwfl.
@test "who calls what is bound lazily is found, and by libdwfl with the bytes that it misses" {
	local equal=0 all=0
	local command=("$PROGRAMS/bind-lazily" 0.2 "$PROGRAMS/libbind-lazily.so")
	"$PMREC" -q -e cycles:u -F 4000 -o s.json -- "${command[@]}"
	holds s.json 'sum("calls_all" in chain(s)[2:] for s in samples) > 200' \
		'sum(chain(s)[chain(s).index("calls_all") + 1:][:2] == ["binds", "main"] and "stop" not in s for s in samples if "calls_all" in chain(s)) >= 0.99 * sum("calls_all" in chain(s) for s in samples)' \
		'footer["stops"]["root"] >= 0.99 * len(samples)'
	agrees "${command[@]}"
	grep -q ' resolver [0-9]' said
}

@test "a group is sampled by its leader, and both are counted" {
	# The kernel keeps the rate in time that passes (perf_adjust_period()): while the program is
	# in the kernel, or pmrec has the CPU, the event does not count, and the periods get shorter.
	# There are therefore more samples than CPU time times the rate, and each stands for less.
	"$PMREC" -q -e '{cycles:u,instructions:u}:S' -F 999 -o s.json -- "$PROGRAMS/split" 1
	holds s.json 'abs((len(samples) - 1) / ((samples[-1]["time"] - samples[0]["time"]) / 1e9 * 999) - 1) < 0.03' \
		'abs(footer["events"][0]["period"] / footer["events"][0]["counted"] - 1) < 0.03' \
		'{s["event"] for s in samples} == {0}' \
		'all(s["counts"][::2] == [0, 1] for s in samples)' \
		'abs(samples[-1]["counts"][1] / footer["cpu_ns"] - 1) < 0.03' \
		'abs(2 * samples[-1]["counts"][3] / footer["cpu_ns"] - 1) < 0.03'
}

# ---- what goes wrong ----------------------------------------------------------------------

@test "events that the PMU lacks are named" {
	run -125 "$PMREC" -q -e cache-misses -o s.json -- "$PROGRAMS/split" 0.1
	[[ $output == *"cache-misses: this machine does not have the event"* ]]
	"$PMSTAT" --json -o stat.json -e cycles,cache-misses -- "$PROGRAMS/split" 0.1
	jq -c '.events[:2]' stat.json
	jq -e '.events[0].status == "ok" and .events[1].status == "not_supported" and
		(.events[1].why | contains("does not have the event")) and
		.runs[0].counts[0].value > 9e7 and .runs[0].counts[1].value == null' stat.json
}

@test "at paranoid 3 of Debian an ordinary user is told why, and what helps" {
	chmod 777 .
	echo 3 >"$LEVEL_FILE"
	run -125 nobody "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
	echo "$output"
	[[ $output == *"perf_event_paranoid is 3"* ]]
	[[ $output == *"try: sudo sysctl kernel.perf_event_paranoid=1"* ]]
	nobody "$PMSTAT" --json -o stat.json -- "$PROGRAMS/split" 0.1
	jq -c '.warnings, (.events[0] | .status, .why)' stat.json
	jq -e '.events[0].status == "not_permitted" and
		(.events[0].why | contains("perf_event_paranoid is 3")) and
		(.warnings | all(contains("offers no hardware counters") | not))' stat.json
	nobody "$PMREC" --engine auto -o s.json -- "$PROGRAMS/split" 1
	holds s.json 'len(samples) > 60' 'split_is_true(50)' \
		'any("perf_event_paranoid is 3" in n["text"] for n in notes)'
}

@test "a disk of 2 MB that fills up leaves a file that can be read" {
	mkdir disk
	mount -t tmpfs -o size=2m tmpfs disk
	mounted=$PWD/disk
	run -125 "$PMREC" -e cycles -F 20000 -o disk/s.json -- "$PROGRAMS/deep" 2
	echo "$output"
	[[ $output == *"No space left on device"* ]]
	[ "$(stat -c %s disk/s.json)" = 2097152 ]
	"$PMREPORT" --json disk/s.json >report.json
	jq -c '.recording.cut, .events[0].recorded' report.json
	jq -e '.recording.cut and .events[0].recorded.samples > 5000' report.json
}

# ---- counting -----------------------------------------------------------------------------

@test "ten events on seven counters are scaled within 1 % of what they are without" {
	"$PMSTAT" --json -o one.json -e r08:u,r11:u -- "$PROGRAMS/sumbench" 40000000 >sum
	"$PMSTAT" --json -o ten.json \
		-e r08:u,r08:u,r08:u,r08:u,r08:u,r11:u,r11:u,r11:u,r11:u,r11:u \
		-- "$PROGRAMS/sumbench" 40000000 >sum
	jq -c '.runs[0].counts[]' one.json ten.json
	jq -e 'all(.runs[0].counts[:2][]; .status == "ok")' one.json
	jq -e --slurpfile one one.json '
		[$one[0].runs[0].counts[0, 1].value] as $truth | .runs[0].counts[:10] |
		(map(select(.status == "multiplexed" and .running_ns < .enabled_ns)) | length >= 4) and
		(to_entries | all(.value.value / $truth[if .key < 5 then 0 else 1 end] - 1
			| . > -0.01 and . < 0.01))' ten.json
}

@test "instructions of a loop are counted to one in a thousand, and the same each time" {
	local ints
	for ints in 2000000 4000000 4000000; do
		"$PMSTAT" --json -o "$ints.json" -e instructions:u -- "$PROGRAMS/sumbench" "$ints" >sum
		[ ! -e again.json ] || mv again.json first.json
		cp "$ints.json" again.json
	done
	jq -c '.runs[0].counts[0]' 2000000.json first.json again.json
	jq -n -e '[inputs.runs[0].counts[0].value] |
		((.[1] - .[0]) / 2e6) as $each | ($each - ($each | round)) as $off |
		$each > 4 and $off < 0.001 * $each and $off > -0.001 * $each and
		(.[1] - .[2] | fabs) < 1e-5 * .[1]' 2000000.json first.json again.json
}

# functions ARGUMENT...: of pmstat, with probes, into s.json; what the program says into `truth`.
functions() {
	"$PMSTAT" --engine uprobe -e instructions:u --json -o s.json "$@" >truth || [ $? = 7 ]
	cat truth
	jq -c '.scopes[] | [.name, .calls, .unfinished, .calls_exact, .counts[0].value]' s.json
}

@test "instructions of functions are exact, to the last one, and so are they of each call" {
	local i
	for i in 1 2; do
		functions --fn goes_round --fn calls_it -- "$PROGRAMS/count-instructions" 200 50
		diff <(head -n 2 truth) \
			<(jq -r '.scopes[] | "\(.name): \(.calls) \(.counts[0].value)"' s.json)
		jq -e '.scopes[0].per_call[0] | .min == 151 and .p50 == 151 and .max == 151' s.json
		jq -e 'all(.scopes[]; .calls_exact and .lost == 0) and .overhead.per_call[0].value == 0' s.json
	done
}

@test "instructions of a function that sums up are those of its loop, whatever else runs" {
	local ints
	for ints in 1000 3000 100000; do
		functions --fn sum -- "$PROGRAMS/sumbench" "$ints"
		mv s.json $ints.json
	done
	jq -n -e '[inputs.scopes[0].counts[0].value] | ((.[1] - .[0]) / 2000) as $each |
		(.[0] - 1000 * $each) as $fixed | ($each == 4 or $each == 5) and
		$fixed > 0 and $fixed < 8 and .[2] == 100000 * $each + $fixed' \
		1000.json 3000.json 100000.json
}

# Hits of this kernel have no flags.
@test "who jumps out of a function on a condition is seen by a breakpoint, else that is told" {
	local words=(--fn on_flags --fn on_register -- "$PROGRAMS/count-instructions" 101 1)
	functions "${words[@]}"
	jq -e '[.scopes[] | [.calls, .unfinished]] == [[101, 51], [101, 50]]' s.json
	jq -e '.warnings | any(contains("whether a conditional jump is taken (2, one of them of"))' \
		s.json
	"$PMSTAT" --engine ptrace -e task-clock --json -o s.json "${words[@]}" >truth
	jq -e '[.scopes[] | [.calls, .unfinished]] == [[101, 0], [101, 0]]' s.json
}

# Before Linux 6.12 nothing hands counters at places on to new threads: each is held until it has its
# own.
@test "calls of new threads are exact before Linux 6.12, and so are their instructions" {
	local ways=(called_once called_thousand recursive jumps_out jumped_over tail_begin is_even
		is_odd in_handler interrupted never_called)
	functions "${ways[@]/#/--fn=}" -- "$PROGRAMS/count-calls" 300
	jq -r '.scopes[] | "\(.name): \(.calls) \(.unfinished)"' s.json >ours
	diff <(grep -v '^called_many\|^tail_end' truth) ours
	jq -e 'all(.scopes[]; .calls_exact)' s.json
	# Their times may be those of seeing what they call: that is said, and nothing else.
	jq -e '.warnings | all(contains("took is not known: most of what was counted"))' s.json
	jq -e '.scopes[1].counts[0].value as $all | $all > 0 and $all % 4000 == 0' s.json
}

# ---- from inside --------------------------------------------------------------------------

# shares TABLE LEAST POINTS: a, b and c have 10, 4 and 2 parts of at least so many ticks, within
# POINTS of 100, or where that is more as far as chance lets them.
shares() {
	cat "$1"
	gawk -v least="$2" -v points="$3" '
	     $5 ~ /^[abc]$/ { self[$5] = $1; sum += $1 }
	     function off(name, p,   d, most) {
	         d = self[name] / sum - p
	         most = 4.5 * sqrt(p * (1 - p) / sum)
	         if (most < points / 100)
	             most = points / 100
	         return d > most || d < -most
	     }
	     END { exit sum < least || off("a", 10 / 16) || off("b", 4 / 16) || off("c", 2 / 16) }
	' "$1"
}

@test "a program that profiles itself: 10, 4 and 2 parts, by cycles and by timers" {
	PMSELF_OUTPUT=s.json "$PROGRAMS/self-abc" 1 2>cycles
	grep -q " of cycles at 999 Hz (perf) in 1 thread" cycles
	holds s.json 'abs(len(samples) / (footer["cpu_ns"] / 1e9 * 999) - 1) < 0.03' \
		'abs(footer["events"][0]["period"] / footer["cpu_ns"] - 1) < 0.03' \
		'sum("stop" in s for s in samples) < 0.01 * len(samples)'
	# So many that it is 3 points indeed.
	PMSELF_RATE=4000 "$PROGRAMS/self-abc" 2 2>cycles
	shares cycles 7000 3
	PMSELF_ENGINE=timer PMSELF_OUTPUT=s.json "$PROGRAMS/self-abc" 4 2>timer
	shares timer 960 3
	grep -q " of cpu-clock at 999 Hz (timer) in 1 thread" timer
	holds s.json 'abs(sum(s["period"] for s in samples) / footer["cpu_ns"] - 1) < 0.03' \
		'sum("stop" in s for s in samples) < 0.01 * len(samples)'
}

# The same counts in both ways: they are of the program's own code, which does the same each time.
@test "scopes count cycles and instructions, and take fewer calls where counters may be read" {
	local access file=/proc/sys/kernel/perf_user_access
	for access in 0 1; do
		echo $access >$file
		"$PROGRAMS/self-scope" 2>scopes.$access
		"$PROGRAMS/self-scope" cost 1000 >cost.$access 2>/dev/null
	done
	echo 0 >$file
	cat scopes.* cost.*
	# calls, elapsed and CPU seconds, cycles, instructions, name
	gawk 'function near(x, y, part) { return x / y > 1 - part && x / y < 1 + part }
	     FNR > 2 { rows++
	               of_clock += near($4, 2 * $5, 0.002) && near($4, $3 * 1e9, 0.02)
	               if ($6 in known)
	                   of_other += near($5, known[$6], 0.001)
	               known[$6] = $5 }
	     END { exit rows != 4 || of_clock != 4 || of_other != 2 }' scopes.0 scopes.1
	gawk '{ ns[NR] = $1 } END { exit ns[2] > 0.7 * ns[1] }' cost.0 cost.1
}

# ---- samples against counts ---------------------------------------------------------------

@test "where samples stand for a part of what was counted, that is told" {
	local way
	for way in -q --per-task; do
		"$PMREC" -q $way -e instructions:u -c 500000 -o s.json -- "$PROGRAMS/split" 1
		holds s.json 'len(samples) * 1e6 < 0.5 * footer["cpu_ns"]' \
			'abs(2 * (footer["events"][0]["counted"] - footer["events"][0].get("others", 0)) / footer["cpu_ns"] - 1) < 0.05' \
			'sum("samples of instructions:u stand for" in n["text"] for n in notes) == 1'
		"$PMREPORT" s.json >report
		[ "$(grep -c "samples of instructions:u stand for" report)" = 1 ]
	done
}

@test "where they stand for all of it, nothing is told" {
	local way
	for way in "-F 4000" "-F 999 --per-task --delay 100" "-c 1000000 --per-task" "-F 999 -a" \
		"-F 10000 --off-cpu"; do
		# shellcheck disable=SC2086 # options
		"$PMREC" -q -e cycles $way -o s.json -- sh -c '"$0" 0.1; sleep 0.1; "$0" 0.1' \
			"$PROGRAMS/split"
		holds s.json 'footer["events"][0]["period"] > 0.95 * (footer["events"][0]["counted"] - footer["events"][0].get("others", 0))' \
			'not any("stand for" in n["text"] for n in notes)'
	done
}
