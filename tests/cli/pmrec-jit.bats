#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Code that programs make while they run has the names that they tell, of its time, and only if
# it is they who tell them. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	[ "$(uname -m)" = x86_64 ] || skip "the program's code is for x86-64"
}

query() {
	python3 "$SOURCE_DIR/tests/cli/samples.py" s.json "$@"
}

holds() {
	query "$@" >results
	[ "$(grep -cx True results)" = $# ] || {
		grep -vxn True results >&2
		printf '%s\n' "of: $*" >&2
		query 'notes' 'footer' '[chain(s) for s in samples][:5]' >&2
		return 1
	}
}

# record COMMAND...: its stdout is in `out`.
record() {
	"$PMREC" -q -e cpu-clock -F 2000 -o s.json -- "$@" >out
	holds 'len(samples) > 200'
}

jit() {
	record "$PROGRAMS/jit" "$@"
	[ ! -s out ] || rm -f "$(cat out)"
}

@test "silence: no names, and the report says what to do" {
	jit silent
	holds 'self_share("inner") == 0' \
		'all(f["module"] is None or modules[f["module"]]["kind"] != "jit" or f["id"] not in names for f in frames)'
	"$PMREPORT" s.json | tr '\n' ' ' | tr -s ' ' >flat
	grep -qF '[jit] (code made while running, and not told of by who made it; record' flat
}

@test "a perf map names functions, also when it is removed or comes late" {
	for how in map late; do
		jit "$how"
		holds 'jit_share("inner") > 90' \
			'[m["path"] for m in modules if m["kind"] == "jit"] == ["[jit]"]'
	done
	"$PMREPORT" s.json >report
	grep -Eq '% +inner +\[jit\]' report
}

@test "what replaces a function in its place takes over from then on" {
	jit reuse 600
	holds '40 < jit_share("inner") < 60' '40 < jit_share("second") < 60' \
		'sum(m["kind"] == "jit" for m in modules) == 2'
}

@test "no map is used that others could have written, and that is said once" {
	for how in symlink old; do
		jit "$how"
		holds 'self_share("inner") == 0' \
			'sum("names of generated code could not be read" in n["text"] for n in notes) == 1'
	done
	holds 'any("older than the process" in n["text"] for n in notes)'
	need_root
	jit foreign
	holds 'self_share("inner") == 0' \
		'any("belongs to user 65534" in n["text"] for n in notes)'
}

@test "leaves of generated code have their caller, and no other" {
	record "$PROGRAMS/jit-leaf" 600
	# The last samples of generated code may be looked at when it is gone.
	callers='{(a, b.split(".")[0]) for s in samples for a, b in zip(chain(s), chain(s)[1:])'
	holds "$callers if a == 'c_leaf'} == {('c_leaf', 'calls_c_leaf')}" \
		"$callers if a == 'c_framed'} == {('c_framed', 'calls_c_framed')}" \
		"$callers if a == 'g_framed'} == {('g_framed', 'calls_g_framed')}" \
		"$callers if a == 'g_leaf'} <= {('g_leaf', 'calls_g_leaf'), ('g_leaf', 'run')}" \
		'sum(chain(s)[:2] == ["g_leaf", "calls_g_leaf"] for s in samples) > 30' \
		'not any("decoy" in chain(s) for s in samples)'
}

@test "a jitdump names functions and their lines" {
	jit dump
	holds 'jit_share("inner") > 90' \
		'[f["line"] for n in names.values() for f in n if f.get("file") == "made.up"][0] == 42'
}

@test "a jitdump's unwind information leads through code without frame pointers" {
	jit dump
	holds 'not any(chain(s)[:3] == ["inner", "outer", "run"] for s in samples)'
	jit cfi
	# Interrupts may be on top, and a slow build is long in the loader.
	holds 'sum(chain(s)[-8:-4] == ["inner", "outer", "run", "with_dump"] for s in samples) > 0.95 * sum("with_dump" in chain(s) for s in samples) > 50' \
		'rooted(0.99)' \
		'any(f["how"] == "cfi" and names.get(f["id"], [{"name": ""}])[0]["name"] == "outer" for f in frames)'
}

@test "the same without perf_event_open" {
	"$PMREC" -q --engine ptrace -F 500 -o s.json -- "$PROGRAMS/jit" cfi 400
	holds 'sum(chain(s)[:3] == ["inner", "outer", "run"] for s in samples) > 0.8 * sum("run" in chain(s) for s in samples) > 50'
	"$PMREC" -q --engine ptrace -F 500 -o s.json -- "$PROGRAMS/jit" map 400
	holds 'jit_share("inner") > 80'
}

