#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs that profile themselves with libpmself. PMREPORT, PROGRAMS, BUILD_DIR, SOURCE_DIR and
# SANITIZE (what the library is sanitized with) come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	unset level open
	SELF=$BUILD_DIR/src/self
}

teardown() {
	[ -z "${level-}" ] || echo "$level" >$LEVEL_FILE
	[ -z "${open-}" ] || rm -r "$open"
}

# Names as they are in the program, without what LD_PRELOAD would do to a sanitized library.
need_plain() {
	[ "$SANITIZE" = none ] || skip "a sanitized library cannot be preloaded"
}

# shares FILE: a, b and c have 10, 4 and 2 parts of their time in a table, as far as chance lets
# them.
shares() {
	awk '$5 ~ /^[abc]$/ { self[$5] = $1; sum += $1 }
	     function off(name, p,   d, sigma) {
	         d = self[name] / sum - p
	         sigma = sqrt(p * (1 - p) / sum)
	         return d > 4.5 * sigma || d < -4.5 * sigma
	     }
	     END { exit sum < 500 || off("a", 10 / 16) || off("b", 4 / 16) || off("c", 2 / 16) }
	' "$1" || {
		cat "$1" >&2
		return 1
	}
}

@test "three functions have the time that they take, in the table and in the file" {
	PMSELF_RATE=4000 PMSELF_OUTPUT=abc-%p.json run --separate-stderr "$PROGRAMS/self-abc"
	[ "$status" = 0 ]
	[ -z "$output" ]
	echo "$stderr" >table
	shares table
	run ! grep -q "  x  " table
	grep -q "^pmself: [^ ]* (pid [0-9]*): [0-9]* ticks of .* at 4000 Hz (perf) in 1 thread, " table
	mv abc-*.json abc.json
	[ "$(stat -c %a abc.json)" = 600 ]
	holds abc.json 'len(samples) == footer["samples"] > 2000' 'footer["cpu_ns"] > 9e8' \
		'sum("a" in chain(s) for s in samples) > sum("b" in chain(s) for s in samples)' \
		'not any("x" in chain(s) for s in samples)'
	"$PMREPORT" abc.json >report
	grep -q "self-abc.*(pid " report
	"$PMREPORT" --format csv abc.json | grep -q "^.*,a,"
}

@test "the same with the static library" {
	PMSELF_RATE=4000 "$PROGRAMS/self-abc-static" 0.6 2>table
	shares table
}

@test "eight threads, half of them older than the profile" {
	PMSELF_RATE=4000 PMSELF_OUTPUT=t.json "$PROGRAMS/self-life" threads 8 2>table
	shares table
	# The main thread does nothing but begin and wait: it may have a tick, too.
	grep -q " in [89] threads, " table
	holds t.json 'sum(sum(s["tid"] == t for s in samples) > 100
		for t in {s["tid"] for s in samples}) == 8'
}

# ends_alike ENGINE COMMAND...: self-ends must end in this way as it does by itself.
ends_alike() {
	local way
	# A sanitizer cannot stop threads whose first one has ended, and takes what they use for
	# leaks.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	export PMSELF_ENGINE=$1
	shift
	for way in all stops; do
		run -0 --separate-stderr timeout 120 "$@" "$way"
		[ "$output" = "flushed handled" ]
	done
	run -0 --separate-stderr timeout 120 "$@" forks
	[ "$output" = " child handledflushed handled" ]
	# A signal that no thread took before may end it then.
	run --separate-stderr timeout 120 "$@" blocks
	[[ $status = 0 && $output = "flushed handled" ]] || [ "$status" = 143 ]
	mkfifo fifo
	"$@" stays >fifo 2>/dev/null &
	pid=$!
	head -n 1 fifo | grep -q ready
	# main() has ended by now.
	until grep -q '^State:.Z' "/proc/$pid/status"; do sleep 0.01; done
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 143 ]
	rm fifo
}

