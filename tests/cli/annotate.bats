#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --annotate: lines and instructions of real programs, which are compiled here so that their
# sources and binaries can be moved, changed and spoilt. PMREC, PMREPORT and SOURCE_DIR come
# from meson.

bats_require_minimum_version 1.5.0

setup_file() {
	local programs=$SOURCE_DIR/tests/programs
	export LC_ALL=C.UTF-8
	mkdir -p "$BATS_FILE_TMPDIR/made/src" && cd "$BATS_FILE_TMPDIR/made" || return
	cp "$programs"/annotate-loop.c "$programs"/annotate-inline.cc src
	gcc -g -O2 -o prog "$PWD/src/annotate-loop.c"
	g++ -g -O2 -o inline "$PWD/src/annotate-inline.cc"
	# Made before the recording: a source that is newer is told of.
	touch -d '1 hour ago' src/* prog inline
	"$PMREC" -e cpu-clock:u -F 2000 -o samples.json -- ./prog 250 >/dev/null 2>err ||
		{ cat err >&2; return 1; }
	"$PMREC" -e cpu-clock:u -F 2000 -o inline.json -- ./inline 20000 >/dev/null 2>err ||
		{ cat err >&2; return 1; }
	cp -pr "$PWD" ../whole
}

# Every test has prog, src and samples.json whole where they were recorded, and may spoil them.
setup() {
	export LC_ALL=C.UTF-8
	unset NO_COLOR TERM
	cd "$BATS_FILE_TMPDIR/made" && rm -rf ./* && cp -pr ../whole/. .
}

# report STATUS [argument...]: runs pmreport; stdout in out, stderr in err.
report() {
	local expected=$1 status=0
	shift
	"$PMREPORT" "$@" >out 2>err || status=$?
	[ "$status" = "$expected" ] || {
		echo "status $status, not $expected" >&2
		cat out err >&2
		return 1
	}
}

# has TEXT...: each is somewhere in out, however its lines are broken.
has() {
	local text
	tr '\n' ' ' <out | tr -s ' ' >squeezed
	for text; do
		grep -qF -- "$text" out squeezed || {
			echo "missing: $text" >&2
			cat out >&2
			return 1
		}
	done
}

# lacks PATTERN...: no line of out matches.
lacks() {
	local pattern
	for pattern; do
		! grep -P -- "$pattern" out >&2 || return 1
	done
}

# json EXPRESSION...: of e, the first event, and a, what it has of the function.
json() {
	python3 -c 'import json, sys
e = json.load(open("out"))["events"][0]
a = e["annotate"]
lines = lambda: [l for f in a["files"] for l in f["lines"]] + a["no_line"]
insns = lambda: [i for p in a["code"]["parts"] for i in p["instructions"]]
taken = a["self"]["samples"] + a["inlined"]["samples"] if a else 0
for x in sys.argv[1:]:
    if not eval("(" + x + ")"): sys.exit("not so: " + x)' "$@"
}

# tame FILE: nothing in it moves a cursor.
tame() {
	! LC_ALL=C grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$1" >&2
}

# ---- truth --------------------------------------------------------------------------------

@test "the hottest instructions are those of perf annotate, within 2 points" {
	command -v perf >/dev/null || skip "perf is not installed"
	perf record -q -B -N -e cpu-clock:u -F 8000 -o probe.data -- true >perf.err 2>&1 ||
		skip "perf cannot record here: $(head -1 perf.err)"
	# As many rounds as give enough samples here: 4 seconds.
	local rounds
	rounds=$(python3 -c 'import resource, subprocess
subprocess.run(["./prog", "300"], stdout=subprocess.DEVNULL, check=True)
print(round(300 * 4 / resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime))')
	# Both sample the same run: perf records the program, pmrec perf with it.
	"$PMREC" --call-graph none -e cpu-clock:u -F 8000 -o both.json -- \
		perf record -q -B -N -e cpu-clock:u -F 8000 -o perf.data -- \
		./prog "$rounds" >/dev/null 2>err
	perf annotate -i perf.data --stdio -s work >perf.out 2>perf.err ||
		skip "perf annotate fails: $(head -1 perf.err)"
	report 0 both.json --annotate work --json
	local status=0
	python3 - <<-'END' >agreement 2>&1 || status=$?
		import json, math, re, sys
		text = open("perf.out").read()
		theirs = {int(m[2], 16): float(m[1])
		          for m in re.finditer(r"^ +([0-9.]+) +: +([0-9a-f]+):", text, re.M)}
		n = int(re.search(r"\((\d+) samples", text)[1])
		a = json.load(open("out"))["events"][0]["annotate"]
		ours = {int(i["address"], 16): i["self"]["percent"]
		        for p in a["code"]["parts"] for i in p["instructions"]}
		m = a["self"]["samples"]
		hottest = sorted(theirs, key=theirs.get)[-6:] + sorted(ours, key=ours.get)[-6:]
		if not hottest or not theirs:
		    sys.exit("perf annotate tells no instruction")
		for address in hottest:
		    p = theirs[address]
		    sigma = math.sqrt(p * (100 - p) * (1 / n + 1 / m))
		    print(f"{address:x}: perf {p} pmreport {ours[address]} sigma {sigma:.2f}")
		    if 5 * sigma > 2:
		        print(f"too few samples for that: {n} and {m}")
		        sys.exit(77)
		    if abs(p - ours[address]) > 2:
		        sys.exit("more than 2 points apart")
	END
	cat agreement
	[ "$status" != 77 ] || skip "$(tail -1 agreement)"
	[ "$status" = 0 ]
}

@test "instructions are objdump's, byte by byte, and lines the source's" {
	report 0 --annotate work --json
	objdump -d --disassemble=work --insn-width=16 prog >dump
	python3 - src/annotate-loop.c <<-'END'
		import json, re, sys
		dump = [(int(m[1], 16), m[2].replace(" ", "")) for m in
		        re.finditer(r"^ +([0-9a-f]+):\t((?:[0-9a-f]{2} )+)", open("dump").read(), re.M)]
		a = json.load(open("out"))["events"][0]["annotate"]
		insns = [i for p in a["code"]["parts"] for i in p["instructions"]]
		assert dump and dump == [(int(i["address"], 16), i["bytes"]) for i in insns], dump
		source = open(sys.argv[1]).read().splitlines()
		lines = [l for f in a["files"] for l in f["lines"]]
		assert lines and all(l["text"] == source[l["line"] - 1] for l in lines)
		body = range(source.index("{") + 1, source.index("}") + 2)
		assert all(i["line"] in body for i in insns), insns
	END
}

@test "every sample is on one line and one instruction" {
	report 0 --annotate work --json
	json 'a["function"] == "work" and a["module"] == "prog"' \
		'taken > 200 and taken >= e["total"]["samples"] * 0.95' \
		'sum(l["self"]["samples"] + l["inlined"]["samples"] for l in lines()) == taken' \
		'sum(i["self"]["samples"] for i in insns()) == taken' \
		'a["code"]["verified"] and a["code"]["elsewhere"]["samples"] == 0' \
		'a["unknown_line"]["samples"] == 0 and a["why_no_code"] is None' \
		'abs(sum(i["self"]["percent"] for i in insns()) - 100) < 0.01' \
		'{l["line"]: l["self"]["samples"] for l in lines()} == {n: s for n in
		  {i["line"] for i in insns()} for s in [sum(i["self"]["samples"] for i in insns()
		  if i["line"] == n)] if s}'
	report 0 --annotate main --json
	# What it calls counts at the line and at the instruction of the call.
	json 'max(l["total"]["percent"] for l in lines()) > 99' \
		'[l["text"] for l in lines() if l["total"]["percent"] > 99] == ["\t\tall += work(1000000 + i);"]' \
		'[i["target_function"] for i in insns() if i["total"]["percent"] > 99] == ["work"]'
}

@test "what is inlined stands at its line" {
	report 0 inline.json --annotate mixed --json
	json 'a["inlined"]["samples"] > 0' \
		'sum(l["self"]["samples"] + l["inlined"]["samples"] for l in lines()) == taken' \
		'all(sum(f["self"]["samples"] for f in l["inlined_functions"]) ==
		  l["inlined"]["samples"] for l in lines())' \
		'any(f["function"] == "scramble" for l in lines() for f in l["inlined_functions"])' \
		'any(i.get("inlined", {}).get("function") == "scramble" for i in insns())'
	# And the other way round: the function that is always inlined has code of its own there.
	report 0 inline.json --annotate scramble --json
	json 'a["self"]["samples"] > 0 and a["code"]["parts"][0]["inlined_here"]' \
		'sum(i["self"]["samples"] for i in insns()) == taken' \
		'all(l["text"].strip().startswith(("x ", "return x", "static", "{", "}"))
		  for l in lines())'
	report 0 inline.json --annotate mixed
	has '↳ scramble (inlined) annotate-inline.cc:' '; scramble annotate-inline.cc:'
	report 0 inline.json --annotate scramble --asm
	has '(it is inlined here)' 'instructions of the function around it'
}

# ---- how it looks -------------------------------------------------------------------------

# Percentages and addresses differ from run to run; the rest does not.
@test "jumps are drawn beside the instructions" {
	[ "$(uname -m)" = x86_64 ] || skip "needs code of x86-64"
	cat >jumps.s <<-'END'
			.globl main
			.type main, @function
		main:	movl $200000000, %ecx
		1:	testb $1, %cl
			jne 2f
			addq $1, %rax
		2:	decl %ecx
			jne 1b
			xorl %eax, %eax
			ret
			.size main, . - main
			.section .note.GNU-stack,"",@progbits
	END
	gcc -o jumps jumps.s
	"$PMREC" -e cpu-clock:u -F 500 -o jumps.json -- ./jumps 2>err || cat err >&2
	report 0 jumps.json --annotate main --asm -q
	sed -E 's/^ *([0-9.]+% +)*[0-9a-f]+: │ //; s/0x[0-9a-f]+/ADDRESS/; s/ +$//' out >drawn
	diff -u - drawn <<-'END'
		main:
		    movl    $ADDRESS, %ecx
		╭─→ testb   $1, %cl
		│╭─ jne     ADDRESS
		││  addq    $1, %rax
		│╰→ decl    %ecx
		╰── jne     ADDRESS
		    xorl    %eax, %eax
		    retq
	END
	# Without lines there are instructions only, and nothing else is asked for.
	report 0 jumps.json --annotate main
	has 'no line of it is known' 'addr' '│╰→ decl'
	LC_ALL=C report 0 jumps.json --annotate main --asm -q
	grep -q "|'> decl" out
	lacks '[^\x00-\x7f]'
}

@test "lines and their instructions, at any width" {
	for width in 60 80 200; do
		report 0 --annotate work --width $width
		has 'samples taken in it' 'x % 3 == 0' 'annotate-loop.c' 'self   line' \
			'100.0% of the samples taken in it are on the lines shown'
		[ "$(wc -L <out)" -le $width ]
	done
	report 0 --annotate work --source
	has 'x % 3 == 0'
	lacks '%eax'
	report 0 --annotate work --asm
	has 'work:' '; annotate-loop.c:'
	lacks 'x % 3 == 0'
	report 0 --annotate work --color always
	grep -qP '\x1b\[1;31m +\d+\.\d%' out
}

@test "fields for spreadsheets" {
	report 0 --annotate work -x,
	python3 - <<-'END'
		import csv
		rows = list(csv.DictReader(open("out")))
		lines = [r for r in rows if r["what"] == "line"]
		insns = [r for r in rows if r["what"] == "instruction"]
		assert lines and insns and len(rows) == len(lines) + len(insns)
		count = lambda of: sum(int(r["self_samples"]) for r in of)
		assert count(lines) == count(insns) > 200
		assert all(r["address"].startswith("0x") for r in insns)
		assert any("x % 3 == 0" in r["text"] for r in lines)
	END
	report 0 --annotate work --asm '-x;'
	lacks ';prog;line;'
	report 0 --annotate work --source '-x;'
	lacks ';prog;instruction;'
}

# ---- what is not there --------------------------------------------------------------------

@test "a source that is gone, moved or newer" {
	touch src/annotate-loop.c
	report 0 --annotate work
	has 'changed since the recording began: its lines may' 'x % 3 == 0'
	mv src gone
	report 0 --annotate work
	has 'this source is not here; try --source-dir' '%eax' '100.0% of the samples'
	lacks 'x % 3 == 0'
	report 0 --annotate work --source-dir "$PWD/gone"
	has 'x % 3 == 0'
	report 0 --annotate work --source-dir "$PWD/src=$PWD/gone"
	has 'x % 3 == 0'
	report 0 --annotate work --source-dir "$PWD/sr=$PWD/gone" --json
	json 'all(l["text"] is None for l in lines())' 'a["files"][0]["read"] is None' \
		'"not here" in a["files"][0]["why_not"]'
}

@test "a copy of the recorded machine's files, and debug files apart" {
	mkdir -p "root$PWD" debug/.build-id
	objcopy --only-keep-debug prog whole.debug
	strip prog
	mv prog "root$PWD/prog"
	report 0 --annotate work
	has 'no instructions: ' 'try --symfs' 'x % 3 == 0'
	report 0 --annotate work --symfs root --json
	json 'insns() and not any(i["line"] for i in insns())' \
		'a["code"]["parts"][0]["symbol"] is None'
	local id
	id=$(jq -r 'select(.type == "module" and (.path | endswith("/prog"))) | .build_id' \
		samples.json)
	mkdir -p "debug/.build-id/${id:0:2}" root/usr/lib/debug
	mv whole.debug "debug/.build-id/${id:0:2}/${id:2}.debug"
	report 0 --annotate work --symfs root --debug-dir "$PWD/debug" --json
	json 'insns() and all(i["line"] for i in insns())' \
		'sum(i["self"]["samples"] for i in insns()) == taken'
	mv debug/.build-id root/usr/lib/debug
	report 0 --annotate work --symfs "$PWD/root" --json
	json 'insns() and all(i["line"] for i in insns())'
	# What is there under the whole path counts when the copy has another one.
	cp "root$PWD/prog" prog
	gcc -O1 -o "root$PWD/prog" src/annotate-loop.c
	report 0 --annotate work --symfs "$PWD/root" --json
	json 'insns()'
}

@test "another program where the recorded one was" {
	gcc -O1 -g -o prog src/annotate-loop.c
	report 0 --annotate work
	has 'no instructions: ' 'another file is there now: its build-id is' 'x % 3 == 0'
	lacks '%eax'
	report 0 --annotate work --json
	json 'a["code"] is None and "another file" in a["why_no_code"] and lines()'
	gcc -O2 -g -Wl,--build-id=none -o prog src/annotate-loop.c
	report 0 --annotate work
	has 'it has no build-id'
	rm prog
	report 0 --annotate work --asm
	has 'No such file'
}

@test "a recording without a build-id trusts only an older file" {
	gcc -O2 -g -Wl,--build-id=none -o prog src/annotate-loop.c
	"$PMREC" -e cpu-clock:u -F 500 -o samples.json -- ./prog 40 >/dev/null 2>err
	[ "$(jq -r 'select(.type == "module" and (.path | endswith("/prog"))) | .build_id' \
		samples.json)" = null ]
	touch -d '1 hour ago' prog
	report 0 --annotate work
	has 'the recording knows no build-id of it' '%eax'
	touch -d '1 hour' prog
	report 0 --annotate work
	has 'was changed after the recording began'
	lacks '%eax'
}

@test "stripped code: instructions of what its unwind tables tell, and why not of the rest" {
	cat >lib.c <<-'END'
		static volatile unsigned n;
		static __attribute__((noinline)) void hidden(unsigned to) { for (n = 0; n < to; n++); }
		void shown(unsigned to) { for (n = 0; n < to; n++); hidden(to); n = 1; }
	END
	echo 'void shown(unsigned); int main(void) { shown(60000000); }' >main.c
	gcc -O1 -shared -fPIC -o full.so lib.c
	strip -o libx.so full.so
	gcc -o main main.c ./libx.so
	"$PMREC" -e cpu-clock:u -F 999 -o samples.json -- ./main 2>err
	report 0 --annotate shown
	has 'no line of it is known' 'shown:'
	report 0 --annotate shown --json
	json 'insns() and a["code"]["shown"]["samples"] == taken > 5'
	hidden=0x$(nm full.so | awk '$3 == "hidden" { sub("^0*", "", $1); print $1 }')
	report 0 --annotate "[$hidden]" --asm
	has "[$hidden]:" 'ret'
	report 0 --annotate "[$hidden]" --json
	json 'insns() and a["code"]["shown"]["samples"] == taken > 5' \
		'a["code"]["parts"][0]["symbol"] is None'

	gcc -O1 -shared -fPIC -s -fno-asynchronous-unwind-tables -o libx.so lib.c
	"$PMREC" -e cpu-clock:u -F 999 -o samples.json -- ./main 2>err
	report 0 -d libx.so --annotate '\[unknown\]'
	has 'no instructions: ' 'neither a symbol table nor .eh_frame says where the function begins'
}

@test "the kernel, other functions, and names that fit several" {
	cp "$SOURCE_DIR/tests/cli/fixtures/truth.json" samples.json
	report 0 --annotate sys_read --event cycles
	has 'no instructions: ' "the kernel's code is not in a file"
	report 0 --annotate sixty
	has 'no sample of this event has it on the stack'
	report 2 --annotate nobody
	report 2 --annotate '^s'
	grep -q 'one of: .*sixty' err
	report 2 --annotate ''
	report 2 --source
	report 2 --annotate sixty --source --asm
	report 2 --annotate sixty --tree
	report 2 --annotate sixty --folded
	report 2 --annotate sixty --source-dir ''
}

# ---- hostile files ------------------------------------------------------------------------

@test "nothing of a source or its name reaches the terminal unseen" {
	local evil=$'\e]0;owned\a\e[2J\x9b1m\xc2\x9b\r\x7f'
	awk -v evil="$evil" '{ print evil $0 evil }' ../whole/src/annotate-loop.c >src/annotate-loop.c
	report 0 --annotate work
	has 'x % 3 == 0' '\x1b]0;owned\x07'
	tame out
	report 0 --annotate work -x,
	tame out
	report 0 --annotate work --json
	json 'any("x % 3" in l["text"] for l in lines())'
	tame out
	sed -i 's|src/annotate-loop.c|src/\\u001b[31m\\u009b/annotate-loop.c|g' samples.json
	for show in --source --asm --json '-x;'; do
		report 0 --annotate work $show
		tame out
	done
}

@test "no source: pipes, devices, folders, binary and huge files" {
	rm src/annotate-loop.c
	mkfifo src/annotate-loop.c
	report 0 --annotate work
	has 'this is no regular file' '%eax'
	rm src/annotate-loop.c
	cp prog src/annotate-loop.c
	report 0 --annotate work
	has 'this is no text'
	truncate -s 1T src/annotate-loop.c
	report 0 --annotate work
	has 'too large for a source'
	printf 'one line' >src/annotate-loop.c
	report 0 --annotate work
	has '(the file has no such line)'
	sed -i 's|"[^"]*src/annotate-loop.c"|"/dev/zero"|g' samples.json
	report 0 --annotate work
	has 'this is no regular file'
}

@test "programs that are cut short or spoilt, with the right build-id" {
	local size at
	size=$(stat -c %s prog)
	cp prog whole
	for at in 0 64 4096 $((size / 2)) $((size - 1)); do
		head -c "$at" whole >prog
		report 0 --annotate work
		has 'x % 3 == 0'
	done
	# Bytes anywhere: 8 files, each with 60 of them. The fuzzer tries more.
	python3 - <<-'END'
		import random
		random.seed(5)
		whole = open("whole", "rb").read()
		for n in range(8):
		    b = bytearray(whole)
		    for _ in range(60):
		        b[random.choice([random.randrange(len(b)), random.randrange(64),
		                         len(b) - 1 - random.randrange(2300)])] = random.randrange(256)
		    open(f"spoilt.{n}", "wb").write(b)
	END
	for at in spoilt.*; do
		mv "$at" prog
		report 0 --annotate work
		tame out
	done
}
