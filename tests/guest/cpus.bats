#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several CPUs that come and go: a guest with two.

load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	echo 1 >/sys/devices/system/cpu/cpu1/online
}

@test "a CPU goes and comes back while all are recorded" {
	"$PMREC" -a -e cycles -F 500 -o s.json -- sh -c '
		taskset 2 "$0" 1 &
		taskset 1 "$0" 0.5
		echo 0 >/sys/devices/system/cpu/cpu1/online
		"$0" 0.5
		echo 1 >/sys/devices/system/cpu/cpu1/online
		taskset 2 "$0" 0.5
		wait' "$PROGRAMS/split"
	query s.json 'len(samples)' notes 'footer'
	holds s.json '{s["cpu"] for s in samples} == {0, 1}' 'self_share("sixty") > 20'
}

@test "a CPU that is off is no CPU to record" {
	echo 0 >/sys/devices/system/cpu/cpu1/online
	"$PMREC" -a -e cycles -o s.json -- "$PROGRAMS/split" 0.5
	holds s.json '{s["cpu"] for s in samples} == {0}'
	"$PMSTAT" -a --per cpu --json -o stat.json -- "$PROGRAMS/split" 0.2
	jq -e '[.runs[0].rows[].cpu] == [0]' stat.json
}
