#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Names for what a recording lacks: from the file that was recorded, and from no other.

bats_require_minimum_version 1.5.0
load common

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	# One function does the work, through an inlined one.
	cat >work.c <<'C'
#include <stdlib.h>
volatile double sink;
static inline __attribute__((always_inline)) double inner(double x)
{
	double sum = 0;
	for (int i = 1; i < 2000; i++)
		sum += x / i;
	return sum;
}
__attribute__((noinline)) double NAME(long rounds)
{
	double sum = 0;
	for (long i = 0; i < rounds; i++)
		sum += inner((double)i);
	return sum;
}
int main(int argc, char **argv)
{
	sink = NAME(atol(argv[1]));
	return 0;
}
C
	cc -O1 -g -DNAME=spin -o first work.c
	cc -O1 -g -DNAME=turn -o second work.c
	cc -O1 -g -DNAME=spin -Wl,--build-id=none -o anonymous work.c
	mkdir bin
	cp first bin/work
	"$PMREC" -q -e cpu-clock:u -F 999 --no-symbols -o n.json -- "$PWD/bin/work" 20000
	cp second bin/later
	"$PMREC" -q -e cpu-clock:u -F 999 --no-symbols -o two.json -- \
		sh -c "'$PWD/bin/work' 20000; mv '$PWD/bin/later' '$PWD/bin/work'; '$PWD/bin/work' 20000"
	cp first bin/work
	"$PMREC" -q -e cpu-clock:u -F 999 -o whole.json -- "$PWD/bin/work" 20000
	cp anonymous bin/work
	"$PMREC" -q -e cpu-clock:u -F 999 --no-symbols -o anonymous.json -- "$PWD/bin/work" 20000
	cp first bin/work
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	all=$BATS_FILE_TMPDIR
	cp -r "$all/bin" "$all"/{first,second} "$all"/*.json .
	# What is recorded is at its path only when a test says so.
	mv "$all/bin/work" "$all/bin/away"
	unset DEBUGINFOD_URLS
}

teardown() {
	mv "$all/bin/away" "$all/bin/work"
	[ -z "${server-}" ] || kill "$server" || :
}

put_back() { cp "$1" "$all/bin/work"; }
id_of() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }

# pmreport --json with these options: `out` and `err`, and in $self the share of each function.
report() {
	"$PMREPORT" --json "$@" >out 2>err
	self=$(jq -c 'reduce .events[0].rows[] as $row ({};
		.[$row.function // "?"] += $row.self.percent)' out)
	echo "$self"
	cat err
}

# The inlined function has its line.
has_line() {
	jq -e '.events[0].rows[] | select(.function == "inner" and .inlined) |
		(.file | endswith("/work.c")) and .line >= 6 and .line <= 7' out
}

# The share of the function is nearly all.
names() { [ "$(jq --arg f "$1" '.[$f] // 0 | . > 90' <<<"$self")" = true ]; }

@test "the recorded file at its path gives names, inlined functions and lines" {
	put_back first
	report n.json
	names inner
	has_line
	[ ! -s err ]
	# The recorder's note is still there, and no reason to doubt.
	"$PMREPORT" n.json | grep -q 'names were left out (--no-symbols), and looked up for this report'
	report --no-inline n.json
	names spin
}

@test "another build at its path gives none, and that is told" {
	put_back second
	report n.json
	names '?'
	grep -q "no names for .*% of the samples" err
	grep -q "$all/bin/work  build-id $(id_of first)  (another build stands at its path)" err
	grep -q 'try: .*pmreport --debuginfod n.json' err
	# Data only.
	"$PMREPORT" -q n.json >/dev/null 2>err
	[ ! -s err ]
}

@test "a file without a build-id is never believed" {
	put_back "$all/anonymous"
	report anonymous.json
	names '?'
	grep -q 'no build-id: link it with -Wl,--build-id' err
	report --symfs / anonymous.json
	names '?'
}

@test "--no-resymbolize uses what is in the recording" {
	put_back first
	report --no-resymbolize n.json
	names '?'
	[ ! -s err ]
	run -2 "$PMREPORT" --no-resymbolize --symfs . n.json
	run -2 --separate-stderr "$PMREPORT" --symfs nowhere n.json
	[[ $stderr == *"--symfs 'nowhere': No such file or directory"* ]]
	run -2 "$PMREPORT" --debug-dir first n.json
}

@test "--symfs takes a copy of the recorded machine's files" {
	mkdir -p "root$all/bin"
	cp first "root$all/bin/work"
	report --symfs root n.json
	names inner
	# Also one that has another build at that path, whose debug file is below it.
	cp second "root$all/bin/work"
	report --symfs root n.json
	names '?'
	id=$(id_of first)
	mkdir -p "root/usr/lib/debug/.build-id/${id:0:2}"
	objcopy --only-keep-debug first "root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
	report --symfs root n.json
	names inner
}

@test "--debug-dir has debug files by build-id, and by link" {
	id=$(id_of first)
	mkdir -p "debug/.build-id/${id:0:2}" "linked$all/bin"
	objcopy --only-keep-debug first "debug/.build-id/${id:0:2}/${id:2}.debug"
	report --debug-dir debug n.json
	names inner
	# The link leads to the folder of the stripped file below the debug folder.
	cp first work.debug
	objcopy --only-keep-debug first "linked$all/bin/work.debug"
	objcopy --strip-all "--add-gnu-debuglink=linked$all/bin/work.debug" first stripped
	put_back stripped
	report n.json
	names '?'
	report --debug-dir linked n.json
	names inner
	has_line
	# A wrong one under the right name.
	objcopy --only-keep-debug second "debug/.build-id/${id:0:2}/${id:2}.debug"
	report --debug-dir debug n.json
	names '?'
}

@test "two builds that had one path get each its own names" {
	id=$(id_of second)
	mkdir -p "debug/.build-id/${id:0:2}" "root$all/bin"
	objcopy --only-keep-debug second "debug/.build-id/${id:0:2}/${id:2}.debug"
	cp first "root$all/bin/work"
	report --no-inline --symfs root --debug-dir debug two.json
	[ "$(jq '.spin > 30 and .turn > 30 and .spin + .turn > 90' <<<"$self")" = true ]
	# Of one of them alone only its part is named.
	report --no-inline --debug-dir debug two.json
	[ "$(jq '.spin == null and .turn > 30 and .["?"] > 30' <<<"$self")" = true ]
	grep -q "build-id $(id_of first)" err
}

@test "a spoilt file with the right build-id costs names, nothing else" {
	size=$(stat -c %s first)
	for part in 1000 $((size / 2)); do
		head -c "$part" first >"$all/bin/work"
		report n.json
		jq -e '.events[0].total.samples > 10' out
	done
	python3 - first "$all/bin/work" <<'P'
import random, sys
data = bytearray(open(sys.argv[1], "rb").read())
random.seed(5)
# What follows the program's headers and notes.
for _ in range(3000):
    data[random.randrange(0x1000, len(data))] = random.randrange(256)
open(sys.argv[2], "wb").write(data)
P
	report n.json
	jq -e '.events[0].total.samples > 10' out
	rm "$all/bin/work"
	mkfifo "$all/bin/work"
	report n.json
	names '?'
	rm "$all/bin/work"
}

@test "a recording that was cut off before its names has them, too" {
	put_back first
	grep -v '"type":"\(symbol\|footer\)"' whole.json >cut.json
	report --no-resymbolize cut.json
	names '?'
	report cut.json
	names inner
	grep -q 'is cut short' err
	# Also where only some of a file's names were lost.
	grep -v '"name":"inner"\|"type":"footer"' whole.json >cut.json
	grep -q '"type":"symbol".*"name":"spin"\|"type":"symbol".*"name":"main"' cut.json
	report cut.json
	names inner
}

@test "names that the recording has are not asked for again" {
	put_back second
	"$PMREPORT" whole.json >now 2>err
	[ ! -s err ]
	"$PMREPORT" --no-resymbolize whole.json | cmp - now
}

@test "--debuginfod asks servers, and believes none" {
	ldconfig -p | grep -qF libdebuginfod.so.1 || skip "libdebuginfod.so.1 is not installed"
	run -2 --separate-stderr "$PMREPORT" --debuginfod n.json
	[[ $stderr == *"DEBUGINFOD_URLS names no server"* ]]
	id=$(id_of first)
	mkdir -p "served/$id"
	objcopy --only-keep-debug first "served/$id/debuginfo"
	export DEBUGINFOD_CACHE_PATH=$PWD/cache
	export DEBUGINFOD_URLS

	: >log
	python3 "$SOURCE_DIR/tests/cli/debuginfod.py" served log >port 3>&- &
	server=$!
	for _ in {1..1200}; do
		[ ! -s port ] || break
		sleep 0.1
	done

	ask() { # MODE SECONDS
		rm -rf cache
		: >log
		DEBUGINFOD_URLS=http://127.0.0.1:$(cat port)/$1
		report "--debuginfod=$2" n.json
	}
	ask plain 30
	names inner
	grep -q "^/plain/buildid/$id/debuginfo" log
	[ ! -s err ]
	# Once: another report takes it from the cache.
	report --debuginfod=30 n.json
	names inner
	[ "$(grep -c "$id/debuginfo" log)" -eq 1 ]
	ask garbage 30
	names '?'
	grep -q 'what a server sent is not that file' err
	ask cut 30
	names '?'
	ask slow 1
	names '?'
	grep -q 'no answer within 1 s)' err
	ask silent 1
	names '?'
	grep -q 'no answer within 1 s)' err
	cp second "served/$id/debuginfo"
	ask plain 30
	names '?'
	grep -q 'what a server sent is not that file' err
	# Nobody has the debug information, but the program.
	mv first "served/$id/executable"
	rm "served/$id/debuginfo"
	ask plain 30
	names inner
	rm "served/$id/executable"
	ask plain 30
	names '?'
	grep -q 'no server has it' err
	# What is here needs no server.
	put_back "$all/first"
	ask plain 30
	names inner
	run ! grep -q "$id" log
}

@test "the kernel's names fit only the same kernel in the same boot" {
	[ "$(id -u)" = 0 ] || skip "addresses of the kernel are for root"
	read -r address name < <(awk '$2 == "T" && $1 !~ /^0*$/ && NF == 3 {a[$1]++; n[$1] = $3; o[++k] = $1}
		END {for (i = 1; i <= k; i++) if (a[o[i]] == 1) {print o[i], n[o[i]]; exit}}' /proc/kallsyms) ||
		skip "/proc/kallsyms shows no addresses here"
	id=$(python3 -c '
import struct
data = open("/sys/kernel/notes", "rb").read()
while data:
    name, size, kind = struct.unpack("III", data[:12])
    at = 12 + (name + 3 & ~3)
    if kind == 3 and data[12:16] == b"GNU\0":
        print(data[at:at + size].hex())
        break
    data = data[at + (size + 3 & ~3):]
') || skip "/sys/kernel/notes is not readable here"
	boot=$(</proc/sys/kernel/random/boot_id)

	file_of() { # BUILD-ID BOOT
		jq -c "$(
			cat <<J
if .type == "header" then .host.boot_id = "$2"
elif .type == "module" then .path = "[kernel]" | .kind = "kernel" | .build_id = "$1"
elif .type == "frame" then .address = "0x$address"
else . end
J
		)" n.json >kernel.json
	}
	file_of "$id" "$boot"
	report kernel.json
	[ "$(jq --arg f "$name" '.[$f] > 0' <<<"$self")" = true ]
	file_of "$id" "00000000${boot:8}"
	report kernel.json
	names '?'
	grep -q 'names of a kernel are known only while it runs' err
	file_of "00${id:2}" "$boot"
	report kernel.json
	names '?'
}
