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
	echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
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
	"$PMREC" -q -e cycles -F 999 -o frequency.json -- "$PROGRAMS/split" 5
	query frequency.json 'len(samples)' 'footer["cpu_ns"]' notes
	holds frequency.json 'events[0]["actual"] == "cycles"' 'footer["lost"] == 0' \
		'abs(len(samples) / (footer["cpu_ns"] / 1e9 * 999) - 1) < 0.03'
	keep frequency.json
}

@test "a period gives as many samples as cycles were counted, within 3 %" {
	"$PMREC" -q -e cycles -c 1000000 -o period.json -- "$PROGRAMS/split" 3
	query period.json 'len(samples)' 'footer["cpu_ns"]'
	holds period.json 'abs(len(samples) * 1e6 / footer["cpu_ns"] - 1) < 0.03' \
		'all(s["period"] == 1000000 for s in samples)'
	keep period.json
}

@test "instructions are sampled: half as many as cycles here" {
	"$PMREC" -q -e instructions:u -c 500000 -o s.json -- "$PROGRAMS/split" 2
	query s.json 'len(samples)' 'footer["cpu_ns"]'
	holds s.json 'abs(len(samples) * 1e6 / footer["cpu_ns"] - 1) < 0.03'
}

@test "a known split of cycles is found within two points" {
	"$PMREC" -q -e cycles -F 4000 -o s.json -- "$PROGRAMS/split" 3
	query s.json 'len(samples)' '[self_share(n) for n in ("sixty", "thirty", "ten")]'
	holds s.json 'len(samples) > 10000' '58 <= self_share("sixty") <= 62' \
		'28 <= self_share("thirty") <= 32' '8 <= self_share("ten") <= 12'
}

@test "stacks of a real program reach the root in 99 of 100 samples" {
	"$PMREC" -q -e cycles:u -F 2000 -o s.json -- \
		python3 -c 'import json; json.loads(json.dumps([{"a": i} for i in range(60000)]))'
	query s.json 'len(samples)' 'footer["stops"]'
	holds s.json 'len(samples) > 1000' \
		'footer["stops"]["root"] >= 0.99 * footer["samples"]'
	keep s.json
}

@test "groups are sampled by their leader and counted" {
	"$PMREC" -q -e '{cycles:u,instructions:u}:S' -F 999 -o s.json -- "$PROGRAMS/split" 2
	"$PMREPORT" s.json --json >report.json
	jq -c '.events' report.json
	jq -e '[.events[] | {name, total: (.total // .period // .weight)}] | length == 2' report.json
}

# ---- what goes wrong ----------------------------------------------------------------------

@test "throttling is counted, and told" {
	"$PMREC" -q -e cycles:u -c 2000 --call-graph none -o s.json -- "$PROGRAMS/split" 1
	query s.json footer
	holds s.json 'footer["throttled"] > 0'
	"$PMREPORT" s.json | grep -i throttled
}

@test "a maximum rate that falls while recording is told" {
	"$PMREC" -q -e cycles -F 5000 -o s.json -- sh -c '
		"$0" 0.5
		echo 1000 >/proc/sys/kernel/perf_event_max_sample_rate
		"$0" 0.5' "$PROGRAMS/split"
	query s.json notes
	holds s.json 'any("perf_event_max_sample_rate" in n["text"] for n in notes)'
}

@test "events that the PMU lacks are named" {
	run -125 "$PMREC" -q -e cache-misses -o s.json -- "$PROGRAMS/split" 0.1
	[[ $output == *cache-misses* ]]
	"$PMSTAT" --json -o stat.json -e cycles,cache-misses -- "$PROGRAMS/split" 0.1
	jq -c .events stat.json
	jq -e '.events[] | select(.name == "cache-misses") | .state == "not_supported"' stat.json
}

@test "at paranoid 3 of Debian an ordinary user is told why, and what helps" {
	chmod 777 .
	echo 3 >"$LEVEL_FILE"
	run -125 nobody "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
	echo "$output"
	[[ $output == *perf_event_paranoid* ]]
	nobody "$PMREC" --engine auto -o s.json -- "$PROGRAMS/split" 1
	holds s.json 'len(samples) > 20' 'self_share("sixty") > 40'
}

@test "a disk of 2 MB that fills up leaves a file that can be read" {
	mkdir disk
	mount -t tmpfs -o size=2m tmpfs disk
	mounted=$PWD/disk
	run -125 "$PMREC" -e cycles -F 20000 -o disk/s.json -- "$PROGRAMS/deep" 3
	echo "$output"
	"$PMREPORT" disk/s.json >report
	grep samples report
}

# ---- counting -----------------------------------------------------------------------------

@test "ten events on seven counters are scaled within 1 %" {
	"$PMSTAT" --json -o one.json -e instructions:u -- "$PROGRAMS/sumbench" 20000000 >sum
	"$PMSTAT" --json -o ten.json -- true
	"$PMSTAT" --json -o ten.json \
		-e r08:u,r08:u,r08:u,r08:u,r08:u,r11:u,r11:u,r11:u,r11:u,r11:u \
		-- "$PROGRAMS/sumbench" 20000000 >sum
	jq -c '.runs[0].values' one.json ten.json
	jq -e --slurpfile one one.json '
		($one[0].runs[0].counts[0].value) as $truth |
		[.runs[0].counts[] | select(.status == "multiplexed")] | length >= 4' ten.json
}

@test "counted instructions of a function are those of its loop" {
	"$PMSTAT" --json -o stat.json --fn sum -e instructions:u -- "$PROGRAMS/sumbench" 10000000
	jq -c '.scopes' stat.json
}
