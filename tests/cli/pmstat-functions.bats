#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Functions and ranges, by each engine, against programs that print how often their functions
# were called (tests/programs/count-*): the counts are exact, and the program does not notice.
# PMSTAT, PROGRAMS and SOURCE_DIR come from meson.

load common

ENGINES=(uprobe ptrace callgrind)

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

teardown() {
	[ -z "${pid-}" ] || kill -9 "$pid" || true
	[ -z "${open-}" ] || rm -r "$open"
}

# works ENGINE: whether it can be had here. ptrace always can; the others that cannot are noted.
missing=()
works() {
	case $1 in
	uprobe) [ -e /sys/bus/event_source/devices/uprobe ] && [ "$(id -u)" = 0 ] ;;
	callgrind) command -v valgrind >/dev/null ;;
	esac || {
		[[ " ${missing[*]} " = *" $1 "* ]] || missing+=("$1")
		return 1
	}
}

# all_worked: skips the rest of a test if an engine was missing in it.
all_worked() {
	[ ${#missing[@]} = 0 ] || skip "only the other engines were tested, there is no ${missing[*]}"
}

# measure STATUS ENGINE ARGUMENT...: into s.json, with this exit status and nothing on stderr but
# warnings; the command's stdout in `truth`.
measure() {
	local expected=$1 engine=$2 actual=0
	shift 2
	"$PMSTAT" --engine "$engine" --json -o s.json "$@" >truth 2>err || actual=$?
	[ "$actual" = "$expected" ] && ! grep -qv '^pmstat: warning: ' err || {
		echo "$engine: status $actual instead of $expected: $*"
		cat err
		return 1
	}
}

# scopes: `NAME: CALLS UNFINISHED` for each, as the programs print it.
scopes() {
	python3 -c 'if True:
		import json
		for s in json.load(open("s.json"))["scopes"]:
		    print("%s: %d %d" % (s["name"], s["calls"], s["unfinished"]))'
}

# agree ENGINE: what was measured is what the program says, line by line.
agree() {
	scopes | diff truth - || {
		echo "engine $1"
		return 1
	}
}

# so EXPRESSION...: all of them are true of the document `d`, its scopes `by`, by name, and the
# values `v(scope, event)`.
so() {
	python3 - "$@" <<-'END'
		import json, sys
		d = json.load(open('s.json'))
		# A virtual machine's host may have taken CPU time.
		d['warnings'] = [w for w in d['warnings'] if 'the host took' not in w]
		by = {s['name']: s for s in d['scopes']}
		def v(s, event):
		    return s['counts'][[e['name'] for e in d['events']].index(event)]['value']
		for expression in sys.argv[1:]:
		    if not eval(expression):
		        sys.exit(f'not so of {d["engine"]}: {expression}\n{json.dumps(by, indent=1)}')
	END
}

# lines FILE TEXT: `FROM-TO`, what is between `TEXT begins` and `TEXT ends`.
lines() {
	local all
	mapfile -t all < <(sed -n "\\:/[/*] $2 begins:,\\:/[/*] $2 ends:=" \
		"$SOURCE_DIR/tests/programs/$1")
	echo "$((all[0] + 1))-$((all[-1] - 1))"
}

ways=(called_once called_thousand called_many recursive jumps_out jumped_over tail_begin
	tail_end is_even is_odd in_handler interrupted never_called)

# bats test_tags=guest
@test "calls from threads, of itself, left by jumps, into and out of handlers" {
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 7 "$engine" "${ways[@]/#/--fn=}" -- "$PROGRAMS/count-calls" 300
		[ "$(wc -l <truth)" = ${#ways[@]} ]
		agree "$engine"
		so 'd["engine"] == "'"$engine"'"' 'd["runs"][0]["exit_code"] == 7' \
			'all(s["calls_exact"] and s["lost"] == 0 for s in by.values())' \
			'by["recursive"]["max_depth"] == 7' \
			'by["recursive"]["nested"] == by["recursive"]["calls"] - 4' \
			'by["called_once"]["max_depth"] == 1' \
			'by["never_called"]["max_depth"] == 0'
	done
	all_worked
}

@test "exceptions pass through; C++ names" {
	[ -e "$PROGRAMS/count-throw" ] || skip "there is no C++ compiler"
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 3 "$engine" --fn catches --fn thrown_through --fn throws \
			--fn shapes::Square::area --fn shapes::scaled -- "$PROGRAMS/count-throw"
		agree "$engine"
		measure 3 "$engine" --fn 'shapes::scaled(double)' -- "$PROGRAMS/count-throw"
		[ "$(scopes)" = "shapes::scaled(double): 1 0" ]
	done
	all_worked
}

@test "children, forked in the middle of a call and exec'd, and none of them with -i" {
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 6 "$engine" --fn in_process --fn in_parent -- "$PROGRAMS/count-exec" 40
		[ "$(wc -l <truth)" = 2 ]
		agree "$engine"
		[ "$engine" = callgrind ] ||
			so 'sum("in the middle of a call" in w for w in d["warnings"]) == 1'
		measure 6 "$engine" -i --fn in_process -- "$PROGRAMS/count-exec" 40
		[ "$(scopes)" = "in_process: 40 0" ]
	done
	all_worked
}

@test "callgrind counts what a process was forked with once" {
	works callgrind || skip "valgrind is not installed"
	local forks
	for forks in 0 1 3; do
		measure 0 callgrind -e sim.Ir --fn work -- "$PROGRAMS/count-forks" "$forks"
		agree callgrind
		so 'd["warnings"] == []' 'by["work"]["calls_exact"]' \
			'v(by["work"], "sim.Ir") % by["work"]["calls"] == 0'
	done
	# Costs that cannot be divided are left out: the result never exceeds the truth.
	for how in threads raw; do
		measure 0 callgrind -e sim.Ir --fn work -- "$PROGRAMS/count-forks" 2 "$how"
		so "220 <= by['work']['calls'] < $(grep -o '[0-9]* 0$' truth | cut -d' ' -f1)" \
			'not by["work"]["calls_exact"]' \
			'any("is not counted, for callgrind adds it to" in w for w in d["warnings"])'
	done
}

@test "a library that comes, goes and comes again" {
	local library=$PROGRAMS/libcount-lib.so
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" --fn "in_library@$library" -- \
			"$PROGRAMS/count-dlopen" "$library"
		agree "$engine"
	done
	all_worked
}

@test "ranges of lines, and a function that is inlined in three places" {
	local loop branch functions file=count-range.c
	loop=$(lines "$file" range)
	branch=$(lines "$file" branch)
	functions=$(lines "$file" functions)
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" --range "$file:$loop" --range "$file:$branch" \
			--range "$file:$functions" --fn inlined -- "$PROGRAMS/count-range"
		sed -i "s/^range:/$file:$loop:/; s/^branch:/$file:$branch:/
			s/^functions:/$file:$functions:/" truth
		agree "$engine"
		so 'by["inlined"]["kind"] == "inlined"' 'by["inlined"]["places"] == 3' \
			'[s["kind"] for s in d["scopes"]] == ["range"] * 3 + ["inlined"]'
	done
	all_worked
}

@test "cold parts belong to the function of their own file" {
	for name in one two; do
		printf '%s\n' 'extern volatile long s;' \
			"__attribute__((cold, noinline)) void fail_$name(void) { s--; }" \
			'static __attribute__((noinline)) void work(long v) {' 's += v;' 'if (v % 5 == 2) {' \
			"s ^= v; fail_$name(); s ^= 1; fail_$name();" '}' 's++;' '}' \
			"void $name(long v) { work(v); }" >$name.c
	done
	printf '%s\n' 'volatile long s;' 'void one(long), two(long);' \
		'int main(void) { for (int i = 0; i < 15; i++) { one(i); two(i); } }' >main.c
	cc -O2 -g main.c one.c two.c -o parts
	[ "$(nm parts | grep -c ' work\.cold')" = 2 ] || skip "the compiler made no cold parts"
	for engine in ptrace callgrind; do
		works "$engine" || continue
		measure 0 "$engine" --range one.c:6 --range two.c:6 --range two.c:4-7 -- ./parts
		so '[s["calls"] for s in d["scopes"]] == [3, 3, 15]'
	done
	all_worked
}

@test "a range of which no statement is left has its code in all functions" {
	works ptrace || skip "there is no ptrace"
	printf '%s\n' 'static volatile long s;' \
		'#define MOVED ".loc 1 900 0 is_stmt 0\n\tnop\n\tnop\n\t.loc 1 5 0 is_stmt 1\n\tnop"' \
		'__attribute__((noinline)) void one(void) { s++; __asm__ volatile(MOVED); s++; }' \
		'__attribute__((noinline)) void two(void) { s--; __asm__ volatile(MOVED); s++; }' \
		'int main(void) { for (int i = 0; i < 10; i++) { one(); two(); } }' >moved.c
	gcc -O2 -g moved.c -o moved || skip "there is no gcc"
	measure 0 ptrace --range moved.c:900 -- ./moved
	so 'd["scopes"][0]["calls"] == 20'
}

@test "a range in the middle of a loop is warned of while the program crawls" {
	printf '%s\n' 'volatile long s;' 'int main(void) {' 'for (;;) {' 's++;' 's ^= 5;' \
		's += 3;' '}' '}' >crawl.c
	cc -O2 -g crawl.c -o crawl
	for engine in uprobe ptrace; do
		works "$engine" || continue
		# Once, though it runs twice.
		[ "$engine" = ptrace ] || set -- -r 2
		measure 0 "$engine" "$@" --timeout 2000 --range crawl.c:5 -- ./crawl
		set --
		# Where the host lets it pass them some thousand times only, there is nothing to tell.
		so 'd["scopes"][0]["calls"] < 20000' 2>/dev/null ||
			[ "$(grep -c 'crawl.c:5: its edges are passed .* try: --engine callgrind' err)" = 1 ]
		so 'v(d["scopes"][0], "task-clock") != 0' 'v(d["scopes"][0], "wall-time") != 0'
	done
	all_worked
}

@test "ranges that exceptions come into, go out of, and leave for good" {
	local ranges=(first second double int passed) words=() i
	[ -e "$PROGRAMS/count-catch" ] || skip "there is no C++ compiler"
	for i in "${ranges[@]}"; do
		words+=(--range "count-catch.cc:$(lines count-catch.cc "$i")")
	done
	for engine in uprobe ptrace; do
		works "$engine" || continue
		measure 0 "$engine" "${words[@]}" -- "$PROGRAMS/count-catch"
		for i in "${!ranges[@]}"; do
			sed -i "s/^${ranges[i]}:/${words[2 * i + 1]}:/" truth
		done
		agree "$engine"
	done
	all_worked
}

@test "a range of addresses is what its function is" {
	local low high
	read -r low high < <(nm -S "$PROGRAMS/count-calls" |
		awk '$4 == "called_thousand" { print $1, $2 }')
	low=$((16#$low)) high=$((low + 16#$high))
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 7 "$engine" --fn called_thousand --range "$(printf '0x%x-0x%x' $low $high)" \
			-- "$PROGRAMS/count-calls" 1
		so 'len(d["scopes"]) == 2' '{s["calls"] for s in d["scopes"]} == {4000}'
	done
	all_worked
}

@test "sum over an array, at a fixed address and not" {
	for program in sumbench sumbench-no-pie; do
		for engine in "${ENGINES[@]}"; do
			works "$engine" || continue
			measure 0 "$engine" --fn sum -- "$PROGRAMS/$program" 100000
			[ "$(cat truth)" = "$("$PROGRAMS/$program" 100000)" ]
			[ "$(scopes)" = "sum: 1 0" ]
			[ "$engine" != callgrind ] ||
				so '400000 <= v(by["sum"], "sim.Ir") <= 1000000' \
					'0 < v(by["sum"], "sim.Ir") % 100000 < 100'
		done
	done
	all_worked
}

@test "calls are told when they end, alike by engines, without what cannot be counted" {
	local time='[0-9]{1,3}(\.[0-9]+)? (ns|µs|us|ms|s)'
	local line="^called_thousand \[[0-9]+/[0-9]+\]: wall-time $time"
	for engine in uprobe ptrace; do
		works "$engine" || continue
		"$PMSTAT" --engine "$engine" --live -e task-clock,cycles -o s.txt \
			--fn called_thousand -- "$PROGRAMS/count-calls" 1 >truth 2>err || [ $? = 7 ]
		calls=$(sed -n 's/^called_thousand: \([0-9]*\) .*/\1/p' truth)
		[ "$(grep -cE "$line, task-clock $time(,|\$)" err)" = "$calls" ]
		if grep -q 'cycles.*not supported' s.txt; then
			! grep -E '^called_thousand.*cycles' err || false
		fi
	done
	"$PROGRAMS/deny-perf" 1 "$PMSTAT" --engine ptrace --live -e page-faults -o s.txt \
		--fn called_thousand -- "$PROGRAMS/count-calls" 1 >truth 2>err || [ $? = 7 ]
	[ "$(grep -cE "$line\$" err)" = "$calls" ]
	all_worked
}

@test "of a function that is inlined in parts, calls are not told for sure" {
	cat >parts.c <<-'END'
		static int a = 1, b = 2, c = 3, values[300];
		static inline __attribute__((always_inline)) int part(int x)
		{
			int t = a * x + b;
			return (t & 1 ? t + c * 3 : t) ^ x;
		}
		__attribute__((noinline)) int whole(const int *at, int n)
		{
			int sum = 0;
			for (int i = 0; i < n; i++) {
				__asm__ volatile("" ::: "memory");
				int q = at[i] * 7 + (i ^ sum), z = (a + i) * (sum | 3);
				sum += z + q * part(at[i]) + (i >> 2) * 5;
			}
			return sum;
		}
		int main(void)
		{
			a += values[0];
			return whole(values, 300) & 0;
		}
	END
	cc -g -O2 parts.c -o parts
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" --fn part --fn whole -- ./parts
		so 'by["whole"]["calls_exact"]' 'by["part"]["calls"] >= 300' \
			'by["part"]["calls_exact"] == (by["part"]["calls"] == 300)' \
			'by["part"]["calls_exact"] != any("a part of it" in w for w in d["warnings"])'
	done
	all_worked
}

@test "simulated counts are the same each time" {
	works callgrind || skip "valgrind is not installed"
	measure 0 callgrind -r 4 -e sim.Ir,sim.Dr,sim.D1mr,sim.Bc --fn main -- \
		"$PROGRAMS/sumbench" 50000
	so 'len(d["runs"]) == 4' \
		'len({tuple(c["value"] for c in r["counts"][:2]) for r in d["runs"]}) == 1' \
		'v(d["scopes"][0], "sim.Dr") >= 50000' 'v(d["scopes"][0], "sim.D1mr") >= 50000 / 16' \
		'v(d["scopes"][0], "sim.Bc") >= 50000' \
		'{"I1", "D1", "LL", "GLIBC_TUNABLES", "valgrind"} <= {s["name"] for s in d["settings"]}'
	run -125 --separate-stderr "$PMSTAT" --engine callgrind -e sim.Irr true
	[[ $stderr == *sim.Ir* ]]
}

# Valgrind 3.19 of Debian 12 reads beyond the end of clang's DWARF 5 and gives up. Newer
# versions can read it.
@test "debug information that valgrind cannot read is told, with what helps" {
	works callgrind || skip "valgrind is not installed"
	command -v clang >/dev/null || skip "clang is not installed"
	clang -g -O1 -D_GNU_SOURCE -std=gnu11 -I"$SOURCE_DIR/include" -o mean -x c - \
		"$SOURCE_DIR"/src/stats/*.c -lm <<-'END'
			#include "pm/stats.h"
			int main(void)
			{
				double values[3] = { 1, 2, 3 };
				struct pm_stats_summary summary;
				return pm_stats_summarize(values, 3, &summary) || summary.mean != 2;
			}
		END
	if valgrind --tool=callgrind --callgrind-out-file=/dev/null ./mean >log 2>&1; then
		skip "this valgrind reads clang's debug information"
	fi
	grep -q 'debuginfo reader' log
	run -125 --separate-stderr "$PMSTAT" --engine callgrind --json -o s.json -- ./mean
	[[ $stderr == *'/mean: valgrind cannot read the debug information'*'try: build with -gdwarf-4'* ]]
	[ ! -e s.json ]
	clang -gdwarf-4 -O1 -D_GNU_SOURCE -std=gnu11 -I"$SOURCE_DIR/include" -o mean -x c - \
		"$SOURCE_DIR"/src/stats/*.c -lm <<-'END'
			int main(void)
			{
				return 0;
			}
		END
	"$PMSTAT" --engine callgrind --json -o s.json -- ./mean
}

@test "a template's name means all of its instances" {
	cat >t.cc <<-'END'
		#include <cstdio>
		namespace ns {
		template <typename T> __attribute__((noinline)) T twice(T a) { return a + a; }
		template <typename T> struct box {
			__attribute__((noinline)) T get(T a) { return a - 1; }
		};
		struct plain { bool operator<(const plain &) const; int x; };
		__attribute__((noinline)) bool plain::operator<(const plain &o) const
		{ return x < o.x; }
		}
		int main()
		{
			volatile int i = 3;
			volatile double d = 2;
			ns::plain a{1}, b{2};
			for (int k = 0; k < 5; k++) i = ns::twice<int>(i) & 7;
			for (int k = 0; k < 7; k++) d = ns::twice<double>(d) / 2;
			for (int k = 0; k < 3; k++) i = ns::box<int>().get(i);
			return !(a < b);
		}
	END
	c++ -O1 -o t t.cc
	measure 0 ptrace --fn ns::twice --fn ns::box::get --fn 'ns::plain::operator<' -- ./t
	scopes | sort >seen
	diff - seen <<-'END'
		ns::box<int>::get(int): 3 0
		ns::plain::operator<(ns::plain const&) const: 1 0
		ns::twice<double>(double): 7 0
		ns::twice<int>(int): 5 0
	END
}

# The names are those of rustc's older mangling; two instances differ in the hash alone.
@test "instances of Rust that have one name are told apart" {
	cat >r.c <<-'END'
		void one(void) __asm__("_ZN4demo4work17h0123456789abcdefE");
		void two(void) __asm__("_ZN4demo4work17hfedcba9876543210E");
		void alone(void) __asm__("_ZN4demo5alone17hfedcba9876543210E");
		__attribute__((noinline)) void one(void) { __asm__ volatile(""); }
		__attribute__((noinline)) void two(void) { __asm__ volatile(""); }
		__attribute__((noinline)) void alone(void) { __asm__ volatile(""); }
		int main(void) { one(); two(); two(); alone(); return 0; }
	END
	cc -O1 -o r r.c
	measure 0 ptrace --fn demo::work --fn demo::alone -- ./r
	scopes | sort >seen
	diff - seen <<-'END'
		demo::alone: 1 0
		demo::work::h0123456789abcdef: 1 0
		demo::work::hfedcba9876543210: 2 0
	END
}

@test "simulated costs as people read them: hits, misses and estimated cycles" {
	works callgrind || skip "valgrind is not installed"
	measure 0 callgrind -e sim.costs -e sim.Dr,sim.Dw,sim.I1mr,sim.D1mr,sim.D1mw \
		-e sim.ILmr,sim.DLmr,sim.DLmw --fn main -- "$PROGRAMS/sumbench" 1000
	python3 - <<-'END'
		import json
		d = json.load(open('s.json'))
		names = [e['name'][4:] for e in d['events'] if e['source'] == 'simulated']
		for counts in d['runs'][0]['counts'], d['scopes'][0]['counts']:
		    v = {n: c['value'] for n, c in zip(names, counts)}
		    l1 = v['I1mr'] + v['D1mr'] + v['D1mw']
		    ll = v['ILmr'] + v['DLmr'] + v['DLmw']
		    assert v['L1hits'] == v['Ir'] + v['Dr'] + v['Dw'] - l1
		    assert v['LLhits'] == l1 - ll and v['RAMhits'] == ll and l1 > 0
		    assert v['cycles'] == v['L1hits'] + 5 * v['LLhits'] + 35 * v['RAMhits']
	END
}

@test "code that callgrind does not see is unknown, and not 0" {
	works callgrind || skip "valgrind is not installed"
	measure 0 callgrind -e sim.Ir --fn _init --fn main -- "$PROGRAMS/sumbench" 1000
	so 'by["main"]["calls"] == 1 and by["main"]["calls_exact"]' \
		'not by["_init"]["calls_exact"] and v(by["_init"], "sim.Ir") is None' \
		'[w for w in d["warnings"] if ".text" in w][0].startswith("_init ")'
}

@test "simulated counts are of threads, and the same on both sides" {
	works callgrind || skip "valgrind is not installed"
	measure 7 callgrind --per thread --fn called_many -- "$PROGRAMS/count-calls" 200
	so 'sum(t["calls"] for t in by["called_many"]["threads"]) == 800' \
		'all(t["calls"] % 200 == 0 for t in by["called_many"]["threads"])' \
		'all(t["comm"] and t["tid"] is None for t in by["called_many"]["threads"])'
	PMSTAT_PADDING=x "$PMSTAT" ab -r 2 --engine callgrind --json -o s.json -- \
		"$PROGRAMS/sumbench" 1000 ::: "$PROGRAMS/sumbench" 1000 >truth 2>err
	so 'len(d["runs"]) == 4' 'len({r["counts"][0]["value"] for r in d["runs"]}) == 1'
}

@test "what a function costs is counted outermost, with all that it calls" {
	works callgrind || skip "valgrind is not installed"
	measure 7 callgrind --fn work --fn recursive --fn called_many --calls-from -- \
		"$PROGRAMS/count-calls" 200
	so 'v(by["recursive"], "sim.Ir") < v(by["work"], "sim.Ir")' \
		'v(by["called_many"], "sim.Ir") * 2 < v(by["work"], "sim.Ir")' \
		'v(by["called_many"], "sim.Ir") % 800 == 0' \
		'[c["frames"][0]["function"] for c in by["called_many"]["callers"]] == ["work"]' \
		'by["called_many"]["callers"][0]["calls"] == 800'
}

@test "a crash inside the function" {
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 139 "$engine" --fn crashing --fn called_many -- \
			"$PROGRAMS/count-calls" 20 crash
		[ "$(scopes)" = $'crashing: 1 1\ncalled_many: 80 0' ]
		so 'd["runs"][0]["signal"] == 11' 'd["runs"][0]["exit_code"] is None'
	done
	all_worked
}

@test "Ctrl-C in the middle prints what there is" {
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		"$PMSTAT" --engine "$engine" --json -o s.json --fn waiting -- \
			"$PROGRAMS/count-calls" 1 wait >truth 2>err &
		pid=$!
		for _ in {1..1200}; do
			! grep -q ready truth || break
			sleep 0.1
		done
		kill -TERM $pid
		local status=0
		wait $pid || status=$?
		unset pid
		[ "$status" = 143 ] || { echo "$engine: $status"; cat err; false; }
		[ "$(scopes)" = "waiting: 1 1" ]
		so 'd["runs"][0]["stopped"]' 'd["runs"][0]["signal"] == 15'
	done
	all_worked
}

# bats test_tags=guest
@test "calls by who called: each is told once, and so are its numbers" {
	for engine in uprobe ptrace; do
		works "$engine" || continue
		measure 7 "$engine" -e page-faults --calls-from=2 --fn called_once \
			--fn recursive -- "$PROGRAMS/count-calls" 1
		so '[c["calls"] for c in by["called_once"]["callers"]] == [4]' \
			'by["called_once"]["callers"][0]["frames"][0]["function"] == "work"' \
			'sum(c["calls"] for c in by["recursive"]["callers"]) == 508' \
			'sum(c["calls"] for c in by["recursive"]["callers"]
			    if c["frames"][0]["function"] == "work") == 4' \
			'all(sum(c["counts"][0]["value"] for c in s["callers"]) ==
			    v(s, "page-faults") for s in by.values())'
	done
	all_worked
}

@test "a killed pmstat leaves no probe behind for long; two at once are two" {
	works uprobe || skip "there are no uprobes"
	"$PMSTAT" --engine uprobe --fn waiting -- "$PROGRAMS/count-calls" 1 wait >killed 2>&1 &
	pid=$!
	for _ in {1..1200}; do
		! grep -q ready killed || break
		sleep 0.1
	done
	# shellcheck disable=SC2016
	traced sh -c 'grep -q "pmstat_[0-9]*_$1/" /sys/kernel/tracing/uprobe_events' sh $pid
	local child
	child=$(cat /proc/$pid/task/$pid/children)
	kill -9 $pid
	wait $pid || true
	kill -9 "$child"
	"$PMSTAT" --engine uprobe --json -o other.json --fn called_many -- \
		"$PROGRAMS/count-calls" 300 >other 2>&1 &
	local second=$!
	measure 7 uprobe --fn called_many -- "$PROGRAMS/count-calls" 300
	[ "$(scopes)" = "$(grep ^called_many: truth)" ]
	wait $second || [ $? = 7 ]
	mv other.json s.json
	[ "$(scopes)" = "$(grep ^called_many: truth)" ]
	# shellcheck disable=SC2016
	! traced sh -c 'grep "pmstat_[0-9]*_\($1\|$2\)/" /sys/kernel/tracing/uprobe_events' \
		sh $pid $second || false
	unset pid
}

@test "a function of one instruction is over with it" {
	cat >one.c <<-'END'
		#include <sys/mman.h>
		static volatile char *pages;
		__attribute__((noipa)) void one(void)
		{
			__asm__ volatile("");
		}
		int main(void)
		{
			pages = mmap(0, 400 * 4096, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise((void *)pages, 400 * 4096, MADV_NOHUGEPAGE);
			for (int i = 0; i < 400; i++) {
				one();
				pages[i * 4096] = 1;
			}
			return 0;
		}
	END
	cc -O2 -fcf-protection=none one.c -o one
	for engine in uprobe ptrace; do
		works "$engine" || continue
		measure 0 "$engine" -e page-faults --fn one -- ./one
		so 'by["one"]["calls"] == 400' 'by["one"]["unfinished"] == 0' \
			'v(by["one"], "page-faults") < 40'
	done
	all_worked
}

@test "who is made while its maker is let go or killed lives on" {
	cat >made.c <<-'END'
		#include <signal.h>
		#include <unistd.h>
		__attribute__((noipa)) void called(void)
		{
			__asm__ volatile("nop\n\tnop");
		}
		int main(void)
		{
			signal(SIGCHLD, SIG_IGN);
			for (;;) {
				if (fork() == 0) {
					if (write(1, "a", 1) != 1)
						_exit(1);
					usleep(2000);
					called();
					_exit(write(1, "b", 1) != 1);
				}
				usleep(200);
			}
		}
	END
	cc -O2 made.c -o made
	made_lives() {
		[ "$(tr -cd a <made.out | wc -c)" = "$(tr -cd b <made.out | wc -c)" ]
	}
	for i in {1..14}; do
		./made >>made.out &
		pid=$!
		until_true executes "$pid" made
		"$PMSTAT" --engine ptrace -p "$pid" --fn called -e page-faults \
			--timeout $((i % 2 * 10000 + 20)) >/dev/null &
		until ! kill -0 $! 2>/dev/null || grep -q 'TracerPid:.*[1-9]' "/proc/$pid/status"; do
			sleep 0.01
		done
		sleep "0.05$i"
		kill -9 "$pid"
		wait $!
		unset pid
	done
	until_true made_lives
}

@test "who outlives the command is told of" {
	cat >outlived.c <<-'END'
		#include <unistd.h>
		__attribute__((noipa)) void called(void)
		{
			__asm__ volatile("");
		}
		int main(void)
		{
			pid_t parent = getpid();
			called();
			if (fork() > 0)
				return 0;
			for (int fd = 0; fd < 64; fd++)
				close(fd);
			while (getppid() == parent)
				usleep(1000);
			sleep(10);
			return 0;
		}
	END
	cc -O2 outlived.c -o outlived
	for engine in uprobe ptrace; do
		works "$engine" || continue
		measure 0 "$engine" --fn called -- ./outlived
		so 'by["called"]["calls"] == 1' 'any("ran on after" in w for w in d["warnings"])'
	done
	all_worked
}

@test "lost records without lost hits are told of" {
	works uprobe || skip "there are no uprobes"
	# The command stops the reader of the rings until one is full of names. The kernel reports
	# the loss with the next record of that ring, so the command stays on its CPU.
	cat >switches.c <<-'END'
		#define _GNU_SOURCE
		#include <sched.h>
		#include <signal.h>
		#include <sys/prctl.h>
		#include <unistd.h>
		__attribute__((noipa)) void called(void)
		{
			__asm__ volatile("nop\n\tnop");
		}
		int main(void)
		{
			cpu_set_t here;

			CPU_ZERO(&here);
			CPU_SET(sched_getcpu(), &here);
			sched_setaffinity(0, sizeof(here), &here);
			called();
			kill(getppid(), SIGSTOP);
			for (int i = 0; i < 1000000; i++)
				prctl(PR_SET_NAME, i % 2 ? "odd" : "even");
			kill(getppid(), SIGCONT);
			for (int i = 0; i < 100; i++) {
				usleep(5000);
				prctl(PR_SET_NAME, "again");
			}
			return 0;
		}
	END
	cc -O2 switches.c -o switches
	measure 0 uprobe -e page-faults --fn called -- ./switches
	so 'any("records of threads" in w for w in d["warnings"])' \
		'by["called"]["lost"] == 0' 'by["called"]["calls"] == 1'
}

# unhanded: where new threads are not handed counters at places, as before Linux 6.12.
unhanded() {
	printf '#!/bin/sh\nexec "%s" each "%s" "$@"\n' "$PROGRAMS/deny-perf" "$PMSTAT" >unhanded
	chmod +x unhanded
	PMSTAT=$PWD/unhanded
}

@test "where nothing is handed on to new threads, they are held until they are counted" {
	works uprobe || skip "there are no uprobes"
	unhanded
	measure 7 uprobe "${ways[@]/#/--fn=}" -- "$PROGRAMS/count-calls" 300
	agree uprobe
	so 'all("took is not known" in w for w in d["warnings"])' \
		'all(s["calls_exact"] for s in by.values())'
	measure 6 uprobe --fn in_process --fn in_parent -- "$PROGRAMS/count-exec" 40
	agree uprobe
}

@test "where little memory may be locked, it is enough for many threads at once" {
	works uprobe || skip "there are no uprobes"
	cat >many.c <<-'END'
		#include <pthread.h>
		static volatile int sink;
		static pthread_barrier_t all;
		__attribute__((noipa)) void called(void) { sink++; }
		static void *calls(void *user)
		{
			called();
			pthread_barrier_wait(&all);
			return user;
		}
		int main(void)
		{
			pthread_t thread;
			pthread_barrier_init(&all, NULL, 31);
			for (int i = 0; i < 30; i++)
				if (pthread_create(&thread, NULL, calls, NULL))
					return 1;
			pthread_barrier_wait(&all);
			return 0;
		}
	END
	cc -O2 -pthread many.c -o many
	printf '#!/bin/sh\nulimit -l 8192\nexec setpriv --bounding-set=-ipc_lock "%s" each "%s" "$@"\n' \
		"$PROGRAMS/deny-perf" "$PMSTAT" >limited
	chmod +x limited
	PMSTAT=$PWD/limited
	measure 0 uprobe -e page-faults --fn called -- ./many
	so 'by["called"]["calls"] == 30' 'by["called"]["calls_exact"]'
}

@test "who is held may execute from any thread, stop, and be killed before that; who cannot be is told" {
	works uprobe || skip "there are no uprobes"
	cat >odd.c <<-'END'
		#include <pthread.h>
		#include <signal.h>
		#include <string.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static volatile int sink;
		__attribute__((noipa)) void called(void) { sink++; }
		static void *calls(void *user) { called(); return user; }
		static void *waits(void *user) { called(); pause(); return user; }
		static void *executes(void *user)
		{
			called();
			execl("/proc/self/exe", "odd", "executed", NULL);
			return user;
		}
		static void *start(void *(*what)(void *)) /* NULL: without a wait for it */
		{
			pthread_t thread;
			pthread_create(&thread, NULL, what, NULL);
			return what == calls ? pthread_join(thread, NULL), NULL : NULL;
		}
		int main(int argc, char **argv)
		{
			int status;
			pid_t stopped;
			while (argc > 1 && strcmp(argv[1], "for-ever") == 0) {
				start(calls);
				usleep(5000);
			}
			if (argc > 1)
				return start(calls), 3;
			for (int i = 0; i < 30; i++) { /* they end as their threads begin */
				if (fork() == 0) {
					start(waits);
					start(waits);
					_exit(0);
				}
				wait(NULL);
			}
			stopped = fork();
			if (stopped == 0) {
				raise(SIGSTOP);
				start(calls);
				_exit(4);
			}
			if (waitpid(-1, &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
				return 1;
			kill(stopped, SIGCONT);
			if (wait(&status) < 0 || WEXITSTATUS(status) != 4)
				return 2;
			start(waits);
			start(executes);
			pause();
		}
	END
	cc -O2 -pthread odd.c -o odd-held
	unhanded
	measure 3 uprobe -e page-faults --fn called -- ./odd-held
	so 'd["warnings"] == []' 'by["called"]["calls_exact"]' \
		'3 <= by["called"]["calls"] <= 64' 'by["called"]["lost"] == 0'
	# What single threads make is not held: it is looked for, and that is told.
	./odd-held for-ever 3>&- &
	pid=$!
	until_true executes "$pid" odd-held
	local each
	for each in 0.3 2 10; do
		measure 0 uprobe -e page-faults --fn called --timeout ${each}s -t $pid
		! grep -q 'first moments' err || break
	done
	grep -q 'not be held' err
	so 'not by["called"]["calls_exact"]'
	kill -9 $pid
	# Of a whole process it is.
	./odd-held for-ever 3>&- &
	pid=$!
	until_true executes "$pid" odd-held
	measure 0 uprobe -e page-faults --fn called --timeout 0.3s -p $pid
	so 'd["warnings"] == []' 'by["called"]["calls_exact"]'
}

@test "names that are not there, and a file without any" {
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		run -125 --separate-stderr "$PMSTAT" --engine "$engine" --fn called_onse -- \
			"$PROGRAMS/count-calls"
		[[ $stderr == *called_onse*called_once* ]] || { echo "$stderr"; false; }
		[ -z "$output" ]
	done
	strip -o stripped "$PROGRAMS/count-calls"
	run -125 --separate-stderr "$PMSTAT" --fn called_once -- ./stripped
	[[ $stderr == *stripped* ]] || { echo "$stderr"; false; }
	[ -z "$output" ]
	if [ -e "$PROGRAMS/m32" ]; then
		run -125 --separate-stderr "$PMSTAT" --fn main -- "$PROGRAMS/m32"
		[[ $stderr == *32-bit* ]] || { echo "$stderr"; false; }
	fi
	all_worked
}

# bats test_tags=guest
@test "an ordinary user counts calls by breakpoints" {
	need_root
	open=$(mktemp -d)
	chmod 777 "$open"
	cd "$open"
	cp "$PMSTAT" "$PROGRAMS/count-calls" .
	PMSTAT=./pmstat
	nobody ./pmstat --json -o s.json --fn called_once --fn called_thousand --fn recursive \
		-- ./count-calls 1 >truth 2>err || [ $? = 7 ]
	grep -E '^(called_once|called_thousand|recursive):' truth >some
	scopes | diff some -
	so 'd["engine"] == "ptrace"'
}

@test "what valgrind cannot run is told in its own words" {
	works callgrind || skip "valgrind is not installed"
	[ "$(uname -m)" = x86_64 ] || skip "of AVX-512"
	cat >wide.c <<-'END'
		int main(void)
		{
			__asm__ volatile(".byte 0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc0");
			return 0;
		}
	END
	cc wide.c -o wide
	# What others leave behind meanwhile is not ours.
	mkdir own
	export TMPDIR=$PWD/own
	measure 132 callgrind --fn main -- ./wide
	so 'd["runs"][0]["signal"] == 4' 'any("0x62 0xF1" in w for w in d["warnings"])' \
		'not any("==" in w for w in d["warnings"])'
	[ -z "$(ls -A own)" ]
}

# bats test_tags=guest
@test "a function whose entry takes no probe is looked at behind it" {
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" --fn unprobed -- "$PROGRAMS/count-instructions" 3 1
		[ "$(scopes)" = "unprobed: 3 0" ]
	done
	works uprobe || all_worked
	run "$PMSTAT" -e "uprobe:$PROGRAMS/count-instructions:unprobed" \
		"$PROGRAMS/count-instructions" 3 1
	[ "$status" = 125 ]
	[[ $output == *"takes no probe on the instruction that is there"* ]]
	run "$PMSTAT" -e "uprobe:$PROGRAMS/count-instructions:unprobed,task-clock" \
		"$PROGRAMS/count-instructions" 3 1
	[ "$status" = 0 ]
	[[ $(tr -s ' \n' ' ' <<<"$output") == *"how often it was passed is not known"* ]]
	[[ $output == *task-clock* && $output != *"0  uprobe:"* ]]
	all_worked
}

@test "functions that begin with AVX are counted, or not known, but never 0" {
	[ "$(uname -m)" = x86_64 ] || skip "of AVX"
	local fns=(--fn loads --fn moves --fn clears --fn loops --fn plain) engine

	"$PROGRAMS/count-avx" 20 >all || skip "this processor has no AVX2"
	grep -v only_jumps all >rest
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" "${fns[@]}" -- "$PROGRAMS/count-avx" 20
		grep -v only_jumps truth | diff - <(scopes)
		so 'all(s["calls_exact"] for s in by.values())'
		if [ "$engine" != uprobe ]; then
			measure 0 "$engine" --fn only_jumps -- "$PROGRAMS/count-avx" 20
			so 'by["only_jumps"]["calls"] == 20'
		fi
	done
	works uprobe || all_worked
	# A function that cannot be seen does not end the run, and its calls are not 0.
	measure 0 uprobe "${fns[@]}" --fn only_jumps -- "$PROGRAMS/count-avx" 20
	so 'by["only_jumps"]["calls"] is None' 'not by["only_jumps"]["calls_exact"]' \
		'by["only_jumps"]["counts"][0]["value"] is None' \
		'sum("only_jumps" in w and "not known" in w for w in d["warnings"]) == 1' \
		'all(s["calls"] == 20 for n, s in by.items() if n != "only_jumps")'
	run -0 "$PMSTAT" --engine uprobe --fn only_jumps --fn plain "$PROGRAMS/count-avx" 20
	[[ $output == *"calls: not known"* ]]
	run -0 "$PMSTAT" -x, --engine uprobe --fn only_jumps --fn plain "$PROGRAMS/count-avx" 20
	[[ $output == *only_jumps,* ]]
	# If there is nothing else, breakpoints see it.
	run -125 "$PMSTAT" --engine uprobe --fn only_jumps "$PROGRAMS/count-avx" 20
	[[ $output == *"--engine ptrace"* ]]
	"$PMSTAT" --json -o s.json --fn only_jumps "$PROGRAMS/count-avx" 20 >truth 2>err
	grep -q "engine ptrace, as the kernel" err
	so 'd["engine"] == "ptrace"' 'by["only_jumps"]["calls"] == 20'
	all_worked
}

@test "of a library, no function that is called has 0 calls" {
	works uprobe || skip "for root"
	local library
	library=$(ldconfig -p | awk '/libz\.so\.1 .*x86-64|libz\.so\.1 .*AArch64/ { print $NF; exit }')
	[ -n "$library" ] || skip "libz is not installed"
	run "$SOURCE_DIR/tests/bench/probe-sweep" "$PMSTAT" "$library" --sample 40
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"of "*" functions: "*" 0 not called"* ]]
}

@test "ranges that begin with AVX are counted" {
	[ "$(uname -m)" = x86_64 ] || skip "of AVX"
	"$PROGRAMS/count-avx" 20 >all || skip "this processor has no AVX2"
	local address name engine ranges=()

	while read -r address _ name; do
		case $name in
		loads | moves)
			address=$(sed 's/^0*/0x/' <<<"$address")
			ranges+=(--range "$address-$(printf '0x%x' $((address + 8)))") ;;
		esac
	done < <(nm "$PROGRAMS/count-avx")
	[ ${#ranges[@]} = 4 ]
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" "${ranges[@]}" -- "$PROGRAMS/count-avx" 20
		so 'len(by) == 2 and all(s["calls"] == 20 for s in by.values())'
	done
	all_worked
}

@test "a function that was inlined without a trace is not known, and not 0" {
	printf '%s\n' 'int doubled(int a) { return a * 2; }' \
		'__attribute__((noipa)) int never(int a) { return a; }' \
		'int main(int argc, char **argv)' \
		'{ return argc > 5 ? never(argc) : doubled(3) + doubled(4) - 14; }' >gone.c
	cc -g -O2 -o gone gone.c
	for engine in "${ENGINES[@]}"; do
		works "$engine" || continue
		measure 0 "$engine" --fn doubled --fn never -- ./gone
		so 'by["doubled"]["calls"] is None' 'not by["doubled"]["calls_exact"]' \
			'any("doubled was inlined" in w for w in d["warnings"])' \
			'by["never"]["calls"] == 0 and by["never"]["calls_exact"]'
	done
	all_worked
}

@test "where a library's function is counted, the program's of that name is told" {
	printf '%s\n' 'namespace app { __attribute__((noipa)) int getppid(int a) { return a + 1; } }' \
		'int main() { return app::getppid(-1); }' >own.cc
	g++ -g -O1 -o own own.cc
	run -0 --separate-stderr "$PMSTAT" --fn getppid -- ./own
	[[ $output == *"app::getppid"*"too"* || $stderr == *"app::getppid"*"too"* ]]
	run -0 --separate-stderr "$PMSTAT" --fn app::getppid -- ./own
	run ! grep -qw too <<<"$output $stderr"
}