@test "threads that all end by pthread_exit end the program, and SIGTERM does" {
	ends_alike perf "$PROGRAMS/self-ends"
	ends_alike timer "$PROGRAMS/self-ends-static"
	PMSELF_ENGINE=perf "$PROGRAMS/self-ends" all 2>table >/dev/null
	grep -q " work  self-ends" table
	grep -q " in [123] threads\?, " table
}

# bats test_tags=plain
@test "threads that all end by pthread_exit end a program under LD_PRELOAD" {
	need_plain
	cc -DPLAIN -pthread "$SOURCE_DIR/tests/programs/self-ends.c" -o plain
	ends_alike auto env LD_PRELOAD="$SELF/libpmself.so" ./plain
}

@test "exceptions that are thrown all the time" {
	LC_ALL=C PMSELF_OUTPUT=t.json run --separate-stderr "$PROGRAMS/self-throw" 0.5
	[ "$status" = 0 ]
	[ "$output" = ok ]
	# Names of the C++ library are longer than a line.
	[ "$(grep -v ^pmself: <<<"$stderr" | wc -L)" -le 80 ]
	holds t.json 'len(set(s["tid"] for s in samples)) >= 4' \
		'sum("stop" in s for s in samples) < 0.1 * len(samples)'
}

@test "what a program may do around its profile" {
	local mode leaks
	for mode in fork "fork 1" clone "clone 1" closefrom atexit forget leave "race 20"; do
		# What only the helper's stack leads to is lost to a child of which libc knows nothing.
		leaks=1
		[[ $mode != clone* ]] || leaks=0
		# shellcheck disable=SC2086 # a mode and its number
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=$leaks run --separate-stderr "$PROGRAMS/self-life" $mode
		[ "$status" = 0 ] || { echo "$mode: $output $stderr" >&2 && return 1; }
		[ "$output" = ok ]
	done
	run --separate-stderr "$PROGRAMS/self-life" limits
	[ "$status" = 0 ]
	[[ $stderr == *"Too many open files"* ]]
	# One that was refused has told so, and is not told again as one that is missing.
	[ "$(grep -c "no profile is running" <<<"$stderr")" = 1 ]
}

@test "a program with few files and many threads keeps its limits" {
	run --separate-stderr "$PROGRAMS/self-life" crowd
	[ "$status" = 0 ] || { echo "$output $stderr" >&2 && return 1; }
	[[ $stderr == *"(perf)"*"(timer)"*"sampled by timers, not by the kernel: "* ]]
}

# bats test_tags=plain
@test "libraries that come and go, also those that another thread maps" {
	need_plain
	local name
	for name in one two; do
		cat >$name.c <<-END
			#include <time.h>
			void run(void);
			__attribute__((noinline)) static void work_$name(void)
			{
			    while (clock() % 500000 < 250000) { }
			    while (clock() % 500000 >= 250000) { }
			    __asm__ volatile("");
			}
			void run(void) { work_$name(); __asm__ volatile(""); }
		END
		cc -O1 -g -fPIC -shared $name.c -o lib$name.so
	done
	cat >own.c <<-'END'
		#include <dlfcn.h>
		#include <pmself.h>
		#include <pthread.h>
		static void *load(void *name) { return dlopen(name, RTLD_NOW); }
		static int use(char *name)
		{
		    pthread_t id;
		    void *library;
		    if (pthread_create(&id, 0, load, name) != 0 || pthread_join(id, &library) != 0)
		        return 1;
		    ((void (*)(void))dlsym(library, "run"))();
		    return dlclose(library);
		}
		int main(void)
		{
		    return perf_start() || use("./libone.so") || use("./libtwo.so") || perf_stop();
		}
	END
	cc own.c -o own -I"$SOURCE_DIR/include" -L"$SELF" -lpmself "-Wl,-rpath,$SELF" -pthread
	local threads
	for threads in all this; do
		PMSELF_THREADS=$threads PMSELF_OUTPUT=t.json ./own 2>table
		holds t.json 'sum("work_one" in chain(s) for s in samples) > 0.2 * len(samples)' \
			'sum("work_two" in chain(s) for s in samples) > 0.2 * len(samples)' \
			'sum(len(chain(s)) < 3 for s in samples) < 0.1 * len(samples)'
	done
	grep -q " in 1 thread, " table
}