@test "a jitdump that comes late names what was there at the time, or nothing" {
	jit late-cfi
	holds 'jit_share("inner") > 90'
	jit reuse-dump
	holds 'self_share("inner") < 10' \
		'any("told of them after other code" in n["text"] for n in notes)'
}

@test "a map that is written anew leaves alone what a jitdump told" {
	jit both
	holds 'jit_share("inner") > 90'
}

@test "what cannot be used of maps and jitdumps is told" {
	jit garbage
	holds 'jit_share("inner") > 90' \
		'any(n["text"].startswith("2 lines of perf maps are not in the form") for n in notes)'
	jit dumps
	holds 'any("1 processes have more than 8 jitdumps" in n["text"] for n in notes)'
}

@test "unwind information of functions that are replaced is kept up to a limit" {
	jit frames 600
	holds 'sum(n.startswith("inner") for n in {f["name"] for l in names.values() for f in l}) > 50' \
		'any("64 MiB at most are kept" in n["text"] for n in notes)'
}

@test "a jitdump with other times is not used, and that is said" {
	jit tsc
	holds 'self_share("inner") == 0' 'any("CLOCK_MONOTONIC" in n["text"] for n in notes)'
}

@test "a forked child has the names of its parent" {
	jit fork
	holds 'len({s["pid"] for s in samples}) == 2' 'jit_share("inner") > 90'
}

@test "names come through any number of forks, without a stack to match" {
	# What a recursion over them would need is more than that.
	(
		ulimit -s 192
		jit forks
	)
	# The forks themselves are most of what is seen; the last child does nothing else.
	holds '(lambda of: len(of) > 50 and sum(chain(s)[:1] == ["inner"] for s in of) > 0.8 * len(of))(
		(lambda last: [s for s in samples if s["pid"] == last])(
			__import__("collections").Counter(s["pid"] for s in samples).most_common(1)[0][0]))'
}

@test "the map is found where the process sees it, by the number that it has there" {
	need_root
	unshare -m -p -f true 2>/dev/null || skip "no new namespaces here"
	# The program may itself be below the /tmp that goes out of sight.
	record unshare -m -p -f --mount-proc sh -c \
		"exec 9<'$PROGRAMS/jit'; mount -t tmpfs none /tmp && exec /proc/self/fd/9 map"
	holds 'jit_share("inner") > 80'
}

@test "names are left out on request, and then no map is read" {
	"$PMREC" -q -e cpu-clock -F 2000 --no-symbols -o s.json -- "$PROGRAMS/jit" map
	holds 'len(names) == 0'
}

# node SHARE OPTION...: that much of a JavaScript program has JavaScript names, in complete
# stacks.
node_names() {
	local least=$1
	shift
	record node "$@" "$SOURCE_DIR/tests/programs/spin.js" 400
	holds "sum('stop' not in s and any(':*' in n or ':~' in n or ':^' in n for n in chain(s)) for s in samples) > $least * len(samples)" \
		'rooted(0.98)'
}

@test "Node.js: JavaScript names in complete stacks" {
	command -v node >/dev/null || skip "there is no node"
	node_names 0.5 --perf-basic-prof
	# The optimised inner(), which V8 up to that of Node.js 18 calls by another tag.
	holds 'any(f["name"].startswith(("JS:*inner ", "LazyCompile:*inner ")) and f["file"].endswith("/spin.js") and f["line"] == 5 for n in names.values() for f in n)'
	node_names 0.5 --perf-basic-prof --interpreted-frames-native-stack
	# Each JavaScript caller of inner() is there.
	holds 'sum([n.split(" ")[0].split(":")[1].strip("*^~+") for n in chain(s) if "spin.js" in n][:3] in (["inner", "middle", "outer"], ["middle", "outer", ""]) for s in samples) > 0.5 * len(samples)'
	rm -f /tmp/perf-"$(query 'samples[0]["pid"]')".map
	node_names 0.5 --perf-prof
}

@test "Java: the map that is written at its end" {
	java -version 2>/dev/null || skip "there is no java"
	mkdir classes
	javac -d classes "$SOURCE_DIR/tests/programs/Spin.java" 2>/dev/null || skip "there is no javac"
	record java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions \
		-XX:+DumpPerfMapAtExit -cp classes Spin 400
	rm -f /tmp/perf-"$(query 'samples[0]["pid"]')".map
	holds 'sum(any("Spin.inner" in n for n in chain(s)) for s in samples) > 0.3 * len(samples)' \
		'rooted(0.95)'
}
