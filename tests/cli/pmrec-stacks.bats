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
		'rooted(0.9)' 'len(own_notes) <= 1'
}

@test "more libraries than files may be open at all" {
	many_libraries 300
	(ulimit -n 200 && "$PMREC" -q -o s.json -- "$PROGRAMS/dlopen-many" libraries/*.so)
	holds s.json 'sum("/libraries/" in m["path"] for m in modules) > 250' \
		'footer["samples"] > 300' 'rooted(0.9)' 'len(own_notes) <= 1'
}

@test "a program deleted while it runs keeps its names" {
	cp "$PROGRAMS/split" gone
	# shellcheck disable=SC2016
	"$PMREC" -q -o s.json -- sh -c '{
			until [ "/proc/$$/exe" -ef gone ]; do sleep 0.02; done
			sleep 0.3; rm gone
		} & exec ./gone 1'
	until_true test ! -e gone
	holds s.json 'split_is_true()'
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
	holds fp.json 'header["options"]["call_graph"] == "fp"' 'split_is_true()' \
		'"root" not in footer["stops"]'
	# A call that never returns is the last instruction of its function.
	"$PMREC" -q --call-graph fp -o callers.json -- "$PROGRAMS/noreturn-fp" 200
	local callers='[c[c.index("leave") + 1:][:2] for c in map(chain, samples) if "leave" in c]'
	holds callers.json "len($callers) > 50" \
		"$callers.count(['give_up', 'main']) >= 0.98 * len($callers)" \
		'not any("neighbour" in chain(s)[1:] for s in samples)'
	holds none.json 'header["options"]["call_graph"] == "none"' \
		'split_is_true()' 'all(parent is None for parent, _ in stacks)'
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
	"$PMREC" -q -o s.json -- "$PROGRAMS/giant" 1
	holds s.json 'sum("work" in chain(s) for s in samples) > 800' \
		'footer["truncated"] > 0.9 * sum("work" in chain(s) for s in samples)' \
		'all([n for n in chain(s) if n in ("work", "giant", "above", "main")][-3:] ==
			["giant", "above", "main"] for s in samples if "stop" not in s and "work" in chain(s))' \
		'rooted(0.9, "work")'
	"$PMREC" -q --no-stitch -o n.json -- "$PROGRAMS/giant" 0.3
	holds n.json 'not any("giant" in chain(s) and "above" in chain(s) for s in samples)' \
		'footer["truncated"] == footer["stops"]["truncated"] > 100'
}

# Chains of work(), leaf first, of the samples that are complete.
big_chains='[[n for n in chain(s) if n in ("work", "large", "recurse", "first_way", "second_way",
	"in_thread", "main", "_start", "clone3")] for s in samples if "stop" not in s and "work" in chain(s)]'

@test "a large frame of any size and place has its callers from the first sample on" {
	local place bytes share
	declare -A truth=(
		[main]='["work", "main", "_start"]'
		[alloca]='["work", "large", "main", "_start"]'
		[thread]='["work", "large", "in_thread", "clone3"]'
		[recursion]='["work"] + 5 * ["recurse"] + ["main", "_start"]'
	)
	for place in "${!truth[@]}"; do
		for bytes in 70000 4000000; do
			share=
			# A recorder that got no CPU while the program ran has not looked.
			for _ in 1 2 3; do
				"$PMREC" -q -o s.json -- "$PROGRAMS/bigframe" $place $bytes 0.1
				# musl has other names for where a program and a thread begin.
				holds s.json "all(c[:-1] == (${truth[$place]})[:-1] or c == ${truth[$place]} for c in $big_chains)" \
					"footer['stitched'] == sum(any(frames[f]['how'] == 'stitched' for f in chain_frames(s)) for s in samples)" \
					"sum('stop' not in s for s in samples) == footer['stops'].get('root', 0)" \
					"sum(s.get('stop') == 'truncated' for s in samples) == footer['stops'].get('truncated', 0)"
				holds s.json "len($big_chains) >= 0.97 * sum('work' in chain(s) for s in samples)" &&
					share=found && break
			done
			[ "$share" = found ]
		done
	done
}

@test "a large frame that is called by another one has no callers of the one before" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/bigframe" ways 100000 1
	# By CPU time: 30 ms by one way, then 1 s by the other. A tick belongs to the thread that
	# it interrupts, and so beside others the 30 ms are a few more.
	ways='[next((n for n in chain(s) if n.endswith("_way")), None) for s in samples if "work" in chain(s)]'
	holds s.json "all(c in (['work', 'large', w, 'main', '_start'] for w in ('first_way', 'second_way')) for c in $big_chains)" \
		"sum(s['period'] for s in samples if 'first_way' in chain(s)) < 60e6" \
		"'first_way' not in $ways[$ways.index('second_way'):]" \
		"sum('second_way' in chain(s) for s in samples) > 0.7 * len(samples)"
}

# deepstack_is_true FRAMES EXPRESSION...: no complete stack has more or fewer of them than it
# should, and the expressions are true. `parts` are frames, way, and bottom of each stack, and
# whether it is complete.
deepstack_is_true() {
	holds s.json 'bool(parts := [(sum(n.startswith("rec_") for n in c),
		[n[:4] for n in c if n.endswith("_way")], [n[:4] for n in c if n.endswith("_bottom")],
		"stop" not in s) for s in samples for c in [chain(s)] if "rec_" in " ".join(c)])' \
		'all(len(way) == 1 for _, way, _, rooted in parts if rooted)' \
		"all(frames == ($1 if 'left' in bottom else $1 // 2)
			for frames, _, bottom, rooted in parts if rooted and bottom)" \
		"all(frames <= ($1 if 'left' in way + bottom else $1 // 2)
			for frames, way, bottom, _ in parts if way + bottom)" \
		'all(way == bottom for _, way, bottom, rooted in parts if rooted and bottom)' "${@:2}"
}

# A sanitizer makes a look at thousands of frames take longer than its time allows.
# bats test_tags=plain
@test "a recursion of megabytes has all of its frames, in the program and in a library" {
	local place bytes frames work share
	while read -r place bytes frames work; do
		share=
		# A recorder that got no CPU while the program ran has not looked.
		for _ in 1 2 3; do
			"$PMREC" -q -o s.json -- "$PROGRAMS/deepstack" $place $bytes $frames $work 0.2
			deepstack_is_true $frames
			# On the first way down, the pages below are not there yet.
			deepstack_is_true $frames 'bool(there := [part for part in parts if part[2]])' \
				'sum(part[3] for part in there) >= 0.97 * len(there) > 70' &&
				share=found && break
		done
		[ "$share" = found ]
	done <<-END
		main 1000 3000 300000
		library-thread 1000 3000 300000
		library 100000 30 5000
	END
}

# bats test_tags=plain
@test "a stack of more frames than can be recorded says so" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/deepstack" main 200 30000 300000 0.2
	deepstack_is_true 30000 'not any(rooted and bottom for _, _, bottom, rooted in parts)' \
		'footer["stops"]["limit"] > 0' \
		'all(len(chain_frames(s)) >= 4096 for s in samples if s.get("stop") == "limit")'
}

@test "callers that were exchanged below the copy are found out" {
	"$PMREC" -q --stack-bytes 16384 -o s.json -- "$PROGRAMS/wrongsplice" 1.5
	# By CPU time: the slow way is 30 ms down, at least, and 50 ms at its bottom. If others have the
	# CPU after each of these, the samples of each are one or none: 14 more of all are four standard
	# deviations. Exchanged callers would be those of 1.5 s.
	holds s.json 'sum("fast_way" in chain(s) and "stop" not in s for s in samples) > 0.5 * len(samples)' \
		'sum(s["period"] for s in samples if "slow_way" in chain(s) and chain(s).count("down") == 1500) < 69e6' \
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

# ---- stacks that are not there -----------------------------------------------------------

@test "in execve(2) the stack of the old program is gone, not too long" {
	"$PMREC" -q -F 4999 -o s.json -- sh -c \
		'i=0; while [ $i -lt 150 ]; do i=$(expr $i + 1); done'
	holds s.json '"truncated" not in footer["stops"]' 'footer["stops"]["exec"] > 0' \
		'all(sum(frames[f]["how"] != "kernel" for f in chain_frames(s)) == 1
			for s in samples if s.get("stop") == "exec")'
	run -0 "$PMREPORT" s.json
	[[ $output != *--stack-bytes* ]]
	[[ ${output//$'\n'  / } == *"in execve "[0-9]* ]]
}

@test "a page of the stack that is not there yet is no reason for larger copies" {
	# A look at the live stack would make its pages present. A new thread faults where it
	# begins, too.
	"$PMREC" -q -F 4999 --no-stitch -o s.json -- "$PROGRAMS/stack-faults" 0.3
	holds s.json '"truncated" not in footer["stops"]' 'footer["stops"]["no_page"] > 50' \
		'sum("fault_in" not in chain(s) for s in samples if s.get("stop") == "no_page"
			and s["tid"] != s["pid"]) < 0.05 * footer["stops"]["no_page"]'
	run -0 "$PMREPORT" s.json
	[[ $(tr -s '\n ' ' ' <<<"$output") == *"a page was not present"* ]]
	[[ $output != *--stack-bytes* ]]
}
