#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every way in which a program's file can be hard to find or to read: its stacks are complete
# all the same. PMREC, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

teardown() {
	[ -z "${open-}" ] || rm -r "$open"
}

# record COMMAND...: of enough samples, nearly all have a complete stack, which leads through
# five frames at least: rounds, main and three of the C library. In execve(2) there is no stack.
rooted() {
	local of='[s for s in samples if s.get("stop") != "exec"]'
	query s.json 'len(samples)' 'footer["stops"]' '[m["path"] for m in modules]' \
		"len($of) > 300 and rooted(0.99) and sum(len(chain(s)) >= 5 for s in $of) >= 0.97 * len($of)" |
		tee rooted
	[ "$(tail -n 1 rooted)" = True ]
}

# Whether most callers of interrupted functions were found by rules that a file has for them.
by_rules() {
	query s.json 'sum(frames[f[1]].get("how") == "cfi" for f in map(chain_frames, samples) if len(f) > 1) > len(samples) / 2'
}

record() {
	"$PMREC" -q -e cpu-clock -F 2000 -o s.json -- "$@"
	rooted
}

# without_rules COMMAND...: a counter-check without the rules that record() needs. Without
# rules, following the code mostly finds the callers, too.
without_rules() {
	"$PMREC" -q -e cpu-clock -F 2000 -o s.json -- "$@"
	query s.json 'footer["stops"]'
	[ "$(by_rules)" = False ]
}

# begins_as FILE: what has no name in bare begins where a function of FILE does, which it is a
# stripped copy of, and the time is divided as ever.
begins_as() {
	nm "$1" | awk 'NF == 3 && $2 ~ /^[TtWwi]$/ { print $3, $1 }' >nm.out
	"$PMREPORT" -q --json --limit 0 s.json >report.json
	python3 - <<-'END'
		import json
		at = {name: int(value, 16) for name, value in map(str.split, open('nm.out'))}
		rows = [row for row in json.load(open('report.json'))['events'][0]['rows']
		        if row['module'] == 'bare' and row['total']['percent'] > 2]
		share = {int(row['start'], 16): row['self']['percent'] for row in rows if 'start' in row}
		assert all(row['function'] is None for row in rows if 'start' in row)
		assert sum(share.values()) > 60, rows
		assert len(share) >= 4 and set(share) <= set(at.values()), (share, at)
		# Of 300 samples at least these are 90 %, and four standard deviations of that are 12 %.
		of_both = share[at['sixty']] + share[at['thirty']]
		assert abs(share[at['sixty']] / of_both - 2 / 3) < 0.12, share
	END
}

names_are_there() {
	[ "$(query s.json 'split_is_true(100)')" = True ]
}

# Build and test run may be in folders that nobody but their owner can enter.
need_nobody() {
	need_root
	open=$(mktemp -d)
	chmod 777 "$open"
	cd "$open" || return
	cp "$PMREC" "$PROGRAMS/split" "$PROGRAMS/threads" .
}

need_static() {
	[ -x "$PROGRAMS/split-static" ] || skip "there is no libc.a"
}

# late PMREC BEGIN THEN: the shell's parent is the recorder. It sleeps while the shell starts
# something and, once that computes, does something to its file.
late() {
	local pmrec=$1
	shift
	$pmrec -e cpu-clock:u -F 1000 --stack-bytes 8192 -o s.json -- sh -c \
		'kill -STOP $PPID; eval "$0"
		until [ "$(cut -d " " -f 14 "/proc/$!/stat")" -gt 5 ]; do sleep 0.02; done
		eval "$1"; kill -CONT $PPID; wait' "$@"
}

record_late() {
	late "$@"
	rooted
}

# without_sections FILE: as packers leave it: no section headers (elf(5), Elf64_Ehdr).
without_sections() {
	dd if=/dev/zero of="$1" bs=1 seek=40 count=8 conv=notrunc status=none # e_shoff
	dd if=/dev/zero of="$1" bs=1 seek=58 count=6 conv=notrunc status=none # e_sh…
	! readelf -S "$1" 2>/dev/null | grep -q '\.text'
}

# ---- where the rules are ----------------------------------------------------------------

@test "rules in .debug_frame alone" {
	readelf -SW "$PROGRAMS/split-no-eh" | grep -q '\.debug_frame'
	record "$PROGRAMS/split-no-eh" 0.25
	[ "$(by_rules)" = True ]
	names_are_there
	strip -o bare "$PROGRAMS/split-no-eh"
	without_rules ./bare 0.25
}

