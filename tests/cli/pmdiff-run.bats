#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pmdiff run and bisect: commits of a repository that is made here, whose truth is known, and
# what a user does wrong. Counts are simulated, so that they are the same each time.

load common

BUILD='cc -g -O1 prog.c -o prog'

# prog PARSE EMIT: a program whose two functions go round so many times.
prog() {
	cat >prog.c <<-END
		static volatile unsigned sink;
		__attribute__((noinline)) void parse(int n) { while (n-- > 0) sink += n; }
		__attribute__((noinline)) void emit(int n) { while (n-- > 0) sink ^= n; }
		int main(void) { parse($1); emit($2); return 0; }
	END
}

commit() {
	git add -A
	git commit -qm "$1"
}

# What is not of the user who runs this: names, hooks, signatures.
setup_file() {
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
	export GIT_AUTHOR_NAME='Ada Byron' GIT_AUTHOR_EMAIL=ada@example.org
	export GIT_COMMITTER_NAME='Ada Byron' GIT_COMMITTER_EMAIL=ada@example.org
	git init -q -b main "$BATS_FILE_TMPDIR/repo"
	cd "$BATS_FILE_TMPDIR/repo"
	echo prog >.gitignore
	prog 10000 10000 && commit 'begin'
	git tag begin
	echo 'a program' >README && commit 'tell what it is'
	git tag same
	prog 10300 10000 && commit 'parse more carefully'
	git tag slow
	echo 'no program' >prog.c && commit 'break it'
	git tag broken
	prog 10000 10000 && commit 'parse as fast as before'
	git tag fixed
}

setup() {
	# Its own, so that it can be seen what is left in it.
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	cd "$BATS_FILE_TMPDIR/repo"
}

# After each test: nothing is left.
teardown() {
	[ -z "$(ls -A "$TMPDIR")" ]
	cd "$BATS_FILE_TMPDIR/repo"
	[ "$(git worktree list | wc -l)" = 1 ]
	[ ! -e .git/worktrees ]
	[ -z "$(git status --porcelain)" ]
}

# has TEXT...: each is in the output.
has() {
	local text
	for text; do
		[[ $output == *"$text"* ]] || {
			echo "not in the output: $text"
			echo "$output"
			return 1
		}
	done
}

# fails TEXT... -- ARGUMENT...: status 125, and an output that has each text.
fails() {
	local texts=()
	while [ "$1" != -- ]; do
		texts+=("$1")
		shift
	done
	run "$PMDIFF" "${@:2}"
	[ "$status" = 125 ] || {
		echo "status $status: $output"
		return 1
	}
	has "${texts[@]}"
}

# simulated BASE HEAD ARGUMENT...
simulated() {
	run "$PMDIFF" run --engine callgrind -r 1 --base "$1" --head "$2" --build "$BUILD" \
		"${@:3}" -- ./prog
}

@test "run names the function that got worse, and nothing where nothing changed" {
	simulated begin same
	[ "$status" = 0 ]
	has 'no change' '1 run of each side'
	simulated same slow
	[ "$status" = 1 ]
	has 'worse, 1 of 1 gated numbers beyond the gate: sim.Ir' \
		'Most of it is in parse: +3.00 %.' 'parse  prog.c:2' 'parse more carefully'
	[[ $output != *emit* ]]
	simulated slow fixed --gate 'fn:parse:sim.Ir=±1%'
	[ "$status" = 1 ]
	has '1 of 1 gated numbers beyond the gate: fn:parse:sim.Ir -2.91 %'
}

