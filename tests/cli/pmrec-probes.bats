#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Probes on places in files: every hit is a sample, at the right place and with the right
# stack, and nothing stays behind. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	[ -e /sys/bus/event_source/devices/uprobe ] || skip "this kernel has no uprobe PMU"
	[ "$(id -u)" = 0 ] || skip "probes need root or CAP_PERFMON"
	ulimit -c 0
}

teardown() {
	[ -z "${pid-}" ] || kill "$pid" || true
	[ -z "${open-}" ] || rm -r "$open"
	# State in tracefs would be root's, and stay.
	for events in /sys/kernel/tracing/uprobe_events /sys/kernel/debug/tracing/uprobe_events; do
		[ ! -e "$events" ] || ! grep -q . "$events"
	done
}

# Lines "NAME HITS" of s.json; @0x… of places that have the same name is cut.
hits() {
	query s.json '"\n".join(e["name"].split("@")[0] + " " + str(f["samples"]) for e, f in zip(events, footer["events"]))'
}

# count EVENT EXPECTED [ARG...]: lines as of hits(), for probes 10.
count() {
	local event=$1 expected=$2
	shift 2
	"$PMREC" -q -o s.json -e "$event" "$@" -- "$PROGRAMS/probes" 10 || [ $? = 3 ]
	hits >got
	diff got <(echo "$expected")
}

