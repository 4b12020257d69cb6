#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Go programs as they are shipped: without symbols, debug information and call frame information,
# some without section headers. tests/programs/go-*/ say what is true of them. PMREC, PROGRAMS
# and SOURCE_DIR come from meson.

load common

# build NAME FOLDER OPTION...: compiles a program, or says why not in NAME.reason.
build() {
	local to=$BATS_FILE_TMPDIR/$1 folder=$SOURCE_DIR/tests/programs/$2
	shift 2
	(cd "$folder" && go build "$@" -o "$to" .) 2>"$to.reason"
}

setup_file() {
	command -v go >/dev/null || return 0
	export GOCACHE=$BATS_FILE_TMPDIR/cache GO111MODULE=off GOFLAGS=-p=2
	build plain go-shares || return 0
	build stripped go-shares -ldflags '-s -w'
	build noinline go-shares -ldflags '-s -w' -gcflags=all=-l
	build pie go-shares -ldflags '-s -w' -buildmode=pie
	build calls go-calls -ldflags '-s -w' || :
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	command -v go >/dev/null || skip "no Go compiler (golang-go)"
	[ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || skip "not this machine's"
}

# record PROGRAM ARGUMENT...
record() {
	[ -x "$BATS_FILE_TMPDIR/$1" ] ||
		skip "Go cannot build it here: $(head -c 300 "$BATS_FILE_TMPDIR/$1.reason")"
	"$PMREC" -q -e cpu-clock -F 999 -o s.json -- "$BATS_FILE_TMPDIR/$1" "${@:2}"
}

# What the program does itself is 20, 30 and 50 % in the three functions, within five standard
# deviations of as many samples; and their chains are whole.
OWN='[chain(s) for s in samples if chain(s)[0] in ("main.alpha", "main.beta", "main.mix")]'
near() {
	echo "len($OWN) > 300 and abs(sum(c[0] == \"$1\" for c in $OWN) / len($OWN) - $2) < 5 * ($2 * (1 - $2) / len($OWN)) ** .5"
}
holds_shares() {
	holds s.json "$(near main.alpha .2)" "$(near main.beta .3)" "$(near main.mix .5)" \
		"(set(tuple(c) for c in $OWN if c[-1] == 'runtime.goexit') == set(
			tuple(f + ['main.round'] + c) for f in (['main.alpha'], ['main.beta'], ['main.mix', 'main.gamma'])
			for c in (['main.work', 'main.main.func1', 'runtime.goexit'], ['main.main', 'runtime.main', 'runtime.goexit'])))"
}

# All but the samples in handlers of signals, which run on a stack of their own, are whole and
# have all their names. In execve(2) there is no stack.
WHOLE='[s for s in samples if "stop" not in s]'
OF='[s for s in samples if s.get("stop") != "exec"]'
holds_whole() {
	holds s.json "len($WHOLE) >= .99 * len($OF) - 3" \
		'all(names.get(f) and all(x.get("name") for x in names[f]) for s in samples for f in chain_frames(s))'
}

@test "a stripped program has its shares, names and whole chains" {
	record stripped 150
	holds_shares
	holds_whole
	holds s.json '"go" in {f["how"] for f in frames}' '"cfi" not in {frames[f]["how"] for s in samples for f in chain_frames(s) if chain(s)[-1] == "runtime.goexit"}'
}

@test "lines and inlined calls are those of the source" {
	record stripped 50
	line() {
		grep -n "$1" "$SOURCE_DIR/tests/programs/go-shares/main.go" | head -1 | cut -d: -f1
	}
	loop=$(grep -n 'for i := 0; i < 5' "$SOURCE_DIR/tests/programs/go-shares/main.go" | cut -d: -f1)
	holds s.json "({(f[0]['name'], f[0]['file'].split('/')[-2:] == ['go-shares', 'main.go'], f[0]['line'] in ($loop, $loop + 1), f[1]['name'], f[1]['line'])
		for f in names.values() if f[0]['name'] == 'main.mix'} ==
		{('main.mix', True, True, 'main.gamma', $(line 'x = mix(x + 1)'))})"
}

@test "one with symbols and debug information says the same" {
	record plain 150
	holds_shares
	holds_whole
}

@test "without inlining the chains are the same" {
	record noinline 150
	holds_shares
	holds_whole
}