@test "compressed .debug_frame, by gABI and as GNU tools did before" {
	for form in zlib-gabi zlib-gnu; do
		objcopy --compress-debug-sections=$form "$PROGRAMS/split-no-eh" packed
		record ./packed 0.25
	done
	# Too small to be worth it, objcopy finds: both forms by hand, too.
	python3 - "$PROGRAMS/split-no-eh" <<-'END'
		import struct, sys, zlib
		data = bytearray(open(sys.argv[1], 'rb').read())
		shoff, = struct.unpack_from('<Q', data, 40)
		shentsize, shnum, shstrndx = struct.unpack_from('<HHH', data, 58)
		names, = struct.unpack_from('<Q', data, shoff + shstrndx * shentsize + 24)
		for i in range(shnum):
		    at = shoff + i * shentsize
		    name, = struct.unpack_from('<I', data, at)
		    offset, size = struct.unpack_from('<QQ', data, at + 24)
		    if data[names + name:].startswith(b'.debug_frame\0'):
		        packed = zlib.compress(data[offset:offset + size])
		        gabi = bytearray(data)
		        struct.pack_into('<QQ', gabi, at + 24, len(data), 24 + len(packed))
		        struct.pack_into('<Q', gabi, at + 8, 0x800)  # SHF_COMPRESSED
		        gabi += struct.pack('<IIQQ', 1, 0, size, 8) + packed
		        open('gabi', 'wb').write(gabi)
		        gnu = bytearray(data)
		        struct.pack_into('<QQ', gnu, at + 24, len(data) + 16, 12 + len(packed))
		        struct.pack_into('<I', gnu, at, len(data) - names)
		        # The names end where the table says, so let it reach to its new one.
		        struct.pack_into('<Q', gnu, shoff + shstrndx * shentsize + 32,
		                         len(data) + 16 - names)
		        gnu += b'.zdebug_frame\0\0\0'
		        gnu += b'ZLIB' + struct.pack('>Q', size) + packed
		        open('gnu', 'wb').write(gnu)
	END
	chmod +x gabi gnu
	readelf -SW gabi | grep -q '\.debug_frame.* C '
	readelf -SW gnu | grep -q '\.zdebug_frame'
	record ./gabi 0.25
	record ./gnu 0.25
}

@test "a debug file beside the program, by its checksum" {
	objcopy --only-keep-debug --remove-section .note.gnu.build-id \
		"$PROGRAMS/split-no-eh" split.dbg
	objcopy --strip-all --remove-section .note.gnu.build-id \
		--add-gnu-debuglink=split.dbg "$PROGRAMS/split-no-eh" bare
	record ./bare 0.25
	[ "$(by_rules)" = True ]
	names_are_there
	mkdir .debug
	mv split.dbg .debug
	record ./bare 0.25
	[ "$(by_rules)" = True ]
	# Another file under that name is not taken.
	printf 'x' >>.debug/split.dbg
	without_rules ./bare 0.25
}

@test "a debug file by build-id, in the root of the program" {
	need_root
	need_static
	mkdir -p root/usr/lib root/elsewhere
	strip -o root/bare "$PROGRAMS/split-static-no-eh"
	without_rules chroot root /bare 0.25
	id=$(readelf -n root/bare | sed -n 's/.*Build ID: //p')
	# An absolute link, which leads nowhere in our own root.
	ln -s /elsewhere root/usr/lib/debug
	mkdir -p "root/elsewhere/.build-id/${id:0:2}"
	objcopy --only-keep-debug "$PROGRAMS/split-static-no-eh" \
		"root/elsewhere/.build-id/${id:0:2}/${id:2}.debug"
	record chroot root /bare 0.25
	[ "$(by_rules)" = True ]
}

# ---- how it is linked -------------------------------------------------------------------

@test "stripped" {
	strip -o bare "$PROGRAMS/split"
	record ./bare 0.25
	begins_as "$PROGRAMS/split"
}

@test "static, with and without symbols and sections" {
	need_static
	record "$PROGRAMS/split-static" 0.25
	names_are_there
	strip -o bare "$PROGRAMS/split-static"
	record ./bare 0.25
	begins_as "$PROGRAMS/split-static"
	without_sections bare
	record ./bare 0.25
}

@test "static-pie, with and without symbols and sections" {
	[ -x "$PROGRAMS/split-static-pie" ] || skip "there is no libc.a for -static-pie"
	record "$PROGRAMS/split-static-pie" 0.25
	names_are_there
	strip -o bare "$PROGRAMS/split-static-pie"
	record ./bare 0.25
	begins_as "$PROGRAMS/split-static-pie"
	without_sections bare
	record ./bare 0.25
}

@test "dynamic, without section headers" {
	strip -o bare "$PROGRAMS/split"
	without_sections bare
	record ./bare 0.25
}

@test "an .eh_frame_hdr that is empty, or holds garbage" {
	for fill in zero urandom; do
		cp "$PROGRAMS/split" spoilt
		read -r offset size < <(readelf -lW spoilt |
			awk '$1 == "GNU_EH_FRAME" { print $2, $5 }')
		# The version and the encodings stay, or it would not be looked at.
		[ $fill = zero ] && begin=4 || begin=12
		dd if=/dev/$fill of=spoilt bs=1 seek=$((offset + begin)) \
			count=$((size - begin)) conv=notrunc status=none
		record ./spoilt 0.25
		names_are_there
	done
}