# refuse TEXT EVENT [COMMAND...]: one or two lines that say so, and no file.
refuse() {
	local text=$1 event=$2
	shift 2
	[ $# -gt 0 ] || set -- "$PROGRAMS/probes" 10
	rm -f s.json
	run -125 --separate-stderr "$PMREC" -o s.json -e "$event" -- "$@"
	[[ "$stderr" == *"$text"* ]] || { echo "$stderr"; return 1; }
	[ "${#stderr_lines[@]}" -le 2 ]
	[ ! -e s.json ]
}

line_of() {
	grep -n "$1" "$SOURCE_DIR/tests/programs/probes.c" | cut -d : -f 1
}

@test "each call of a function is a sample" {
	count uprobe:probes:thrice 'uprobe:probes:thrice 30'
	count "uprobe:$PROGRAMS/probes:hidden" 'uprobe:probes:hidden 10'
	count uprobe:probes:nest 'uprobe:probes:nest 50'
	count uprobe:probes:alias_other 'uprobe:probes:alias_other 10'
	count uprobe:libc:malloc 'uprobe:libc.so.6:malloc 10'
}

@test "each return is a sample" {
	count uretprobe:probes:nest 'uretprobe:probes:nest 50'
	count uretprobe:probes:thrice 'uretprobe:probes:thrice 30'
}

@test "a line of the source, also where it was inlined" {
	hidden=$(line_of 'LINE hidden') spread=$(line_of 'LINE spread')
	count "uprobe:probes:probes.c:$hidden" "uprobe:probes:probes.c:$hidden 10"
	count "uprobe:probes:probes.c:$spread" "uprobe:probes:probes.c:$spread 10
uprobe:probes:probes.c:$spread 10"
}

@test "markers, and one that only lives while it is watched" {
	count usdt:probes:probes:plain 'usdt:probes:probes:plain 10'
	count usdt:probes:probes:twice 'usdt:probes:probes:twice 10
usdt:probes:probes:twice 10'
	run -0 "$PROGRAMS/probes" 10
	run -3 "$PMREC" -q -o s.json -e usdt:probes:probes:counted -- "$PROGRAMS/probes" 10
	[ "$(hits)" = 'usdt:probes:probes:counted 10' ]
}

@test "C++ overloads, with and without parameters, templates and operators" {
	[ -x "$PROGRAMS/probes-cpp" ] || skip "there is no C++ compiler"
	"$PMREC" -q -o s.json -e "uprobe:probes-cpp:'shapes::area'" -- "$PROGRAMS/probes-cpp" 10
	[ "$(hits)" = 'uprobe:probes-cpp:shapes::area(int) 10
uprobe:probes-cpp:shapes::area(int, char) 20' ]
	"$PMREC" -q -o s.json -e "uprobe:probes-cpp:'shapes::area(int, char)'" -- \
		"$PROGRAMS/probes-cpp" 10
	[ "$(hits)" = 'uprobe:probes-cpp:shapes::area(int, char) 20' ]
	"$PMREC" -q -o s.json -e "uprobe:probes-cpp:'shapes::circle::circle'" -- \
		"$PROGRAMS/probes-cpp" 10
	[ "$(query s.json 'len(samples)')" = 30 ]
	"$PMREC" -q -o s.json -e "uprobe:probes-cpp:'shapes::circle::operator=='" -- \
		"$PROGRAMS/probes-cpp" 10
	[ "$(query s.json 'len(samples)')" = 10 ]
	"$PMREC" -q -o s.json -e "uprobe:probes-cpp:'shapes::grow<*>'" -- "$PROGRAMS/probes-cpp" 10
	[ "$(query s.json 'len(samples)' | head -n 1)" = 20 ]
}

@test "several at once, and a glob" {
	"$PMREC" -q -o s.json -e uprobe:probes:thrice -e uretprobe:probes:nest \
		-e usdt:probes:probes:plain -- "$PROGRAMS/probes" 10
	[ "$(hits)" = 'uprobe:probes:thrice 30
uretprobe:probes:nest 50
usdt:probes:probes:plain 10' ]
	"$PMREC" -q -o s.json -e 'uprobe:probes:[th][hi][rd][id][ce]*' -- "$PROGRAMS/probes" 10
	[ "$(hits | sort)" = 'uprobe:probes:hidden 10
uprobe:probes:thrice 30' ]
}

# Both count the calls in one run: the debugger's breakpoint is on the instruction behind the
# first one, where the probe is.
@test "as many hits in a real program as a breakpoint has" {
	command -v gdb || skip "there is no gdb"
	seq 1 300 >lines
	libc=$(ldd "$(command -v sort)" | awk '/libc\.so/ { print $3 }')
	second=$(gdb -nx -readnever -batch -ex 'x/2i malloc' "$libc" | sed -n 's/.*<[^>]*+\([0-9]*\)>.*/\1/p')
	[ "$second" -gt 0 ]
	cat >count.gdb <<-END
		set pagination off
		set breakpoint pending on
		set startup-with-shell off
		catch load libc\\.so
		run lines
		delete
		break *(malloc+$second)
		ignore 2 100000000
		continue
		info breakpoints
	END
	# The debugger's own calls are recorded, too: few, when it reads no DWARF.
	"$PMREC" -q -o s.json --call-graph none -e uprobe:libc:malloc -- \
		gdb -nx -readnever -q -batch -x count.gdb "$(command -v sort)" >gdb.out 2>&1
	stops=$(sed -n 's/.*already hit \([0-9]*\) times.*/\1/p' gdb.out)
	# Before its exec the child is the debugger's code.
	read -r tid begun < <(grep '"comm":"sort"' s.json |
		sed -n '1s/.*"tid":\([0-9]*\).*"time":\([0-9]*\).*/\1 \2/p')
	echo "stops: $stops"
	[ "$stops" -gt 100 ]
	holds s.json "sum(s['tid'] == $tid and s['time'] >= $begun for s in samples) == $stops"
}

@test "as many hits as ltrace sees" {
	command -v ltrace || skip "there is no ltrace"
	"$PMREC" -q -o s.json --call-graph none -e uprobe:libc:malloc -- \
		ltrace -e malloc -o calls "$PROGRAMS/probes" 70
	tid=$(grep '"comm":"probes"' s.json | sed -n '1s/.*"tid":\([0-9]*\).*/\1/p')
	[ "$(grep -c 'malloc(' calls)" = 70 ]
	[ "$(query s.json "sum(s['tid'] == $tid for s in samples)")" = 70 ]
}

@test "the stack at a function's entry is complete" {
	"$PMREC" -q -o s.json -e uprobe:probes:nest -- "$PROGRAMS/probes" 1
	query s.json 'sorted(" ".join(chain(s)[:7]) for s in samples)' footer
	[ "$(query s.json 'footer["stops"]')" = "{'root': 5}" ]
	[ "$(query s.json 'sorted(chain(s).count("nest") for s in samples)')" = '[1, 2, 3, 4, 5]' ]
	[ "$(query s.json 'all(chain(s)[0] == "nest" and chain(s)[chain(s).count("nest"):][:2] == ["once", "main"] for s in samples)')" = True ]
	"$PMREPORT" s.json >report
	grep -q 'nest .*probes.c' report
}

@test "stacks below a return probe end at its trampoline, and say so" {
	"$PMREC" -q -o s.json -e cpu-clock -F 1000 -e uretprobe:probes:watched -- \
		"$PROGRAMS/probes" 1 0 100000000
	query s.json footer
	[ "$(query s.json 'footer["events"][1]["samples"]')" = 1 ]
	[ "$(query s.json 'footer["stops"].get("uprobe", 0) > 0.5 * len(samples)')" = True ]
	[ "$(query s.json '"[uprobes]" in [m["path"] for m in modules]')" = True ]
	# The return itself is seen where it leads to.
	[ "$(query s.json '[chain(s)[0] for s in samples if s["event"] == 1]')" = "['main']" ]
	"$PMREPORT" s.json >report
	grep -q 'return probe' report
}

# The kernel cannot hand such an event on: the fork would fail.
@test "children of what is recorded live, and are counted" {
	"$PMREC" -q -o s.json -e "uprobe:$PROGRAMS/probes:thrice" -- \
		sh -c "\"$PROGRAMS/probes\" 5 && \"$PROGRAMS/probes\" 6 && echo alive >alive"
	[ "$(cat alive)" = alive ]
	[ "$(hits)" = 'uprobe:probes:thrice 33' ]
	rm s.json
	"$PMREC" -q -o s.json --per-task -e "uprobe:$PROGRAMS/probes:thrice" -- \
		sh -c "\"$PROGRAMS/probes\" 5; echo again >>alive"
	[ "$(wc -l <alive)" = 2 ]
	[ "$(query s.json 'any("hand probes on" in n["text"] for n in notes)')" = True ]
}

@test "a running process: its libraries, its variables" {
	"$PROGRAMS/probes" 0 60 &
	pid=$!
	while ! grep -q libc "/proc/$pid/maps"; do sleep 0.1; done
	run -0 "$PMREC" -q -o s.json --duration 0.3 -e uprobe:libc:malloc \
		-e uprobe:probes:main -e mem:probes_sum:w -p "$pid"
	[ "$(query s.json '[e["name"] for e in events]')" = "['uprobe:libc.so.6:malloc', 'uprobe:probes:main', 'mem:probes_sum:w']" ]
	kill "$pid"
	pid=
}

@test "what is not there has near names, what cannot be a reason" {
	refuse 'near names: thrice' uprobe:probes:thrcie
	refuse 'near names: probes' uprobe:probse:main
	refuse 'near names: probes.c' uprobe:probes:prbes.c:10
	refuse 'near names: probes:plain' usdt:probes:probes:plainn
	refuse '-e mem:probes_sum' uprobe:probes:probes_sum
	refuse 'has only' uprobe:probes:thrice+5000
	refuse 'uprobe:libc:malloc' uprobe:probes:malloc
	refuse 'IFUNC' uprobe:libc:memcpy
	refuse 'no marker' usdt:libc:x:y
	refuse 'position-independent' mem:probes_sum:w
	refuse 'No such file' uprobe:./nothing:main
	refuse 'no regular file' "uprobe:$PWD/:main"
	mkfifo fifo
	refuse 'no regular file' uprobe:./fifo:main
	echo text >text
	refuse 'no ELF file' uprobe:./text:main
	[ -e /sys/bus/event_source/devices/kprobe ] ||
		refuse 'CONFIG_KPROBE_EVENTS' kprobe:vfs_read
}

@test "a stripped file says what is missing, a debug file mends it" {
	cp "$PROGRAMS/probes" probes.full
	objcopy --only-keep-debug probes.full stripped.debug
	objcopy --strip-all probes.full stripped
	refuse 'stripped' uprobe:./stripped:thrice ./stripped 1
	refuse 'no debug information' uprobe:./stripped:probes.c:10 ./stripped 1
	objcopy --strip-all --add-gnu-debuglink=stripped.debug probes.full linked
	"$PMREC" -q -o s.json -e uprobe:./linked:hidden -- ./linked 10
	[ "$(hits)" = 'uprobe:linked:hidden 10' ]
}

@test "what the kernel refuses is told, and the others go on" {
	[ "$(uname -m)" = x86_64 ] || skip "of AVX"
	"$PROGRAMS/count-avx" 20 >/dev/null || skip "this processor has no AVX2"
	local at="uprobe:$PROGRAMS/count-avx"

	"$PMREC" -o s.json -e "{$at:loads,$at:plain}" -- "$PROGRAMS/count-avx" 20 2>err >/dev/null
	grep -q "loads: the kernel takes no probe .* is not known" err
	holds s.json 'len(samples) == 20' 'len(header["events"]) == 1'
	run -125 "$PMREC" -o s.json -e "$at:loads" -- "$PROGRAMS/count-avx" 20
	[[ $output == *"takes no probe on the instruction that is there"* ]]
}

@test "without privileges the refusal says which" {
	open=$(mktemp -d)
	chmod 777 "$open"
	cp "$PMREC" "$PROGRAMS/probes" "$open"
	cd "$open"
	run -125 --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups \
		./pmrec -o s.json -e uprobe:./probes:thrice -- ./probes 1
	[[ "$stderr" == *CAP_PERFMON* ]]
	[ ! -e s.json ]
}