# What was mapped when is seen from time to time, here. The names of who calls are the truth: code
# that is not sure to be one's has no name at all.
# bats test_tags=plain
@test "by timers, libraries that take each other's place" {
	need_plain
	local name
	for name in one two; do
		cat >$name.c <<-END
			#include <time.h>
			void run(void);
			__attribute__((noinline)) static void work_$name(void)
			{
			    clock_t end = clock() + 60000;
			    while (clock() < end) { }
			    __asm__ volatile("");
			}
			void run(void) { work_$name(); __asm__ volatile(""); }
		END
		cc -O1 -g -fPIC -shared $name.c -o lib$name.so
	done
	cat >own.c <<-'END'
		#include <dlfcn.h>
		#include <pmself.h>
		#include <stdio.h>
		static void *use(const char *name)
		{
		    void *library = dlopen(name, RTLD_NOW), *run = dlsym(library, "run");
		    ((void (*)(void))run)();
		    dlclose(library);
		    return run;
		}
		__attribute__((noinline)) static void *via_one(void)
		{
		    void *ret = use("./libone.so");
		    __asm__ volatile("");
		    return ret;
		}
		__attribute__((noinline)) static void *via_two(void)
		{
		    void *ret = use("./libtwo.so");
		    __asm__ volatile("");
		    return ret;
		}
		int main(void)
		{
		    int same = 0, ret = perf_start();
		    for (int i = 0; i < 5; i++)
		        same += via_one() == via_two();
		    printf("%d\n", same);
		    return ret || perf_stop();
		}
	END
	cc -O1 own.c -o own -I"$SOURCE_DIR/include" -L"$SELF" -lpmself "-Wl,-rpath,$SELF"
	PMSELF_ENGINE=timer PMSELF_OUTPUT=t.json ./own 2>table >same
	cat table
	[ "$(cat same)" -gt 2 ]
	holds t.json 'not any("via_one" in chain(s) and "work_two" in chain(s) for s in samples)' \
		'not any("via_two" in chain(s) and "work_one" in chain(s) for s in samples)' \
		'sum("via_one" in chain(s) and "work_one" in chain(s) for s in samples) > 10' \
		'sum("via_two" in chain(s) and "work_two" in chain(s) for s in samples) > 10'
}

# bats test_tags=plain
@test "names that were found once are there the next time, whatever came of the files" {
	need_plain
	cat >own.c <<-'END'
		#include <pmself.h>
		#include <stdio.h>
		__attribute__((noinline)) static void spin(void)
		{
		    for (unsigned i = 0; i < 200000000; i++)
		        __asm__ volatile("");
		}
		int main(void)
		{
		    int ret = 0;
		    for (int i = 0; ret == 0 && i < 2; i++) {
		        ret = perf_start();
		        spin();
		        ret |= perf_stop();
		        rename("own.debug", "gone.debug");
		    }
		    return ret;
		}
	END
	cc -O1 -g own.c -o own -I"$SOURCE_DIR/include" -L"$SELF" -lpmself "-Wl,-rpath,$SELF"
	spin=$(nm own | awk '$3 == "spin" { sub("^0*", "", $1); print $1 }')
	objcopy --only-keep-debug own own.debug
	strip own
	objcopy --add-gnu-debuglink=own.debug own
	./own 2>table
	cat table
	[ "$(grep -c "  spin  own$" table)" = 2 ]
	# Nobody knows names that were not found before.
	./own 2>table
	run ! grep -q "  spin  own$" table
	[ "$(grep -c "  \[0x$spin\]  own$" table)" = 2 ]
}

# bats test_tags=both
@test "again and again while four threads allocate, without a trace" {
	# Names of libc take long to read with sanitizers.
	local cycles=250
	[ "$SANITIZE" = none ] || cycles=25
	PMSELF_EVENT=cpu-clock:u PMSELF_TABLE=none PMSELF_QUIET=1 \
		timeout 500 "$PROGRAMS/self-life" cycles $cycles
}

