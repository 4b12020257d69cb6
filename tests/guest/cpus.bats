#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several CPUs that come and go: a guest with two, which take turns, for they are emulated.

load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	echo 1 >/sys/devices/system/cpu/cpu1/online
}

@test "a CPU goes and comes back while all are recorded" {
	# shellcheck disable=SC2016
	"$PMREC" -a -e cycles -F 200 -o s.json -- sh -c '
		taskset 2 "$0" 1
		echo 0 >/sys/devices/system/cpu/cpu1/online
		taskset 1 "$0" 1
		echo 1 >/sys/devices/system/cpu/cpu1/online
		taskset 2 "$0" 2.5' "$PROGRAMS/split"
	local on='[s["time"] for s in samples if s["cpu"] == 1 and "rounds" in chain(s)]'
	query s.json 'len(samples)' notes footer "len($on)" \
		'[sum(s["cpu"] == c for s in samples) for c in (0, 1)]'
	# Before, and again; that it is back is noticed once a second, and what programs have mapped
	# until then is read.
	holds s.json '{s["cpu"] for s in samples} == {0, 1}' \
		"max(b - a for a, b in zip($on, ${on}[1:])) > 9e8" \
		"sum(t < ${on}[0] + 9e8 for t in $on) > 100" \
		"sum(t > ${on}[-1] - 9e8 for t in $on) > 100"
}

@test "a CPU that is off is no CPU to record" {
	echo 0 >/sys/devices/system/cpu/cpu1/online
	"$PMREC" -a -e cycles -o s.json -- "$PROGRAMS/split" 0.5
	holds s.json '{s["cpu"] for s in samples} == {0}' 'len(samples) > 250'
	"$PMSTAT" -a --per cpu --json -o stat.json -- "$PROGRAMS/split" 0.2
	jq -c '.runs[0].rows' stat.json
	jq -e '[.runs[0].rows[].cpu] == [0]' stat.json
}