@test "a position-independent one, whose tables the loader completes" {
	record pie 150
	holds_shares
	holds_whole
}

@test "without section headers the table is found by its look" {
	record stripped 1
	cp "$BATS_FILE_TMPDIR/stripped" "$BATS_FILE_TMPDIR/headless"
	# e_shoff, e_shnum and e_shstrndx (gABI, "ELF Header")
	for field in '40 8' '60 2' '62 2'; do
		dd if=/dev/zero of="$BATS_FILE_TMPDIR/headless" bs=1 seek="${field% *}" \
			count="${field#* }" conv=notrunc status=none
	done
	record headless 150
	holds_shares
	holds_whole
}

# The garbage collector works on the threads' own stacks, to which systemstack has switched. The
# kernel follows frame pointers to the goroutine's stack. A handler's stack ends at the
# function that the signal interrupted, which may be any; the caller of morestack is not
# known.
@test "the runtime's work on its own stack goes on to the goroutine" {
	[ "$(uname -m)" = x86_64 ] || skip "x86-64 only"
	record stripped 60 garbage
	holds s.json "sum('runtime.systemstack' in chain(s) for s in samples) > 10" \
		"len($WHOLE) >= .98 * len($OF) - 3" \
		"set(c[-1] for c in (chain(s) for s in $WHOLE) if c[-1].startswith('runtime.')) <= {'runtime.goexit', 'runtime.mstart', 'runtime.mcall', 'runtime.rt0_go'}" \
		"all(c[c.index('runtime.gcBgMarkWorker.func2'):] == ['runtime.gcBgMarkWorker.func2', 'runtime.systemstack', 'runtime.gcBgMarkWorker', 'runtime.goexit']
			for c in map(chain, $WHOLE) if 'runtime.gcBgMarkWorker.func2' in c)" \
		"all(c[c.index('runtime.gcAssistAlloc.func1'):][1:4] == ['runtime.systemstack', 'runtime.gcAssistAlloc', 'runtime.mallocgc'] and 'main.grow' in c
			for c in map(chain, $WHOLE) if 'runtime.gcAssistAlloc.func1' in c)"
}

# Go -> C -> Go: C is on the thread's stack, the Go code above and below it on a
# goroutine's. The callers of C must be those that Go shows when C has called it.
@test "calls between Go and C" {
	record calls 150
	holds s.json "len([1 for s in samples if chain(s)[0] == 'main.spin']) > 100" \
		"({tuple(x for x in chain(s) if x.startswith('main.') or x == 'runtime.goexit' or x == 'runtime.main')
			for s in samples if chain(s)[0] == 'main.spin' and 'stop' not in s} ==
			{('main.spin', 'main.workInGo', 'main._Cfunc_work_in_c', 'main.call', 'main.main', 'runtime.main', 'runtime.goexit')})" \
		"sum(chain(s)[0] == 'main.spin' and 'stop' in s for s in samples) <= 3" \
		"{tuple(c[c.index('runtime.asmcgocall'):]) for c in map(chain, (s for s in samples if 'stop' not in s)) if c.count('work_in_c') == 1 and 'runtime.asmcgocall' in c} == {
			('runtime.asmcgocall', 'runtime.cgocall', 'main._Cfunc_work_in_c', 'main.call', 'main.main', 'runtime.main', 'runtime.goexit')}" \
		"sum('work_in_c' in chain(s) and 'stop' in s for s in samples) <= .02 * len(samples) + 3" \
		"sum('work_in_c' in chain(s) for s in samples) > 100"
}

@test "pmstat notes that calls whose stack grows are counted twice" {
	[ -x "$BATS_FILE_TMPDIR/plain" ] ||
		skip "Go cannot build it here: $(head -c 300 "$BATS_FILE_TMPDIR/plain.reason")"
	"$PMSTAT" --engine ptrace --json -o s.json --fn main.work -- "$BATS_FILE_TMPDIR/plain" 1 >/dev/null
	jq -e '[.warnings[] | select(contains("whose stack has to grow"))] | length == 1' s.json
	"$PMSTAT" --engine ptrace --json -o s.json --fn main -- "$PROGRAMS/sumbench" 10 >/dev/null
	jq -e '[.warnings[] | select(contains("whose stack"))] == []' s.json
}
