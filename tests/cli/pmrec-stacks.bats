#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the recorder has of a stack when it is not all in the copy, not by the usual way, or when its
# code is not there any more. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

# ---- code that is hard to read ----------------------------------------------------------

# many_libraries COUNT: that many files, for dlopen-many.
many_libraries() {
	mkdir libraries
	tee $(seq -f 'libraries/%g.so' "$1") <"$PROGRAMS/libdlopen-many.so" >/dev/null
}

@test "more libraries than files may be open at first" {
	many_libraries 300
	(ulimit -Sn 200 && "$PMREC" -q -o s.json -- "$PROGRAMS/dlopen-many" libraries/*.so)
	holds s.json 'sum("/libraries/" in m["path"] for m in modules) > 250' \
		'footer["stops"]["root"] >= 0.9 * footer["samples"]' 'len(notes) <= 1'
}

@test "more libraries than files may be open at all: the cause is told" {
	many_libraries 300
	(ulimit -n 200 && "$PMREC" -q -o s.json -- "$PROGRAMS/dlopen-many" libraries/*.so)
	holds s.json 'any("too many files are open: ulimit -Hn" in n["text"] for n in notes)' \
		'footer["samples"] > 300'
}

@test "a program deleted while it runs keeps its names" {
	cp "$PROGRAMS/split" gone
	"$PMREC" -q -o s.json -- sh -c '{ sleep 0.4; rm gone; } & exec ./gone 1'
	[ ! -e gone ]
	holds s.json 'self_share("sixty") > 55'
}

@test "a program that is gone before it can be read is told" {
	# The shell's parent is the recorder: it sleeps until all is over.
	run --separate-stderr "$PMREC" -e cpu-clock -o s.json -- sh -c \
		'kill -STOP $PPID; cp "$0" gone; ./gone 0.2; rm gone; kill -CONT $PPID' \
		"$PROGRAMS/split"
	[ "$status" = 0 ]
	[[ $stderr == *"pmrec: warning: "*"/gone could not be read"* ]]
	holds s.json 'any("/gone could not" in n["text"] for n in notes)' \
		'len(samples) > 100' '"gone" in comms'
}

# ---- stacks -----------------------------------------------------------------------------

@test "call graphs by frame pointer, and none" {
	"$PMREC" -q --call-graph fp -o fp.json -- "$PROGRAMS/split" 0.2
	"$PMREC" -q --call-graph none -o none.json -- "$PROGRAMS/split" 0.2
	holds fp.json 'header["options"]["call_graph"] == "fp"' 'self_share("sixty") > 40' \
		'"root" not in footer["stops"]'
	holds none.json 'header["options"]["call_graph"] == "none"' \
		'self_share("sixty") > 40' 'all(parent is None for parent, _ in stacks)'
}

@test "a stack deeper than the copy is marked truncated" {
	"$PMREC" -q --no-stitch --stack-bytes 16 -o s.json -- "$PROGRAMS/split" 0.3
	holds s.json 'footer["truncated"] > 100' \
		'all(s["stop"] == "truncated" for s in samples if chain(s)[0] == "sixty")'
}

@test "outer callers that earlier samples had are stitched on, and marked" {
	run --separate-stderr "$PMREC" --stack-bytes 16384 -o s.json -- "$PROGRAMS/deep" 1.5
	[[ $stderr =~ ([0-9.]+)%\ rooted\ \(([0-9.]+)%\ stitched\), ]]
	# Of a sample in one of the two ends: how often each of the two ways there is on it.
	ways='[(c.count(w), c.count(w.replace("left", "right") if w == "left" else "left"))
		for s in samples for c in [chain(s)] if "stop" not in s
		for w in ["left", "right"] if w + "_end" in c and len(c) > 20]'
	how='[[frames[f]["how"] for f in chain_frames(s)] for s in samples]'
	holds s.json "len($ways) > 300" "sum(way != (1, 0) for way in $ways) * 200 <= len($ways)" \
		'300 < footer["stitched"] <= footer["truncated"]' \
		"sum('stitched' in h for h in $how) == footer['stitched']" \
		"all(h == [x for x in h if x != 'stitched'] + ['stitched'] * h.count('stitched') for h in $how)" \
		'footer["truncated"] - footer["stops"].get("truncated", 0) <= footer["stitched"]' \
		'sum("stop" not in s for s in samples) == footer["stops"]["root"]' \
		'footer["stops"]["root"] > 0.9 * footer["samples"]'
	"$PMREPORT" s.json | grep -E "truncated [0-9.]+%   stitched [1-9][0-9.]+%"
	"$PMREPORT" --json s.json >r.json
	[[ $(jq .events[0].stitched.samples r.json) == \
		$(jq 'select(.type == "footer").stitched' s.json) ]]
}

@test "a frame larger than every copy has its callers, from a look at the memory" {
	# All but the first, until the look is confirmed, which takes a tenth of a second (rings
	# are read ten times in one), and again each time that neither the program nor the recorder
	# had a CPU: so the share is asked for once in three times.
	for _ in 1 2 3; do
		"$PMREC" -q -o s.json -- "$PROGRAMS/giant" 1
		holds s.json 'footer["truncated"] > 0.9 * footer["samples"]' \
			'all([n for n in chain(s) if n in ("work", "giant", "above", "main")][-3:] ==
				["giant", "above", "main"] for s in samples if "stop" not in s and "work" in chain(s))'
		holds s.json 'footer["stops"]["root"] > 0.6 * footer["samples"]' \
			'sum("giant" in chain(s) and "stop" not in s for s in samples) > 300' &&
			share=found && break
	done
	[ "${share-}" = found ]
	"$PMREC" -q --no-stitch -o n.json -- "$PROGRAMS/giant" 0.3
	holds n.json 'not any("giant" in chain(s) and "above" in chain(s) for s in samples)' \
		'footer["truncated"] == footer["stops"]["truncated"] > 100'
}

@test "callers that were exchanged below the copy are found out" {
	"$PMREC" -q --stack-bytes 16384 -o s.json -- "$PROGRAMS/wrongsplice" 1.5
	# Until the next look at the return addresses nothing tells.
	holds s.json 'sum("fast_way" in chain(s) and "stop" not in s for s in samples) > 0.5 * len(samples)' \
		'sum("slow_way" in chain(s) for s in samples) < 0.4 * len(samples)' \
		'not any("fast_way" in chain(s) and "slow_way" in chain(s) for s in samples)'
}

@test "--no-stitch leaves what is cut off cut off" {
	run --separate-stderr "$PMREC" --no-stitch --stack-bytes 16384 -o s.json -- \
		"$PROGRAMS/deep" 0.5
	[[ $stderr != *stitched* ]]
	holds s.json 'footer["stitched"] == 0' 'all(f["how"] != "stitched" for f in frames)' \
		'footer["truncated"] == footer["stops"]["truncated"] > 100' \
		'all(s["stop"] == "truncated" for s in samples if "left_end" in chain(s))'
	[[ $("$PMREPORT" s.json) != *stitched* ]]
}

@test "lost samples are told, with what helps against so many" {
	# The recorder, which is its parent, reads nothing meanwhile.
	local faults='import os, signal
os.kill(os.getppid(), signal.SIGSTOP)
bytearray(1 << 26)
os.kill(os.getppid(), signal.SIGCONT)'
	run --separate-stderr "$PMREC" -e page-faults -c 1 -m 32 -o s.json -- python3 -c "$faults"
	[ "$status" = 0 ]
	holds s.json 'footer["lost"] > len(samples) / 9'
	[[ $stderr == *"samples were lost"*"try: --stack-bytes 4096"* ]]
	run --separate-stderr "$PMREC" -e page-faults -c 1 -m 4 --stack-bytes 4096 \
		-o s.json -- python3 -c "$faults"
	holds s.json 'footer["lost"] > len(samples) / 9'
	[[ $stderr == *"samples were lost"*"try: a larger -c"* ]]
}