@test "a child that is forked is not in its parent's profile" {
	PMSELF_OUTPUT=t-%p.json "$PROGRAMS/self-life" fork 1 2>/dev/null
	[ "$(find . -name 't-*.json' | wc -l)" = 2 ]
	local file of_child=0
	for file in t-*.json; do
		holds "$file" 'len(set(s["pid"] for s in samples)) == 1'
		# What is not of its work is of forks(), which begins and ends its profile.
		if holds "$file" 'sum("of_child" in chain(s) for s in samples) > 50' 2>/dev/null; then
			of_child=$((of_child + 1))
			holds "$file" 'all("forks" in chain(s) for s in samples)' \
				'not any("of_child" not in chain(s) and {"a", "b", "c"} & set(chain(s))
					for s in samples)'
		else
			holds "$file" 'not any("of_child" in chain(s) for s in samples)'
		fi
	done
	[ "$of_child" = 1 ]
}

@test "a program that executes another one leaves a file that is cut" {
	PMSELF_OUTPUT=t.json run --separate-stderr "$PROGRAMS/self-life" exec
	[ "$output" = other ]
	run "$PMREPORT" t.json
	[ "$status" = 0 ]
	[[ $output == *"until the last sample"* ]]
}

@test "options by the environment" {
	local abc=$PROGRAMS/self-abc
	PMSELF=off run --separate-stderr "$abc" 0.01
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	PMSELF_TABLE=t-%p%%.txt run --separate-stderr "$abc" 0.05
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	grep -q "^pmself: [^ ]* (pid [0-9]*): [0-9]* ticks" t-*%.txt
	PMSELF_TABLE=none PMSELF_CALL_GRAPH=none PMSELF_THREADS=this PMSELF_OUTPUT=n.json \
		run --separate-stderr "$abc" 0.05
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	holds n.json 'all(s["stop"] == "not_asked" for s in samples)' 'len(samples) > 0'
	PMSELF_OUTPUT=none PMSELF_TABLE=none "$abc" 0.01
	[ ! -e none ]
	PMSELF_EVENT=page-faults PMSELF_RATE=100 "$abc" 0.01 2>table
	grep -q "of page-faults" table
	local word
	for word in maybe 2; do
		PMSELF=$word PMSELF_TABLE=none run --separate-stderr "$abc" 0.01
		[ "$status" = 0 ]
		[ "$stderr" = "pmself: PMSELF=$word: it may be on, off; goes on as if it were not set" ]
		PMSELF=$word PMSELF_TABLE=none PMSELF_QUIET=1 run --separate-stderr "$abc" 0.01
		[ -z "$stderr" ]
	done
	local wrong
	PMSELF=on PMSELF_RATE=abc "$abc" 0.01 2>table || true
	[ "$(grep -c PMSELF_RATE table)" = 1 ]
	for wrong in PMSELF_RATE=0 PMSELF_RATE=x PMSELF_ENGINE=y PMSELF_CALL_GRAPH=fp \
		PMSELF_THREADS=2 PMSELF_EVENT=no-such PMSELF_OUTPUT=- PMSELF_TABLE=/dev/stderr \
		PMSELF_OUTPUT=/no/such/folder/x.json; do
		run --separate-stderr env "$wrong" "$abc" 0.01
		[ "$status" = 1 ] || { echo "$wrong: $status" >&2 && return 1; }
		[ "$(wc -l <<<"$stderr")" = 1 ]
		[[ $stderr == "pmself: "* ]]
		PMSELF_QUIET=1 run --separate-stderr env "$wrong" "$abc" 0.01
		[ "$status" = 1 ]
		[ -z "$stderr" ]
	done
}

@test "a disk that is full is told, and the table is there all the same" {
	PMSELF_OUTPUT=/dev/full run --separate-stderr "$PROGRAMS/self-abc" 0.05
	[ "$status" = 1 ]
	[[ $stderr == "pmself: "*"No space left"* ]]
	[[ $stderr != *"ticks of"* ]]
	# shellcheck disable=SC2016 # its own shell's
	PMSELF_OUTPUT=t.json run --separate-stderr sh -c 'ulimit -f 8 && exec "$0" 0.3' \
		"$PROGRAMS/self-abc"
	[ "$status" = 1 ]
	[[ $stderr == *"File too large"* ]]
	[[ $stderr == *"ticks of"* ]]
}