@test "what moves from function to function is shown, and is no regression" {
	local kept=$BATS_TEST_TMPDIR/kept
	git checkout -q --detach slow
	prog 10150 10150 && commit 'parse less, emit more'
	simulated slow HEAD --history "$kept"
	git checkout -q main
	[ "$status" = 0 ]
	has 'nothing beyond the gate, ' 'emit  prog.c:3' '+1.50 %'
	# Nobody has asked for them by name.
	grep -q sim.Ir "$kept"/*
	! grep -q '"name":"emit"' "$kept"/* || false
	# Asked for, it is.
	simulated same slow --fn 'pars*'
	[ "$status" = 1 ]
	has 'worse, 2 of 3 gated numbers' 'fn:parse:sim.Ir +3.00 %'
	# Without functions of its own those of libc are meant, which are too many.
	run "$PMDIFF" run --engine callgrind -r 1 --base begin --head same -- true
	[ "$status" = 0 ]
	has 'no change' 'functions are not measured: ' 'makes more than 1024 functions'
}

@test "bisect names the commit and the function" {
	run "$PMDIFF" bisect --engine callgrind -r 1 --good begin --bad slow --build "$BUILD" \
		-- ./prog
	[ "$status" = 0 ]
	has "commit $(git rev-parse slow)" 'parse more carefully' 'Ada Byron' 'moved sim.Ir:' \
		'    parse: '
	# The innermost first, and nothing of what stayed.
	[[ $(grep -A1 'functions that moved' <<<"$output") == *'    parse: '*'(+3.00 %), '*:2 ]]
	[[ $output != *'    emit: '* ]]
}

@test "bisect names functions that got worse behind a total that did not" {
	git checkout -q --detach slow
	prog 10150 10150 && commit 'parse less, emit more'
	run "$PMDIFF" bisect --engine callgrind -r 1 --good slow --bad HEAD --build "$BUILD" \
		-- ./prog
	git checkout -q main
	[ "$status" = 4 ]
	has 'nothing got worse in the whole program from good to bad; functions that did: emit +1.50 %' \
		"try: --row 'fn:emit:sim.Ir'"
	[[ $output != *parse\ +* ]]
}

@test "bisect does not take a broken hard limit for a move" {
	run "$PMDIFF" bisect --engine callgrind -r 1 --good begin --bad same --build "$BUILD" \
		--gate 'sim.Ir<=1k' -- ./prog
	[ "$status" = 4 ]
	has 'nothing got worse'
}

@test "a hard limit fails whatever the base has, and holds for functions" {
	simulated begin same --gate 'fn:parse:sim.Ir<=1k'
	[ "$status" = 1 ]
	has 'worse, 1 of 1 gated numbers beyond the gate: fn:parse:sim.Ir' 'gate at most 1' \
		'It is more than the hard limit allows.'
	simulated begin slow --gate 'sim.Ir<=1G' --gate 'fn:parse:calls<=1'
	[ "$status" = 0 ]
}

@test "bisect finds what got better, too, if it is told the row" {
	run "$PMDIFF" bisect --engine callgrind -r 1 --good slow --bad fixed --build "$BUILD" \
		-- ./prog
	[ "$status" = 4 ]
	has 'nothing got worse'
	# The only commit in between does not build, so it may be either.
	run "$PMDIFF" bisect --engine callgrind -r 1 --good slow --bad fixed \
		--row fn:parse:sim.Ir --build "$BUILD" -- ./prog
	[ "$status" = 4 ]
	has 'is left out: it does not build' 'parse, sim.Ir moved in one of' \
		"$(git rev-parse broken) break it" \
		"$(git rev-parse fixed) parse as fast as before"
}

@test "bisect looks at no other row than the one that it is told" {
	run "$PMDIFF" bisect --engine count -r 1 -w 0 --good begin --bad slow \
		--row fn:parse:sim.Ir -- true
	[ "$status" = 2 ]
	has '--row: fn:parse:sim.Ir was not measured at both ends' '--fn NAME'
	# The program got slower, but not this one.
	run "$PMDIFF" bisect --engine callgrind -r 1 --good begin --bad slow \
		--row fn:emit:sim.Ir --build "$BUILD" -- ./prog
	[ "$status" = 4 ]
	has 'fn:emit:sim.Ir did not move'
}

@test "bisect follows both parents of a merge" {
	git checkout -q -b side same
	prog 10000 10300
	commit 'emit more carefully'
	culprit=$(git rev-parse HEAD)
	echo 'more' >>README && commit 'tell more'
	git checkout -q --detach same
	echo 'x' >other && commit 'something else'
	git merge -q -m 'both' side
	run "$PMDIFF" bisect --engine callgrind -r 1 --good begin --bad HEAD --fn emit \
		--row fn:emit:sim.Ir --build "$BUILD" -- ./prog
	git checkout -q main
	git branch -q -D side
	[ "$status" = 0 ]
	has "commit $culprit" 'emit more carefully' 'moved emit, sim.Ir: '
}

@test "a gate that means nothing is told after a run of each side" {
	run "$PMDIFF" run --engine count -e page-faults -r 9 --warmup 0 --base same --head slow \
		--gate page-fautls=1% -- sh -c "echo >>$BATS_TEST_TMPDIR/runs"
	[ "$status" = 2 ]
	has "the gate 'page-fautls' means nothing that was measured" 'page-faults'
	[ "$(wc -l <"$BATS_TEST_TMPDIR/runs")" = 2 ]
}

@test "revisions: one clear line for each that cannot be" {
	fails 'no such revision: nope' -- run --base nope -- ./prog
	fails 'no such revision: --all' -- run --base=--all -- ./prog
	git update-ref refs/remotes/origin/next HEAD
	fails 'no such revision: next' 'try: origin/next, which is here' -- run --base next -- ./prog
	git update-ref -d refs/remotes/origin/next
	run "$PMDIFF" run --base main -- ./prog
	[ "$status" = 2 ]
	has 'main and HEAD are the same commit' 'nothing to compare' '--base HEAD~1'
	run "$PMDIFF" bisect --good fixed --bad begin -- ./prog
	[ "$status" = 2 ]
	has 'is no ancestor of' 'where they parted'
	git clone -q --depth 1 "file://$PWD" "$BATS_TEST_TMPDIR/shallow"
	cd "$BATS_TEST_TMPDIR/shallow"
	fails 'in this shallow clone: HEAD~1' 'fetch-depth: 0' -- run --base HEAD~1 -- ./prog
	mkdir "$BATS_TEST_TMPDIR/none"
	cd "$BATS_TEST_TMPDIR/none"
	fails 'not a git repository' -- run --base HEAD~1 -- ./prog
}

@test "what is not committed is left out, and told" {
	echo 'not C' >>prog.c
	ln -s "$PWD" "$BATS_TEST_TMPDIR/link"
	run "$PMDIFF" run --engine count -r 1 --base begin --head same --build "ls '$PWD'" \
		-- "$BATS_TEST_TMPDIR/link/prog.c" "$PWD-not" "--file=$PWD/prog.c"
	has 'not committed' "warning: --build names your own" "/link/prog.c is in your own" \
		"warning: --file=$PWD/prog.c is in your own"
	[[ $output != *"$PWD-not is in"* ]]
	run "$PMDIFF" run --base HEAD -- ./prog
	git checkout -q prog.c
	[ "$status" = 2 ]
	has 'what is not committed is left out' 'git commit'
}

@test "builds and commands that fail are shown" {
	fails 'prog.c:1' 'head, ' '(break it), does not build' 'status 1' -- \
		run --base slow --head broken --build "$BUILD" -- ./prog
	fails './prog is not in its worktree' 'nothing was built' 'try: --build' -- \
		run --base begin --head same -- ./prog
	fails 'out of order' 'sh failed with status 3' -- \
		run --engine count -r 1 -w 0 --base begin --head same -- \
		sh -c 'echo out of order; exit 3'
	fails 'sh was ended by signal 9' -- \
		run --engine count -r 1 -w 0 --base begin --head same -- sh -c 'kill -9 $$'
	fails 'sleep took longer than --timeout allows' -- \
		run --engine count -r 1 -w 0 --timeout 0.1s --base begin --head same -- sleep 60
	fails 'pmstat: unknown event' -- run -e no-such-event -r 1 -w 0 --base begin \
		--head same -- true
}

@test "a function that one side does not have is measured on the other" {
	sed 's/emit/emit_all/g' prog.c >"$BATS_TEST_TMPDIR/prog.c"
	git checkout -q --detach
	mv "$BATS_TEST_TMPDIR/prog.c" prog.c
	commit 'another name'
	simulated main HEAD --fn emit --fn emit_all --fn parse
	[ "$status" = 0 ]
	has 'base has no function "emit_all"' 'head has no function "emit"' 'new
  emit_all  prog.c:3' 'gone
  emit  prog.c:3'
	fails 'neither base nor head has a function "prse"; near names: parse' -- run \
		--engine callgrind -r 1 --base main --head HEAD --fn parse --fn prse \
		--build "$BUILD" -- ./prog
	git checkout -q main
}

@test "without git, pmstat or room it says so" {
	local full=$BATS_TEST_TMPDIR/full
	PATH=/nowhere run "$PMDIFF" run --base begin -- ./prog
	[ "$status" = 125 ]
	has 'git is not installed'
	cp "$PMDIFF" "$BATS_TEST_TMPDIR/alone"
	run "$BATS_TEST_TMPDIR/alone" run --base begin -- ./prog
	[ "$status" = 125 ]
	has 'pmstat is neither beside pmdiff nor in PATH'
	TMPDIR=$full run "$PMDIFF" run --base begin -- ./prog
	[ "$status" = 125 ]
	has "$full: a folder for worktrees: No such file"
	git init -q "$BATS_TEST_TMPDIR/empty"
	cd "$BATS_TEST_TMPDIR/empty"
	fails 'no such revision: HEAD' -- run --base HEAD -- ./prog
	[[ $output != *fetch* ]]
}

@test "it works in a hook, in a bare repository, and runs no hooks" {
	local clone=$BATS_TEST_TMPDIR/clone
	git clone -q "$PWD" "$clone"
	cd "$clone"
	cat >.git/hooks/pre-commit <<-END
		#!/bin/sh
		exec "$PMDIFF" run --engine count -r 1 -w 0 --base HEAD~4 --head HEAD~3 -- \
			sh -c 'test -z "\$GIT_DIR\$GIT_INDEX_FILE"'
	END
	printf '#!/bin/sh\ntouch "%s/ran"\n' "$BATS_TEST_TMPDIR" >.git/hooks/post-checkout
	chmod +x .git/hooks/*
	echo more >>README
	git commit -qam 'more'
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
	git clone -q --bare "$PWD" "$BATS_TEST_TMPDIR/bare"
	cd "$BATS_TEST_TMPDIR/bare"
	"$PMDIFF" run --engine count -r 1 -w 0 --base HEAD~2 -- test -e prog.c
}

@test "several at once do not get into each other's way" {
	local i pids=() failed=0
	for i in {1..8}; do
		"$PMDIFF" run --engine count -r 1 -w 0 --base begin --head same -- \
			python3 -c 'import os; assert os.environ["PWD"] == os.getcwd()' \
			>"$BATS_TEST_TMPDIR/$i" 2>&1 &
		pids+=($!)
	done
	for i in {1..8}; do
		# What a clock says of one run is of no interest here.
		wait "${pids[i - 1]}" || [ $? -le 1 ] || failed=$i
	done
	[ "$failed" = 0 ] || {
		cat "$BATS_TEST_TMPDIR/$failed"
		return 1
	}
}

@test "interrupted at any moment, it leaves nothing behind" {
	# Builds leave processes that nobody waits for, and folders that nobody may write.
	python3 "$SOURCE_DIR/tests/cli/kill-pmdiff.py" random 8 1.4 "$PMDIFF" run \
		--engine callgrind -r 1 --base same --head slow --fn parse --build \
		"$BUILD; mkdir closed; touch closed/file; chmod 500 closed; setsid sleep 600 &" \
		-- ./prog
	python3 "$SOURCE_DIR/tests/cli/kill-pmdiff.py" random 2 2 "$PMDIFF" bisect \
		--engine callgrind -r 1 --good begin --bad slow --build "$BUILD" -- ./prog
}

@test "the next run removes what a machine without power has left" {
	python3 "$SOURCE_DIR/tests/cli/kill-pmdiff.py" everybody "$PMDIFF" run \
		--engine count -r 1 --base same --head slow --build 'sleep 600' -- ./prog
	[ -n "$(ls -A "$TMPDIR")" ]
	"$PMDIFF" run --engine count -r 1 -w 0 --base begin --head same -- true
}
