#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A stack that is complete is called complete, however it begins. PMREC, PMREPORT, PROGRAMS and
# SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

# What is wrong with the chains that have FUNCTION and do not end at the root.
unrooted() {
	echo "[(chain(s), s['stop']) for s in samples if '$1' in chain(s) and 'stop' in s] == []"
}

# Of FUNCTION's samples, what PYTHON says of their outermost frames.
outermost() {
	echo "{chain(s)[-1] for s in samples if '$1' in chain(s) and 'stop' not in s} $2"
}

@test "coroutines of makecontext(3) begin at its start function" {
	"$PMREC" -q -F 2999 -o s.json -- "$PROGRAMS/unwind-context" 400
	holds s.json "$(unrooted run_second)" 'sum("run_second" in chain(s) for s in samples) > 50' \
		"$(unrooted run_first)" 'rooted(0.98)'
}

@test "coroutines on stacks that are made by hand" {
	[ -e "$PROGRAMS/unwind-coroutines" ] || skip "x86-64 only"
	"$PMREC" -q -F 2999 -o s.json -- "$PROGRAMS/unwind-coroutines" 800
	holds s.json "$(unrooted body)" 'sum("body" in chain(s) for s in samples) > 200' \
		"$(outermost body '== {"not_reached", "co_finish_jump", "body", "co_by_frame_pointer"}')"
}

@test "constructors begin where ld.so does" {
	"$PMREC" -q -F 999 -o s.json -- "$PROGRAMS/constructor"
	holds s.json "$(unrooted burn_in_constructor)" \
		'sum("burn_in_constructor" in chain(s) for s in samples) > 100' \
		'all("construct" in chain(s) for s in samples if "burn_in_constructor" in chain(s))'
}

# musl_begins PROGRAM: its main thread and the other one, in libraries without any CFI.
musl_begins() {
	[ -e "$PROGRAMS/$1" ] || skip "musl-gcc is not there"
	"$PMREC" -q -F 999 -o s.json -- "$PROGRAMS/$1" 600
	holds s.json "$(unrooted burn_for_long)" "$(outermost main '== {"_start"}')" \
		'sum(chain(s)[:2] == ["burn_for_long", "main"] for s in samples) > 20' \
		'sum(chain(s)[:2] == ["burn_for_long", "in_thread"] for s in samples) > 20' \
		'sum(chain(s)[:1] == ["compare"] for s in samples) > 20' \
		'rooted(0.97)'
}

@test "threads of musl begin, and its libraries are passed" {
	musl_begins starts-musl
}

@test "the same, static" {
	musl_begins starts-musl-static
	holds s.json "$(outermost in_thread '== {"__clone"}')"
}

# alt_stack MODE: nearly all stacks reach the root, and each handler has interrupted its own caller.
# A handler takes some thirty samples, none of which reaches the root if the recorder gets no CPU
# time while it runs.
alt_stack() {
	"$PMREC" -q -F 999 -o s.json -- "$PROGRAMS/alt-stack" 900 "$1"
	holds s.json 'sum("handle_a" in chain(s) for s in samples) > 50' \
		'sum("handle_b" in chain(s) for s in samples) > 50' \
		'[chain(s) for s in samples if {"called_by_a", "handle_b"} <= set(chain(s)) or {"called_by_b", "handle_a"} <= set(chain(s))] == []' \
		'all({"called_by_a", "called_by_b"} & set(chain(s)) for s in samples if "stop" not in s and {"handle_a", "handle_b"} & set(chain(s)))' \
		'all("on_signal" in chain(s) for s in samples if "nested_handler" in chain(s))' \
		'all(s["stop"] in ("other_stack", "no_page", "exec") for s in samples if "stop" in s)' \
		'sum("stop" not in s for s in samples) >= .97 * len(samples) - 60'
}

@test "what a handler on its own stack has interrupted is found" {
	alt_stack timer
	holds s.json '{frames[f]["how"] for s in samples for f in chain_frames(s)} >= {"stitched"}' \
		'footer["stitched"] > 100'
}

@test "the same with handlers in handlers" {
	alt_stack nested
	holds s.json 'sum("nested_handler" in chain(s) for s in samples) > 50'
}

@test "the same in threads, each with its own stack for handlers" {
	alt_stack threads
}

@test "the same after an overflow, and handlers that jump out" {
	alt_stack overflow
	alt_stack jump
}

# Its handlers are short, and raise(3) has called them.
@test "a handler's own stack is named as the reason, and no larger copy advised" {
	"$PMREC" -q --no-stitch -F 999 -o s.json -- "$PROGRAMS/other-stack" 600
	holds s.json 'sum("inner_handler" in chain(s) for s in samples) > 50' \
		'sum("outer_handler" in chain(s) for s in samples) > 100' \
		'{s.get("stop") for s in samples if "outer_handler" in chain(s)} == {"other_stack"}' \
		'all("outer_handler" in chain(s) for s in samples if "inner_handler" in chain(s))' \
		"$(unrooted interrupted)"
	run -0 "$PMREPORT" s.json
	[[ ${output//$'\n'  / } == *"they are on another stack, which was not copied"* ]]
	[[ $output != *--stack-bytes* ]]
}

@test "frames below the saved registers are passed without CFI" {
	[ -e "$PROGRAMS/no-cfi" ] || skip "x86-64 only"
	"$PMREC" -q --no-stitch -F 2999 -o s.json -- "$PROGRAMS/no-cfi" 300
	holds s.json "$(unrooted leaf_without_cfi)" "$(unrooted caller_without_cfi)" \
		'sum("leaf_without_cfi calls_leaf main" in " ".join(chain(s)) for s in samples) > 200' \
		'sum("called_back caller_without_cfi calls_caller main" in " ".join(chain(s)) for s in samples) > 200' \
		'all("calls_leaf" in chain(s) for s in samples if "leaf_without_cfi" in chain(s))' \
		'all("calls_caller" in chain(s) for s in samples if "caller_without_cfi" in chain(s))'
}

# Each piece of work takes some hundred samples. Its callers are not known until a look has come,
# nor from the last look on until the next caller is seen.
@test "callers on other segments of a split stack are found" {
	[ -e "$PROGRAMS/split-stack" ] || skip "not built by gcc with ld.gold"
	# clang's threads move to one other segment only, right at their start.
	local segments=2
	! grep -q 'clang version' "$PROGRAMS/split-stack" || segments=0
	"$PMREC" -q -F 999 -o s.json -- "$PROGRAMS/split-stack" 900
	work='[(chain(s), s.get("stop")) for s in samples if {"work_of_a", "work_of_b"} & set(chain(s))]'
	holds s.json "len($work) > 200" \
		"all({'work_of_a', 'called_by_b'} - set(c) and {'work_of_b', 'called_by_a'} - set(c) for c, _ in $work)" \
		"sum(c.count('__morestack') > $segments for c, _ in $work) > 0.9 * len($work) - 60" \
		"sum(not stop for _, stop in $work) > 0.8 * len($work) - 60" \
		"all(c[-1] in ('_start', 'clone3', '__clone') for c, stop in $work if not stop)" \
		"{stop for _, stop in $work} <= {None, 'truncated', 'no_page', 'other_stack'}"
}