@test "nobody profiles at paranoid 2" {
	need_root
	open=$(mktemp -d)
	chmod 777 "$open"
	cp -L "$SELF/libpmself.so.1" "$SELF/libpmself-core.so" "$PROGRAMS/self-abc" "$open"
	cd "$open" || return
	PMSELF_RATE=4000 PMSELF_OUTPUT=t.json LD_LIBRARY_PATH=$open at 2 nobody ./self-abc 0.6 2>table
	shares table
	holds t.json 'not any(m["kind"] == "kernel" for m in modules)'
}

# bats test_tags=plain
@test "python3 is profiled from its first to its last moment by LD_PRELOAD" {
	need_plain
	local python
	python=$(python3 -c 'import sys; print(sys.executable)')
	# What the core needs must not come into the program's way.
	LD_PRELOAD=$SELF/libpmself.so.1 PMSELF_OUTPUT=t.json "$python" -c '
import ctypes, sys
sum(hash(str(i)) for i in range(1000000))
names = ctypes.CDLL(None)
for name in "dwarf_begin", "elf_begin", "json_dumps", "pm_perf_open":
    try:
        getattr(names, name)
        sys.exit(name + " is there")
    except AttributeError:
        pass
' 2>table
	grep -q "ticks of .* (perf)" table
	holds t.json 'len(samples) > 50' \
		'any("_PyEval_EvalFrameDefault" in chain(s) for s in samples)'
}

# bats test_tags=plain
@test "python3 is profiled by timers, too" {
	need_plain
	local python
	python=$(python3 -c 'import sys; print(sys.executable)')
	LD_PRELOAD=$SELF/libpmself.so.1 PMSELF_ENGINE=timer PMSELF_OUTPUT=t.json "$python" -c '
import math, zlib # libraries that come later
sum(hash(str(i)) for i in range(1000000))
for i in range(20):
    zlib.compress(bytes(1000000))
' 2>table
	grep -q "ticks of .* (timer)" table
	holds t.json 'len(samples) > 10' \
		'any("_PyEval_EvalFrameDefault" in chain(s) for s in samples)' \
		'any("deflate" in chain(s) for s in samples)'
}

# bats test_tags=plain
@test "a shell's children have profiles of their own, and what has no tick says nothing" {
	need_plain
	run --separate-stderr env "LD_PRELOAD=$SELF/libpmself.so.1" PMSELF_OUTPUT=t-%p.json \
		sh -c '/bin/true; PMSELF=off /bin/true; exit 3'
	[ "$status" = 3 ]
	[ -z "$output" ]
	# dash ends by _exit(2), so that its own file, which has no samples, is not completed.
	[ "$(find . -name 't-*.json' | wc -l)" = 1 ]
	[ "$(find . -name 't-*.json.partial' | wc -l)" = 1 ]
	# Without %p, too, none takes the other's place.
	LD_PRELOAD=$SELF/libpmself.so.1 PMSELF_OUTPUT=own.json PMSELF_TABLE=own.txt \
		bash -c '/bin/true; for ((i = 0; i < 100000; i++)); do :; done' 2>/dev/null
	[ "$(find . -name 'own.json*' | wc -l)" = 2 ]
	[ "$(find . -name 'own.txt*' | wc -l)" = 2 ]
	holds own.json 'len(samples) > 0' 'header["command"][0] == "bash"'
	LD_PRELOAD=$SELF/libpmself.so.1 PMSELF_OUTPUT=/dev/null PMSELF_TABLE=none \
		sh -c '/bin/true; :'
	[ -z "$(find /dev -maxdepth 1 -name 'null.*')" ]
	[ -z "$(find . -name 'none*')" ]
}

