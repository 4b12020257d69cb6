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