# ---- where the file is ------------------------------------------------------------------

@test "a program that deletes itself" {
	cp "$PROGRAMS/split" gone
	record sh -c '{
			until [ "/proc/$$/exe" -ef gone ]; do sleep 0.02; done
			sleep 0.1; rm gone
		} & exec ./gone 0.4'
	until_true test ! -e gone
	names_are_there
}

@test "a program that is deleted before it is looked at" {
	need_root
	record_late "$PMREC" 'cp "$PROGRAMS/split" gone; ./gone 0.7 &' 'rm gone'
	names_are_there
}

@test "a program replaced by another build before it is looked at" {
	need_root
	record_late "$PMREC" 'cp "$PROGRAMS/split" gone; ./gone 0.7 &' \
		'cp "$PROGRAMS/crash" new; mv new gone'
	names_are_there
}

@test "the same without privileges" {
	need_nobody
	record_late 'nobody ./pmrec' './split 0.7 &' 'cp threads new; mv new split'
	names_are_there
}

@test "a replaced library: root reads the old one, others never the new one" {
	need_nobody
	cp "$PROGRAMS/unwind-plt" "$PROGRAMS/libunwind-plt.so" .
	cp "$PROGRAMS/libdlopen-many.so" another.so
	local begin='cp libunwind-plt.so old.so; LD_LIBRARY_PATH=. ./unwind-plt 700 &'
	local replace='cp another.so new.so; mv new.so libunwind-plt.so'
	record_late "$PMREC" "$begin" "$replace"
	mv old.so libunwind-plt.so
	chmod 644 ./*.so
	rm s.json
	run --separate-stderr late 'nobody ./pmrec' "$begin" "$replace"
	[ "$status" = 0 ]
	[[ $stderr == *"/libunwind-plt.so could not be read while recording (replaced since"* ]]
	# Callbacks in the program lead to it. Its own rules and names are unknown: only a return
	# address on top of the stack leads on.
	local of='(modules[frames[f]["module"] or 0]["path"].endswith("libunwind-plt.so"))'
	holds s.json "any($of for p, f in stacks)" \
		"all(p is None or frames[stacks[p][1]]['how'] == 'leaf' for p, f in stacks if $of)" \
		"not any(function.get('name') for f in names if $of for function in names[f])"
}

@test "a program in a mount namespace of its own" {
	need_root
	unshare -m true 2>/dev/null || skip "mount namespaces are not permitted here"
	mkdir private
	record unshare -m sh -c 'mount -t tmpfs none private &&
		cp "$PROGRAMS/split" private/hidden && exec private/hidden 0.3'
	[ ! -e private/hidden ]
	names_are_there
}

@test "a program on an overlay, changed in its upper layer" {
	need_root
	mkdir lower upper merged
	objcopy --remove-section .note.gnu.build-id "$PROGRAMS/split" lower/split
	local mount='mount -t tmpfs none upper && mkdir upper/u upper/w &&
		mount -t overlay none -o lowerdir=lower,upperdir=upper/u,workdir=upper/w merged'
	unshare -m sh -c "$mount" 2>/dev/null || skip "overlayfs cannot be mounted here"
	record unshare -m sh -c "$mount"' && merged/split 0.2 && chmod g+w merged/split &&
		exec merged/split 0.2'
	names_are_there
}

@test "a program in a root of its own" {
	need_root
	need_static
	mkdir root
	cp "$PROGRAMS/split-static" root/inside
	record chroot root /inside 0.25
	names_are_there
}

@test "a program in memory only" {
	need_root # to read it while it is mapped; its owner could do so through /proc/PID/exe
	cat >memory.py <<-'END'
		import os, sys
		fd = os.memfd_create("in-memory")
		os.write(fd, open(sys.argv[1], "rb").read())
		os.execve(fd, ["in-memory", "0.4"], os.environ)
	END
	"$PMREC" -q -e cpu-clock -F 2000 -o s.json -- python3 memory.py "$PROGRAMS/split"
	# Python and what starts it have their own ends.
	local leaf='modules[frames[stacks[s["stack"]][1]]["module"]]["path"]'
	[ "$(query s.json "len([s for s in samples if $leaf == '/memfd:in-memory']) > 300")" = True ]
	[ "$(query s.json "sum('stop' in s for s in samples if $leaf == '/memfd:in-memory') < 5")" = True ]
	names_are_there
}

@test "names that look like something else" {
	for name in 'gone (deleted)' $'two\nlines' 'back\012slash' '[vdso]' '//anon'; do
		mkdir -p "$(dirname "$name")"
		cp "$PROGRAMS/split" "./$name"
		record "./$name" 0.25
		names_are_there
		rm "./$name"
	done
}
