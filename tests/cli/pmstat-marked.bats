#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pmstat --marked: only what a program marks counts, whatever language it is written in. Simulated
# instructions show it to the last hundred.

load common

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	cat >work.h <<-'END'
		static volatile unsigned sink;
		__attribute__((noinline)) static void work(int n) { while (n-- > 0) sink += n; }
	END
	# Six instructions a round: 3 times 1,000 rounds are marked, and 200,000 are not.
	cat >marked.c <<-'END'
		#include <errno.h>
		#include <pmself.h>
		#include "work.h"
		int main(void) {
			work(100000);
			if (perf_stop() != -ESRCH) return 2;
			for (int i = 0; i < 3; i++) {
				if (perf_start() != 0) return 3;
				work(1000);
				if (perf_stop() != 0) return 4;
			}
			work(100000);
			if (perf_start() != 0 || perf_start() != -EALREADY || perf_stop() != 0) return 5;
			return 0;
		}
	END
	cp marked.c marked.cc
	# Names of the loader are looked for before the program begins.
	export PART="-O1 -g -I$SOURCE_DIR/include -Wl,-z,now"
	export LIB="-L$BUILD_DIR/src/self -Wl,-rpath,$BUILD_DIR/src/self -l:libpmself.so.1"
	cc $PART marked.c -o marked $LIB
	cat >requests.c <<-'END'
		#include <valgrind/callgrind.h>
		#include "work.h"
		int main(void) {
			work(100000);
			CALLGRIND_START_INSTRUMENTATION;
			work(3000);
			CALLGRIND_STOP_INSTRUMENTATION;
			work(100000);
			return 0;
		}
	END
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

# simulated LEAST MOST COMMAND...: so many instructions are marked.
simulated() {
	run "$PMSTAT" --engine callgrind --marked --json -q -o "$BATS_TEST_TMPDIR/out.json" \
		-- "${@:3}"
	[ "$status" = 0 ] || {
		echo "$output"
		return 1
	}
	jq -e --argjson least "$1" --argjson most "$2" '.runs[0].counts[0].value as $ir
		| if $ir >= $least and $ir <= $most then true else $ir | debug | false end' \
		"$BATS_TEST_TMPDIR/out.json"
}

@test "C and C++ mark a part, and callgrind counts nothing else" {
	simulated 18000 20500 ./marked
	g++ $PART marked.cc -o marked-cc $LIB
	simulated 18000 20500 ./marked-cc
}

@test "valgrind's own requests mark it, too" {
	[ -e /usr/include/valgrind/callgrind.h ] || skip 'valgrind/callgrind.h is not there'
	cc -O1 -g requests.c -o requests
	simulated 18000 18100 ./requests
}

@test "Python marks a part, by ctypes" {
	cat >marked.py <<-END
		import ctypes
		pmself = ctypes.CDLL("$BUILD_DIR/src/self/libpmself.so.1")
		work = lambda n: sum(i * i for i in range(n))
		work(300000)
		assert pmself.perf_start() == 0
		work(1000)
		assert pmself.perf_stop() == 0
	END
	run "$PMSTAT" --marked --json -q -o out.json -e task-clock -- python3 marked.py
	[ "$status" = 0 ]
	run "$PMSTAT" --json -q -o whole.json -e task-clock -- env PMSELF=off python3 marked.py
	[ "$status" = 0 ]
	jq -e -n --slurpfile part out.json --slurpfile whole whole.json \
		'$part[0].runs[0].counts[0].value as $p | $whole[0].runs[0].counts[0].value as $w
		| $p > 0 and $p < $w / 5'
}

@test "Rust marks a part" {
	command -v rustc || skip 'rustc is not installed'
	cat >marked.rs <<-'END'
		extern "C" { fn perf_start() -> i32; fn perf_stop() -> i32; }
		#[inline(never)]
		fn work(n: u32) -> u32 { (0..n).fold(0, |a, i| unsafe { std::ptr::read_volatile(&(a ^ i)) }) }
		fn main() {
			let mut all = work(100000);
			unsafe { assert_eq!(perf_start(), 0) };
			all ^= work(3000);
			unsafe { assert_eq!(perf_stop(), 0) };
			std::process::exit((all ^ work(100000) == 1) as i32);
		}
	END
	rustc -O -C link-arg="$BUILD_DIR/src/self/libpmself.so.1" \
		-C link-arg=-Wl,-rpath,"$BUILD_DIR/src/self" marked.rs -o marked-rs
	simulated 6000 40000 ./marked-rs
}

