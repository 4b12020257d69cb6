#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The kernel's limit on samples a second, which is the whole machine's: nothing else is tested
# meanwhile. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

RATE_FILE=/proc/sys/kernel/perf_event_max_sample_rate

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	need_root
	rate=$(cat "$RATE_FILE")
	echo 100000 2>/dev/null >"$RATE_FILE" || skip "$RATE_FILE cannot be changed here"
}

teardown() {
	[ -z "${rate-}" ] || echo "$rate" 2>/dev/null >"$RATE_FILE" || true
}

# By default cycles are sampled, where there are none the clock: both of them have 10 us here.
# bats test_tags=guest
@test "throttling is counted, and told" {
	echo 5000 >"$RATE_FILE"
	"$PMREC" -q -c 10000 --call-graph none -o s.json -- "$PROGRAMS/split" 1
	# Of each tick most is missing.
	holds s.json 'footer["throttled"] > 100' \
		'len(samples) * 10000 < 0.5 * footer["cpu_ns"]' \
		'any("paused sampling" in n["text"] and n["text"].endswith("a larger -c") for n in notes)'
	"$PMREPORT" s.json >report
	[ "$(grep -c "paused sampling\|throttled" report)" = 1 ]
}

# bats test_tags=guest
@test "a maximum rate that falls while recording is told" {
	# shellcheck disable=SC2016
	"$PMREC" -q -F 5000 -o s.json -- sh -c '
		"$0" 0.3
		echo 1000 >/proc/sys/kernel/perf_event_max_sample_rate
		"$0" 0.3' "$PROGRAMS/split"
	holds s.json 'any("from 100000 to 1000 Hz" in n["text"] for n in notes)'
}

# Not the usual maximum: 100,000 interrupts a second on each CPU leave no time for anything else
# where they are a virtual machine's timer.
@test "-F max is the kernel's maximum, and more is lowered to it, with a warning" {
	echo 8000 >"$RATE_FILE"
	"$PMREC" -q -e cpu-clock -F max --stack-bytes 256 -o s.json -- "$PROGRAMS/split" 0.05
	holds s.json "events[0]['freq'] == 8000" 'len(samples) > 50'
	run --separate-stderr "$PMREC" -e cpu-clock -F 4000000000 -o s.json -- true
	[ "$status" = 0 ]
	[[ $stderr == *"pmrec: warning: "*"4000000000"* ]]
	holds s.json "events[0]['freq'] == 8000"
}
