#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs that mean harm to whoever records them: the recording ends soon, in little memory,
# says what it left out, and the rest of it is right. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR
# come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

# recorded COMMAND...: within 60 s of CPU time, some of which are the command's and the
# sanitizers', and 1 GB, which these exceed with what they map alone.
recorded() {
	python3 "$SOURCE_DIR/tests/cli/within.py" 60 1000 \
		"$PMREC" -q -o s.json -- "$@" 2>within || {
		cat within >&2
		return 1
	}
}

# hostile KIND: see hostile-elf.py.
hostile() {
	python3 "$SOURCE_DIR/tests/programs/hostile-elf.py" "$1" "$PROGRAMS/split" "$1"
}

# Shares of a third of a second.
split_is_true() {
	holds s.json 'split_is_true(100)'
}

rooted() {
	holds s.json 'rooted(0.98)'
}

@test "compressed debug information of gigabytes" {
	hostile bomb
	recorded ./bomb 0.3
	rooted
	split_is_true
	holds s.json 'sum("inflates beyond reason" in n["text"] and "/bomb " in n["text"] for n in notes) == 1'
	"$PMREPORT" s.json >out
	grep -q "inflates beyond reason" out
}

@test "a symbol table that is said to have 64 GiB" {
	hostile size
	recorded ./size 0.3
	rooted
	holds s.json 'len(samples) > 100'
}

@test "a file of 65 GiB" {
	hostile holes || skip "this file system has no files of that size"
	recorded ./holes 0.3
	rooted
	holds s.json 'len(samples) > 100'
	# A sanitizer's memory has no limit.
	[ -n "${ASAN_OPTIONS-}" ] ||
		holds s.json 'any("/holes were left out" in n["text"] and "memory" in n["text"] for n in notes)'
}

@test "four million symbols" {
	hostile symbols
	recorded ./symbols 0.3
	rooted
	split_is_true
}

@test "abstract origins in circles, and through a hundred thousand others" {
	hostile origins
	recorded ./origins 0.3
	rooted
	split_is_true
}

@test "functions inlined in one another, two hundred thousand deep" {
	hostile nested
	recorded ./nested 0.3
	rooted
	holds s.json 'max(len(row) for row in names.values()) <= 256'
}

@test "CFI that leads back to itself" {
	[ "$(uname -m)" = x86_64 ] || skip "the program's CFI is for x86-64"
	recorded "$PROGRAMS/cfi-loop" 300
	holds s.json 'len(samples) > 100' 'footer["stops"].get("root", 0) < len(samples) / 2' \
		'30 < 100 * self_share("still") / (self_share("still") + self_share("rising")) < 70'
}

@test "a program that has become a FIFO" {
	cp "$PROGRAMS/split" it
	# The shell's parent is the recorder. It sleeps from before the program is mapped until its
	# path is a FIFO.
	recorded sh -c 'kill -STOP $PPID; ./it 0.6 & until grep -q "/it$" "/proc/$!/maps"; do :; done
		rm it; mkfifo it; kill -CONT $PPID; wait'
	holds s.json 'len(samples) > 100'
	# Root opens what is mapped; others find that it is gone, and say so.
	if [ "$(id -u)" = 0 ]; then
		split_is_true
	else
		holds s.json 'any("no regular file" in n["text"] for n in notes)'
	fi
}

@test "a library that shrinks while it is mapped" {
	cp "$PROGRAMS/libshrink.so" shrink.so
	recorded "$PROGRAMS/shrink" ./shrink.so 300
	holds s.json 'len(samples) > 100' 'footer["exit"] == {"code": 0}'
	[ "$(stat -c %s shrink.so)" = 100 ]
}

@test "a perf map that is a FIFO" {
	[ "$(uname -m)" = x86_64 ] || skip "the program's code is for x86-64"
	recorded "$PROGRAMS/jit" fifo 300
	holds s.json 'len(samples) > 100' 'any("perf-" in n["text"] and ".map" in n["text"] for n in notes)'
}

@test "a perf map of a million names" {
	[ "$(uname -m)" = x86_64 ] || skip "the program's code is for x86-64"
	recorded "$PROGRAMS/jit" million 300
	holds s.json 'len(samples) > 100' 'jit_share("inner") > 40'
}

@test "control characters in the names of program, thread and function" {
	local name=$'it\e[31m\n\a'
	objcopy --redefine-sym "sixty=$(printf 'six\033]0;x\007ty')" --strip-debug \
		"$PROGRAMS/split" "$name"
	recorded "./$name" 0.3
	rooted
	holds s.json 'any("\x1b" in c for c in comms)' \
		'not any("\x1b" in f["name"] for row in names.values() for f in row if f["name"])' \
		'self_share("thirty", "rounds") > 15' 'any("six" in (f["name"] or "") for row in names.values() for f in row)'
	"$PMREPORT" s.json >out
	run ! grep -q $'[\e\a]' out
}

@test "a symbol table that goes beyond the end of the file is told of" {
	strip --strip-debug -o damaged "$PROGRAMS/split"
	python3 - damaged <<-'EOF'
	import struct, sys
	data = bytearray(open(sys.argv[1], "rb").read())
	offset, = struct.unpack_from("<Q", data, 40)
	size, count = struct.unpack_from("<HH", data, 58)
	for at in range(offset, offset + size * count, size):
	    if struct.unpack_from("<I", data, at + 4)[0] == 2:
	        struct.pack_into("<Q", data, at + 32, 1 << 40)
	        break
	else:
	    raise SystemExit("no .symtab")
	open(sys.argv[1], "wb").write(data)
	EOF
	recorded ./damaged 0.3
	holds s.json 'any("damaged were left out: its symbol table" in n["text"] for n in notes)'
}