# bats test_tags=plain
@test "Rust under LD_PRELOAD" {
	need_plain
	mkdir lines
	seq 400000 | tee lines/{1,2} | sed 's/$/ lines of text/' | tee lines/3 >lines/4
	find_lines() {
		env "$@" rg --no-config -j 2 -c '(1[0-9]*2|of).*3[0-9 a-z]*[5x]t?' lines
	}
	find_lines | sort >expected
	local status=0
	find_lines "LD_PRELOAD=$SELF/libpmself.so.1" PMSELF_RATE=4000 PMSELF_OUTPUT=t.json \
		>found 2>table || status=$?
	[ "$status" = 0 ]
	diff expected <(sort found)
	grep -q "ticks of .* (perf) in [23] threads, " table
	holds t.json 'len(samples) > 50' \
		'sum(m["path"].endswith("/rg") for m in modules if "path" in m) == 1' \
		'sum("stop" in s for s in samples) < 0.05 * len(samples)'
	LD_PRELOAD=$SELF/libpmself.so.1 run --separate-stderr rg --no-config -q no-such-line lines
	[ "$status" = 1 ]
	[ -z "$output" ]
	command -v rustc >/dev/null || return 0
	cat >spin.rs <<-'END'
		#[inline(never)]
		fn spin(n: u64) -> u64 { (0..n).fold(7, |a, i| unsafe { std::ptr::read_volatile(&(a * 31 + i)) }) }
		fn main() {
		    let all: Vec<_> = (0..2).map(|_| std::thread::spawn(|| spin(100_000_000))).collect();
		    for one in all { one.join().unwrap(); }
		}
	END
	rustc -O -g -C overflow-checks=off spin.rs
	LD_PRELOAD=$SELF/libpmself.so.1 PMSELF_OUTPUT=t.json ./spin 2>table
	holds t.json 'sum("spin::spin" in chain(s) for s in samples) > 0.8 * len(samples) > 20'
}

# bats test_tags=plain
@test "a C and a C++ program outside of the tree build against what is installed" {
	need_plain
	meson install -C "$BUILD_DIR" --no-rebuild --destdir "$PWD/dest" --quiet \
		--only-changed >/dev/null
	local pc
	pc=$(find dest -name pmself.pc)
	[ -n "$pc" ]
	export PKG_CONFIG_LIBDIR=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$PWD/dest
	cat >own.c <<-'END'
		#include <pmself.h>
		int main(void)
		{
			volatile unsigned long n = 0;
			int ret = perf_start();
			while (n < 100000000)
				n++;
			return ret < 0 || perf_stop() < 0;
		}
	END
	cp own.c own.cc
	local lib=${pc%/*}
	lib=$PWD/${lib%/pkgconfig}
	# shellcheck disable=SC2046 # words of pkg-config
	cc -Wall -Wextra -Werror own.c -o own $(pkg-config --cflags --libs pmself) "-Wl,-rpath,$lib"
	# shellcheck disable=SC2046
	c++ -Wall -Wextra -Werror own.cc -o own++ $(pkg-config --cflags --libs pmself) \
		"-Wl,-rpath,$lib"
	# shellcheck disable=SC2046
	cc own.c -o own-static $(pkg-config --cflags pmself) "$lib/libpmself.a" \
		$(pkg-config --libs --static pmself | sed 's/-lpmself//')
	# A program may have functions of its own that are called as the library's own are.
	[ -z "$(nm -g --defined-only "$lib/libpmself.a" |
		awk 'NF == 3 && $3 !~ /^(pmself_(start|stop|scope_.*)|perf_st(art|op))$/')" ]
	echo 'int pm_error_set(void); int pm_error_set(void) { return 7; }' >>own.c
	# shellcheck disable=SC2046
	cc own.c -o own-names $(pkg-config --cflags pmself) "$lib/libpmself.a" \
		$(pkg-config --libs --static pmself | sed 's/-lpmself//')
	local program programs="own own++ own-static own-names"
	if [ -e "$(cc -print-file-name=libdw.a)" ]; then
		# shellcheck disable=SC2046
		cc -static own.c -o own-all $(pkg-config --static --cflags --libs pmself)
		programs+=" own-all"
	fi
	for program in $programs; do
		./$program 2>table
		grep -q " main  $program" table
	done
	[ "$(readelf -d "$lib/libpmself.so" | grep -c NEEDED)" = 1 ]
}