@test "counters are switched: what is known of the whole is not told of a part" {
	run "$PMSTAT" --marked --json -q -o out.json -e task-clock -- ./marked
	[ "$status" = 0 ]
	jq -e '(.events | map(.name)) as $names | .runs[0].counts as $counts
		| ($counts[$names | index("task-clock")] | .status == "ok" and .value > 0)
		and ($counts[$names | index("wall-time")].status == "ok")
		and ($counts[$names | index("user-time")].status == "not_supported")
		and ($counts[$names | index("max-rss")].value == null)' out.json
}

@test "a command that marks nothing is an error, and a failing one is told as such" {
	run "$PMSTAT" --marked -- true
	[ "$status" = 125 ]
	[[ $output == *'true: it has marked no part to count'* ]]
	run "$PMSTAT" --marked --engine callgrind -- true
	[ "$status" = 125 ]
	[[ $output == *'it has marked no part to count'* ]]
	run "$PMSTAT" --marked=begin_part,end_part --engine callgrind -- true
	[ "$status" = 125 ]
	[[ $output == *'true: it has no part to count: it did not call begin_part, and after it end_part'* ]]
	run "$PMSTAT" --marked -- false
	[ "$status" = 1 ]
	run "$PMSTAT" --marked -p $$
	[ "$status" = 125 ]
	[[ $output == *'--marked counts a command that it starts'* ]]
	run "$PMSTAT" --marked -I 100 -- true
	[ "$status" = 125 ]
	# A part that never ends is counted to the end of the program.
	sed '/perf_stop() != 0) return 4/d' marked.c >open.c
	sed -i 's/i < 3/i < 1/; s/if (perf_start() != 0 ||.*$/_exit(0);/; 1i #include <unistd.h>' open.c
	cc $PART open.c -o open $LIB
	run "$PMSTAT" --marked --json -q -o out.json -e task-clock -- ./open
	[ "$status" = 0 ]
	jq -e '.runs[0].counts[0].value > 0' out.json
}

@test "--stacks: the exact cost of each stack, as a recording" {
	cat >calls.c <<-'END'
		#include "work.h"
		__attribute__((noinline)) void parse(void) { work(1000); sink++; }
		__attribute__((noinline)) void emit(void) { work(500); sink++; }
		__attribute__((noinline)) int odd(int n);
		__attribute__((noinline)) int even(int n) { return n == 0 ? 1 : odd(n - 1) + (sink & 0); }
		__attribute__((noinline)) int odd(int n) { return n == 0 ? 0 : even(n - 1) + (sink & 0); }
		int main(void) { parse(); emit(); parse(); return even(100) - 1; }
	END
	cc -O1 -g -fno-optimize-sibling-calls calls.c -o calls
	run "$PMSTAT" --engine callgrind --stacks stacks.json --json -q -o out.json -- ./calls
	[ "$status" = 0 ]
	# All of it is there.
	jq -s -e '.[0].runs[0].counts[0].value == ([.[1:][] | select(.type == "sample") | .period] | add)' \
		out.json stacks.json
	run "$PMREPORT" stacks.json --folded=period
	[ "$status" = 0 ]
	# 1,000 rounds of six instructions, and four more, twice.
	[[ $output == *'main;parse;work 12008'* ]]
	[[ $output == *'main;emit;work 3004'* ]]
	run "$PMSTAT" --stacks stacks.json -- ./calls
	[ "$status" = 125 ]
	[[ $output == *'--stacks goes with --engine callgrind'* ]]
	run "$PMSTAT" --engine callgrind -r 2 --stacks stacks.json -- ./calls
	[ "$status" = 125 ]
}
