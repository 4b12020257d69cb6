#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Corpora: pmrec --raw writes them, unwind-bench unwinds them. UNWIND_BENCH, PMREC, PROGRAMS and
# SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	fixtures=$SOURCE_DIR/tests/bench/fixtures
}

need_events() {
	"$PMREC" -q -o try.json -- true 2>why || skip "cannot record: $(head -n 1 why)"
}

# raw NAME PROGRAM…: NAME.json and NAME.corpus.
raw() {
	local name=$1
	shift
	"$PMREC" -q -e cpu-clock:u -F 499 -o "$name.json" --raw "$name.corpus" -- "$@"
}

@test "a recorded corpus gives the chains that libdwfl found on the machine of its time" {
	"$UNWIND_BENCH" --no-bench --check --print ours "$fixtures/signal.corpus.zst" >said
	cat said
	grep -q ': 24 samples' said
	grep -q 'equal 24 wrong 0' said
	diff <(cut -d' ' -f2- ours) <(cut -d' ' -f2- "$fixtures/signal.libdwfl")
	# Through signal handlers on both stacks, some copies too short for all of it.
	[ "$(cut -d' ' -f1 ours | sort | uniq -c | xargs)" = '2 bad_memory 11 root 11 truncated' ]
	[ "$(grep '^root' ours | awk '{print $NF}' | sort -u | wc -l)" = 1 ]
}

@test "chains on standard output have it for themselves" {
	run --separate-stderr "$UNWIND_BENCH" --no-bench --print - "$fixtures/signal.corpus.zst"
	[ "$status" = 0 ]
	[ "${#lines[@]}" = 24 ]
	# shellcheck disable=SC2154 # of run --separate-stderr
	[[ $stderr == *'24 samples'* ]]
}

@test "ours and the others are measured on the same corpus" {
	run "$UNWIND_BENCH" --passes 1 "$fixtures/signal.corpus.zst"
	echo "$output"
	[ "$status" = 0 ]
	for row in 'ours first' 'ours cold' 'ours hot' 'libdwfl cold' 'libdwfl hot' 'libdw cold' 'libdw hot'; do
		grep -E "$row +[0-9]+\.[0-9] ns/frame" <<<"$output" | grep -vE ' 0\.0 ns/frame'
	done
	grep -qE 'tables [0-9.]+ MB' <<<"$output"
	grep -qE 'cold start, .* 4 modules: ours [0-9.]+ ms' <<<"$output"
}

@test "a corpus that was cut is used as far as it goes, and said to be cut" {
	head -c 69000 "$fixtures/signal.corpus.zst" >cut.corpus
	run "$UNWIND_BENCH" --no-bench --print chains cut.corpus
	[ "$status" = 0 ]
	[[ $output == *'cut short'* ]]
	[ -s chains ]
	diff chains <("$UNWIND_BENCH" --no-bench --print - "$fixtures/signal.corpus.zst" 2>/dev/null |
		head -n "$(wc -l <chains)")
}

@test "what is no corpus, or not there, is refused" {
	echo 'not a corpus, though longer than the header of one, which is 64 bytes long' >text
	run "$UNWIND_BENCH" --no-bench text
	[ "$status" = 2 ]
	[[ $output == *'text'*'no corpus'* ]]
	run "$UNWIND_BENCH" --no-bench missing
	[ "$status" = 2 ]
	run "$UNWIND_BENCH" --passes 0 text
	[ "$status" = 2 ]
}

@test "pmrec --raw keeps what its stacks are made of" {
	need_events
	raw run "$PROGRAMS/unwind-frames" 300
	[ "$(stat -c %a run.corpus)" = 600 ]
	"$UNWIND_BENCH" --no-bench --check --print chains run.corpus >said
	cat said
	grep -q ' wrong 0' said
	[ "$(grep -c 'cut short' said)" = 0 ]
	# The same chains: what the file of samples has is the page offset of pc or pc - 1.
	python3 - run.json chains <<-'PY'
		import json, sys
		rows = [json.loads(line) for line in open(sys.argv[1])]
		frames = [int(row["address"], 16) for row in rows if row["type"] == "frame"]
		stacks = []
		for row in rows:
		    if row["type"] == "stack":
		        parent = row["parent"]
		        for frame in row["frames"] if "frames" in row else [row["frame"]]:
		            stacks.append((parent, frame))
		            parent = len(stacks) - 1
		samples = [row for row in rows if row["type"] == "sample"]
		chains = [line.split() for line in open(sys.argv[2])]
		assert len(samples) == len(chains) >= 20, (len(samples), len(chains))
		for sample, (stop, *pcs) in zip(samples, chains):
		    assert sample.get("stop", "root") == stop
		    at, found = sample["stack"], []
		    while at is not None:
		        at, frame = stacks[at]
		        found.append(frames[frame])
		    assert len(found) == len(pcs) >= 2
		    for address, pc in zip(found, pcs):
		        assert (int(pc, 16) - address) % 4096 in (0, 1), (found, pcs)
	PY
}

@test "a wrong chain is seen by --check" {
	need_events
	raw run "$PROGRAMS/unwind-frames" 200
	"$UNWIND_BENCH" --no-bench --check run.corpus
	# The program's .eh_frame gets other values of CFA: each chain ends at its first frame.
	python3 - run.corpus <<-'PY'
		import struct, sys
		data = bytearray(open(sys.argv[1], 'rb').read())
		at, spoiled = struct.unpack_from('<I', data, 8)[0], 0
		while at < len(data):
		    kind, _, size = struct.unpack_from('<IIQ', data, at)
		    if kind == 1 and b'/unwind-frames\0' in data[at:at + 4096]:
		        lens = struct.unpack_from('<6Q', data, at + 32)[1::2]
		        end = at + size - sum((len + 7) // 8 * 8 for len in lens[2:])
		        start = end - (lens[1] + 7) // 8 * 8
		        # DW_CFA_def_cfa: r7 (rsp) becomes r0
		        spoiled += data.count(b'\x0c\x07\x08', start, end)
		        data[start:end] = data[start:end].replace(b'\x0c\x07\x08', b'\x0c\x00\x08')
		    at += size
		assert spoiled, 'nothing was spoiled'
		open(sys.argv[1], 'wb').write(data)
	PY
	run "$UNWIND_BENCH" --no-bench --check run.corpus
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *'the chains differ'* ]]
}

@test "a corpus whose recorder was killed is used as far as it goes" {
	need_events
	"$PMREC" -q -e cpu-clock:u -F 999 -o run.json --raw run.corpus -- "$PROGRAMS/split" 20 &
	recorder=$!
	for _ in {1..200}; do
		[ "$(stat -c %s run.corpus 2>/dev/null || echo 0)" -gt 1000000 ] && break
		sleep 0.1
	done
	command=$(pgrep -P "$recorder" -x split)
	kill -KILL "$recorder"
	kill -KILL "$command"
	wait "$recorder" || true
	run "$UNWIND_BENCH" --no-bench --print chains run.corpus
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *'cut short'* ]]
	[ "$(grep -c '^root ' chains)" -ge 10 ]
}

@test "a full disk of --raw ends the recording, not the command" {
	need_events
	[ -w /dev/full ] || skip "there is no /dev/full"
	run --separate-stderr "$PMREC" -q -o run.json --raw /dev/full -- sh -c 'echo ran >ran'
	[ "$status" = 125 ]
	[ "$(cat ran)" = ran ]
	[[ $stderr == *'/dev/full'*'No space left'* ]]
}

@test "--raw where it cannot be" {
	run "$PMREC" --raw '' -- true
	[ "$status" = 125 ]
	[[ $output == *'--raw'*'name'* ]]
	run "$PMREC" -o same --raw same -- true
	[ "$status" = 125 ]
	[[ $output == *'same file'* ]]
	run "$PMREC" --call-graph fp --raw file -- true
	[ "$status" = 125 ]
	[[ $output == *'--call-graph dwarf'* ]]
	[ ! -e same ]
	[ ! -e file ]
	run "$PMREC" --raw no/such/folder -- true
	[ "$status" = 125 ]
	[[ $output == *'no/such'* ]]
	run -127 "$PMREC" -o run.json --raw run.corpus -- ./not-there
	[ ! -e run.corpus ]
}
