#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sampling by ptrace, where perf is denied, and the stacks of running processes. PMREC, PMREPORT,
# PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	targets=()
}

teardown() {
	for pid in "${targets[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	[ -z "${mounted-}" ] || umount "$mounted"
	[ -z "${open-}" ] || rm -r "$open"
}

# await STATE PID: until /proc shows the process in that state, as S or T.
await() {
	until_true is_in_state "$@"
}
is_in_state() {
	[ "$(sed 's/.*) \(.\).*/\1/' "/proc/$2/stat" 2>/dev/null)" = "$1" ]
}

# Build and test run may be in folders that nobody but their owner can enter.
need_nobody() {
	need_root
	open=$(mktemp -d)
	chmod 777 "$open"
	cd "$open" || return
	cp "$PMREC" "$PROGRAMS/split" "$PROGRAMS/deny-perf" .
}

# split_is_true: the shares are those of the program, within four standard deviations of so
# many samples; of samples that stand for unequal times, fewer count.
split_is_true() {
	local what count='sum(s["period"] for s in samples) ** 2 / sum(s["period"] ** 2 for s in samples)'
	query s.json 'len(samples)' "$count" \
		'[self_share(n) for n in ("sixty", "thirty", "ten")]'
	for what in '"sixty", 0.6' '"thirty", 0.3' '"ten", 0.1'; do
		holds s.json "(lambda n, p: abs(self_share(n) / 100 - p) < 4 * (p * (1 - p) / ($count)) ** 0.5)($what)"
	done
}

# ---- recording --------------------------------------------------------------------------

@test "without perf, an ordinary user gets the true shares of CPU time" {
	need_nobody
	nobody ./deny-perf 1 ./pmrec -q --engine ptrace -o s.json -- ./split 4
	split_is_true
	holds s.json 'len(samples) > 80' 'events[0]["freq"] == 99' \
		'footer["stops"] == {"root": len(samples)}' \
		'0.95 < footer["events"][0]["period"] / footer["cpu_ns"] < 1.01'
}

@test "with more samples, too" {
	"$PMREC" -q --engine ptrace -F 999 -o s.json -- "$PROGRAMS/split" 3
	split_is_true
	# Not one of each clock tick, of which all periods would be multiples.
	holds s.json 'len(samples) > 400' 'events[0]["freq"] == 999' \
		'len({s["period"] for s in samples}) > len(samples) / 2' \
		'0.95 < footer["events"][0]["period"] / footer["cpu_ns"] < 1.01'
}

@test "the file and the report say how it was sampled" {
	"$PMREC" -q --engine ptrace -o s.json -- "$PROGRAMS/split" 0.3
	holds s.json 'events == [{"id": 0, "name": "ptrace", "requested": "ptrace", "actual": "ptrace", "modifiers": "", "unit": "ns", "freq": 99}]' \
		'"ptrace" in notes[0]["text"] and "kernel" in notes[0]["text"]' \
		'footer["events"][0]["lost"] == 0'
	"$PMREPORT" s.json >out
	grep -q "samples of ptrace @ 99 Hz" out
	grep -q "! sampled by stopping threads (ptrace)" out
	"$PMREC" -q --engine ptrace -e cycles -o s.json -- "$PROGRAMS/split" 0.1
	holds s.json 'events[0]["requested"] == "cycles" and events[0]["actual"] == "ptrace"'
}

@test "--raw keeps what the unwinder saw below the stack pointer" {
	[ "$(uname -m)" = x86_64 ] || skip "rsp is register 7 of x86-64 only"
	"$PMREC" -q --engine ptrace --raw s.stk -o s.json -- "$PROGRAMS/split" 0.5
	cat >below.py <<-'END'
		import struct
		data, below = open("s.stk", "rb").read(), []
		at, = struct.unpack_from("<I", data, 8)
		while at < len(data):
		    kind, _, length = struct.unpack_from("<IIQ", data, at)
		    if kind == 4:
		        start, = struct.unpack_from("<Q", data, at + 16 + 16 + 4 * 8)
		        rsp, = struct.unpack_from("<Q", data, at + 16 + 16 + 5 * 8 + 8 + 7 * 8)
		        below.append(rsp - start)
		    at += length
		print(len(below), set(below))
	END
	run python3 below.py
	echo "$output"
	[ "$output" = "$(query s.json 'len(samples)') {128}" ]
}

@test "who sleeps is not counted" {
	run --separate-stderr "$PMREC" --engine ptrace -F 999 -o s.json -- sleep 0.5
	[ "$status" = 0 ]
	# Its start is, which takes a few milliseconds of CPU time, and more on a slow machine.
	holds s.json 'footer["events"][0]["period"] <= 1.01 * footer["cpu_ns"] + 1e6' \
		'footer["cpu_ns"] < 2.5e8' 'footer["duration_ns"] >= 500000000'
}

@test "threads, children and programs are followed, with their names" {
	"$PMREC" -q --engine ptrace -F 500 -o t.json -- "$PROGRAMS/threads"
	holds t.json 'comms >= {"threads", "worker-0", "worker-1", "worker-2", "worker-3"}' \
		'len({s["tid"] for s in samples}) >= 4' 'len({s["pid"] for s in samples}) == 1'
	"$PMREC" -q --engine ptrace -F 500 -o f.json -- "$PROGRAMS/forker"
	holds f.json 'comms >= {"forker", "kid-0", "kid-1", "kid-2"}' \
		'len({s["pid"] for s in samples}) >= 3'
	"$PMREC" -q --engine ptrace -F 500 -o x.json -- "$PROGRAMS/exec-chain" 2
	holds x.json 'comms >= {"exec-chain", "stage-2", "stage-1", "stage-0"}' \
		'len({s["pid"] for s in samples}) == 1' \
		'sum("main" in chain(s) for s in samples) > 0.5 * len(samples) > 10'
}

@test "libraries that come later are known" {
	mkdir libraries
	tee libraries/{1..100}.so <"$PROGRAMS/libdlopen-many.so" >/dev/null
	"$PMREC" -q --engine ptrace -F 999 -o s.json -- "$PROGRAMS/dlopen-many" libraries/*.so
	query s.json 'len(samples)' 'footer["stops"]'
	holds s.json 'sum("/libraries/" in m["path"] for m in modules) > 50' \
		'rooted(0.98)'
}

@test "stacks deeper than the kernel can copy reach their root" {
	cat >deep.py <<-'END'
		import sys, threading, time
		sys.setrecursionlimit(10000)
		def down(n):
		    if n: return sorted([n], key=lambda x: down(n - 1))
		    end = time.process_time() + 0.3
		    while time.process_time() < end: pass
		threading.stack_size(64 << 20)
		thread = threading.Thread(target=down, args=(300,))
		thread.start()
		thread.join()
	END
	"$PMREC" -q --engine ptrace --no-symbols -F 200 -o s.json -- python3 deep.py
	query s.json 'len(samples)' 'footer["stops"]' 'max(len(chain(s)) for s in samples)'
	holds s.json 'max(len(chain(s)) for s in samples) > 800' \
		'footer["stops"]["root"] >= 0.8 * len(samples)'
}

@test "a program notices nothing: system calls, signals, job control, children" {
	run "$PMREC" -q --engine ptrace -F 1000 -o s.json -- "$PROGRAMS/restless" 4
	echo "$output"
	[ "$status" = 0 ]
	holds s.json 'len(samples) > 100' '"sh" in comms'
}

@test "the command's exit status is passed through" {
	run "$PMREC" -q --engine ptrace -- "$PROGRAMS/split" 0.01 3
	[ "$status" = 3 ]
	run "$PMREC" -q --engine ptrace -- sh -c 'kill -KILL $$'
	[ "$status" = 137 ]
	run "$PMREC" -q --engine ptrace -- "$PROGRAMS/crash"
	[ "$status" = 139 ]
	holds samples.json 'footer["exit"] == {"signal": 11}' \
		'any(chain(s)[:3] == ["step", "fall", "lean"] for s in samples)'
	run -127 "$PMREC" -q --engine ptrace -- ./no-such-file
	printf '#!/no/such/interpreter\n' >script
	chmod +x script
	run -127 "$PMREC" -q --engine ptrace -- ./script
	run "$PMREC" -q --engine ptrace -- /
	[ "$status" = 126 ]
}

@test "a stopped command stays stopped, and is continued" {
	"$PMREC" -q --engine ptrace -o s.json -- sh -c 'echo $$ >pid; kill -STOP $$; exit 4' 3>&- &
	local recorder=$! status=0
	while [ ! -s pid ]; do sleep 0.05; done
	targets+=("$(cat pid)")
	await t "$(cat pid)"
	kill -CONT "$(cat pid)"
	wait "$recorder" || status=$?
	[ "$status" = 4 ]
}

@test "a signal to the recorder ends the command, and completes the file" {
	"$PMREC" -q --engine ptrace -F 999 -o s.json -- "$PROGRAMS/split" 60 3>&- &
	local recorder=$! status=0
	await_sample s.json
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	[ "$status" = 143 ]
	holds s.json 'footer["exit"] == {"signal": 15}'
	split_is_true
}

@test "Ctrl-C on a terminal reaches the command once, and completes the file" {
	run python3 "$SOURCE_DIR/tests/cli/tty-interrupt.py" s.json \
		"$PMREC" --engine ptrace -F 999 -o s.json -- "$PROGRAMS/split" 60
	[ "$status" = 130 ]
	holds s.json 'footer["exit"] == {"signal": 2}'
	split_is_true
}

@test "after the first signal nobody is traced, the second ends a command that will not" {
	cat >stubborn <<-'END'
		#!/bin/bash
		echo $$ >pid
		trap '' INT TERM
		while :; do :; done
	END
	chmod +x stubborn
	"$PMREC" --engine ptrace -o s.json -- ./stubborn 2>err 3>&- &
	local recorder=$! status=0
	await_sample s.json
	grep -q '^TracerPid:.*[1-9]' "/proc/$(cat pid)/status"
	kill -TERM "$recorder"
	until_true grep -q 'waiting for the command' err
	grep -q '^TracerPid:.0$' "/proc/$(cat pid)/status"
	await R "$(cat pid)"
	kill -TERM "$recorder"
	wait "$recorder" || status=$?
	[ "$status" = 137 ]
	holds s.json 'footer["exit"] == {"signal": 9}'
}

@test "a storm of signals: there are samples, and Ctrl-C ends it" {
	"$PMREC" -q --engine ptrace -o s.json -- "$PROGRAMS/odd-threads" storm 200 3>&- &
	local recorder=$! status=0
	await_lines 20 s.json
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	# Not its own end, of which the exit status would be 0.
	[ "$status" = 143 ]
	query s.json 'len(samples)' 'footer'
	holds s.json 'footer["exit"] == {"signal": 15}' 'len(samples) > 0' \
		'footer["stops"].get("root", 0) > 0.9 * len(samples)'
}

@test "a process whose leader has ended" {
	"$PMREC" -q --engine ptrace -o s.json -- "$PROGRAMS/odd-threads" leaderless
	query s.json 'len(samples)' 'footer'
	holds s.json 'len(samples) > 30' 'footer["stops"]["root"] > 0.9 * len(samples)' \
		'sum("main_is_gone" in chain(s) for s in samples) > 0.9 * len(samples)'
	target "$PROGRAMS/odd-threads" leaderless 60
	await Z "$pid"
	run --separate-stderr "$PMREC" --stacks -p "$pid"
	echo "$output" "$stderr"
	[ "$status" = 0 ]
	[[ $output == "process $pid: 1 thread, "*main_is_gone*start_thread* ]]
	[[ $output != *"ends here"* && $output != *"! "* ]]
}

@test "a program that a thread other than the leader executes" {
	"$PMREC" -q --engine ptrace -o s.json -- "$PROGRAMS/odd-threads" exec
	query s.json 'len(samples)' 'footer'
	holds s.json '0.9 < footer["events"][0]["period"] / footer["cpu_ns"] < 1.01' \
		'all(abs(sum(s["period"] for s in samples if f in chain(s)) / 1e9 - 1) < 0.2 for f in ("before_exec", "after_exec"))'
}

@test "few open files are enough for many threads" {
	# Until half of the threads have been seen, which takes long where others compute, too.
	cat >many.py <<-'END'
		import hashlib, re, threading, time
		data, done, until = bytes(1 << 16), False, time.monotonic() + 60
		def work():
		    while not done: hashlib.sha256(data).digest()
		threads = [threading.Thread(target=work) for _ in range(40)]
		for thread in threads: thread.start()
		while not done:
		    time.sleep(0.1)
		    tids = re.findall(r'"type":"sample".*?"tid":(\d+)', open("s.json").read())
		    done = len(set(tids)) > 20 or time.monotonic() > until
		for thread in threads: thread.join()
	END
	(ulimit -n 64 && "$PMREC" -q --engine ptrace --no-symbols -o s.json -- python3 many.py)
	query s.json 'len(samples)' 'footer'
	holds s.json 'len({s["tid"] for s in samples}) > 20' \
		'footer["stops"]["root"] > 0.9 * len(samples)'
}

@test "kill -9 of the recorder: the command runs on" {
	"$PMREC" -q --engine ptrace -o s.json -- sh -c 'echo $$ >pid; exec "$0" 60' "$PROGRAMS/split" 3>&- &
	local recorder=$!
	await_sample s.json
	targets+=("$(cat pid)")
	kill -KILL "$recorder"
	wait "$recorder" || true
	await R "$(cat pid)"
	grep -q '^TracerPid:.0$' "/proc/$(cat pid)/status"
}

@test "what the command leaves behind runs on untraced" {
	"$PMREC" -q --engine ptrace -o s.json -- \
		sh -c '"$0" 60 >/dev/null 2>&1 & echo $! >pid' "$PROGRAMS/split" 3>&-
	targets+=("$(cat pid)")
	await R "$(cat pid)"
	grep -q '^TracerPid:.0$' "/proc/$(cat pid)/status"
}

@test "a disk that fills up: the command does its work, 125" {
	need_root
	mkdir disk
	mount -t tmpfs -o size=16k tmpfs disk || skip "no tmpfs may be mounted"
	mounted=$PWD/disk
	run --separate-stderr "$PMREC" --engine ptrace -F 1000 -o disk/s.json -- \
		sh -c '"$1" 2 && touch done' - "$PROGRAMS/split"
	[ "$status" = 125 ]
	[[ $stderr == *"recording has stopped (No space left"* ]]
	[ -e done ]
}

# ---- engines ----------------------------------------------------------------------------

@test "where perf is denied ptrace is offered, and auto takes it" {
	run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PMREC" -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *seccomp*"try: "*"or: pmrec --engine ptrace -- touch"* ]]
	[ ! -e ran ]
	run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PMREC" -e page-faults -- touch ran
	[ "$status" = 125 ]
	[[ $stderr != *"--engine ptrace"* ]]
	run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PMREC" --engine auto -o s.json -- \
		"$PROGRAMS/split" 0.2 3
	[ "$status" = 3 ]
	[ "$(grep -c 'warning: .*seccomp.*ptrace samples instead' <<<"$stderr")" = 1 ]
	holds s.json 'events[0]["actual"] == "ptrace"' 'len(notes) == 2' 'len(samples) > 5'
	"$PMREC" -q --engine auto -e cpu-clock -o s.json -- "$PROGRAMS/split" 0.1 ||
		skip "perf is denied here"
	holds s.json 'events[0]["actual"] == "cpu-clock" or "ptrace" in notes[0]["text"]'
}

@test "what an engine cannot do is refused" {
	wrong() {
		local text=$1
		shift
		run --separate-stderr "$PMREC" "$@" touch ran
		[ "$status" = 125 ]
		[[ ${stderr_lines[0]} == "pmrec: "*"$text"* ]] || {
			echo "$stderr"
			return 1
		}
		[ "${#stderr_lines[@]}" -le 2 ]
		[ ! -e ran ]
		[ ! -e samples.json ]
	}
	wrong "perf, ptrace or auto" --engine uprobe
	wrong "CPU time" --engine ptrace -e page-faults
	wrong "CPU time" --engine ptrace -e cpu-clock,cycles
	wrong "CPU time" --engine ptrace -e cpu-clock:k
	wrong "use -F" --engine ptrace -c 1000
	wrong "dwarf and none" --engine ptrace --call-graph fp
	wrong "no buffers" --engine ptrace -m 64
	wrong "belongs to --engine ptrace" --verify
	wrong "belongs to --stacks" --unwinder libunwind
	wrong "own or libunwind" --stacks -p 1 --unwinder gdb
	wrong "runs no command" --stacks -p 1
	wrong "number of a process" --stacks -p 0
	wrong "number of a thread" --stacks -p 1 -t x
	run --separate-stderr "$PMREC" --engine ptrace -F 5000 -- true
	[ "$status" = 0 ]
	[[ $stderr == *"warning: -F is lowered to 1000 Hz"* ]]
}

@test "libunwind has the same opinion" {
	run --separate-stderr "$PMREC" --engine ptrace --verify -F 200 -o s.json -- \
		"$PROGRAMS/split" 1
	[ "$status" = 0 ]
	echo "$stderr"
	[[ $stderr =~ verify:\ ([0-9]+)\ stacks\ unwound\ by\ libunwind,\ too:\ ([0-9]+)\ equal ]]
	[ "${BASH_REMATCH[1]}" = "$(query s.json 'len(samples)')" ]
	[ "${BASH_REMATCH[1]}" -gt 50 ]
	# libunwind loses its way in the vDSO, where the program reads the clock.
	[ "$((BASH_REMATCH[2] * 100))" -ge "$((BASH_REMATCH[1] * 95))" ]
}

# ---- stacks of a running process --------------------------------------------------------

# target COMMAND...: runs in the background; its pid is in $pid.
target() {
	"$@" >/dev/null 2>&1 3>&- &
	pid=$!
	targets+=("$pid")
}

@test "--stacks prints each thread's stack" {
	target "$PROGRAMS/sample/sample" 60
	until [ "$(ls "/proc/$pid/task" | wc -l)" = 2 ]; do sleep 0.05; done
	# Until both are at work.
	for tid in $(ls "/proc/$pid/task"); do
		until_true has_spent 5 "$pid" "$tid"
	done
	run --separate-stderr "$PMREC" --stacks -p "$pid"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == "process $pid: 2 threads, stood still for "* ]]
	[ "$(grep -c '^thread ' <<<"$output")" = 2 ]
	grep -q "^thread $pid \"sample\", " <<<"$output"
	grep -q '^thread [0-9]* "helper", ' <<<"$output"
	[ "$(grep -cE '^ +[0-9]+  _start +sample$' <<<"$output")" = 1 ]
	[ "$(grep -cE '^ +[0-9]+  start_thread +libc' <<<"$output")" = 1 ]
	[ "$(grep -cE '  work +sample +sample.c:[0-9]+$' <<<"$output")" = 2 ]
	[[ $output != *"ends here"* ]]
	run --separate-stderr "$PMREC" --stacks -p "$pid" --no-symbols -t "$pid"
	[ "$(grep -c '^thread ' <<<"$output")" = 1 ]
	[[ $output == *"  0x"* && $output != *work* ]]
	run --separate-stderr "$PMREC" --stacks -v -p "$pid"
	[[ $output == */tests/programs/sample/sample* ]]
	grep -q '^State:.[RS]' "/proc/$pid/status"
	grep -q '^TracerPid:.0$' "/proc/$pid/status"
}

@test "--stacks cuts long names, and with -v has them whole" {
	[ -x "$PROGRAMS/self-throw" ] || skip "there is no C++ compiler"
	PMSELF=off target "$PROGRAMS/self-throw" 60
	until [ "$(ls "/proc/$pid/task" | wc -l)" = 5 ]; do sleep 0.05; done
	# Until the first thread waits for the others.
	await S "$pid"
	LC_ALL=C "$PMREC" --stacks -p "$pid" >cut
	LC_ALL=C "$PMREC" --stacks -v -p "$pid" >whole
	[ "$(wc -L <cut)" -le 80 ]
	[ "$(wc -L <whole)" -gt 80 ]
	grep -qE '  await_all<\.\.\.>  ' cut
	grep -qE '  await_all<std::vector<std::thread, .*> *>  ' whole
}

@test "--stacks agrees with eu-stack on the functions of a sleeping program" {
	command -v eu-stack >/dev/null || skip "eu-stack is not installed"
	target sleep 60
	until_true executes "$pid" "$(type -P sleep)"
	await S "$pid"
	"$PMREC" --stacks -v -p "$pid" | sed -n 's/^ *[0-9]*  0*\([0-9a-f]*\)  .*/0x\1/p' >ours
	[ "$(wc -l <ours)" -gt 3 ]
	eu-stack -p "$pid" | sed -n 's/^#[0-9]* *0x0*\([0-9a-f]*\).*/0x\1/p' >theirs
	diff ours theirs
}

@test "--stacks by libunwind, and compared with it" {
	target sleep 60
	until_true executes "$pid" "$(type -P sleep)"
	await S "$pid"
	"$PMREC" --stacks -p "$pid" | tail -n +2 >ours
	"$PMREC" --stacks --unwinder libunwind -p "$pid" | tail -n +2 >theirs
	[ "$(wc -l <ours)" -gt 5 ]
	diff ours theirs
	run --separate-stderr "$PMREC" --stacks --verify -p "$pid"
	[ "$status" = 0 ]
	[[ $stderr == *"verify: 1 stacks unwound by libunwind, too: 1 equal"* ]]
}

@test "--stacks of many threads prints equal stacks once" {
	cat >many.py <<-'END'
		import threading, time
		wait = threading.Barrier(1000)
		for _ in range(200):
		    threading.Thread(target=wait.wait).start()
		while wait.n_waiting < 200:
		    time.sleep(0.01)
		print("ready", flush=True)
	END
	python3 many.py >out 3>&- &
	pid=$!
	targets+=("$pid")
	until_true grep -q ready out
	sleep 0.3
	run --separate-stderr "$PMREC" --stacks -p "$pid"
	[ "$status" = 0 ]
	[[ $output == "process $pid: 201 threads"* ]]
	grep -qE '^(19[0-9]|200) threads ' <<<"$output"
	[ "$(wc -l <<<"$output")" -lt 400 ]
}

@test "--stacks of a stopped process leaves it stopped" {
	target "$PROGRAMS/split" 60
	# Until it is in main: it has used some CPU time.
	until grep -q split "/proc/$pid/comm" && [ "$(cut -d' ' -f14 "/proc/$pid/stat")" -gt 5 ]; do
		sleep 0.05
	done
	kill -STOP "$pid"
	await T "$pid"
	run --separate-stderr "$PMREC" --stacks -p "$pid"
	[ "$status" = 0 ]
	[[ $output == *'"split", stopped'*main* ]]
	sleep 0.1
	await T "$pid"
	kill -CONT "$pid"
	await R "$pid"
}

@test "--stacks of a process in another mount namespace" {
	need_root
	unshare -m true || skip "no namespace may be made"
	mkdir hidden
	target unshare -m sh -c 'mount -t tmpfs tmpfs hidden && cp "$0" hidden/own-split && exec ./hidden/own-split 60' \
		"$PROGRAMS/split"
	until_true grep -q own-split "/proc/$pid/comm"
	# Until it is in main.
	until_true has_spent 5 "$pid"
	[ ! -e hidden/own-split ]
	run --separate-stderr "$PMREC" --stacks -p "$pid"
	echo "$output"
	[ "$status" = 0 ]
	grep -qE '  rounds +own-split +split.c:' <<<"$output"
}

@test "--stacks of a zombie says so" {
	# A shell that has become sleep does not wait for its child.
	target sh -c 'sleep 1 & echo $! >zombie; exec sleep 60'
	until [ -s zombie ]; do sleep 0.05; done
	await Z "$(cat zombie)"
	run --separate-stderr "$PMREC" --stacks -p "$(cat zombie)"
	[ "$status" = 125 ]
	[[ $stderr == *"has ended: it is a zombie"* ]]
}

@test "--stacks: Ctrl-Z does not stop it while it holds others" {
	target "$PROGRAMS/split" 60
	# Many times, for the hold is short: the target runs on, and nobody is left stopped.
	for i in {1..20}; do
		"$PMREC" --stacks -p "$pid" >out 3>&- &
		sleep "0.00$((i % 10))"
		# It may have ended before either signal.
		kill -TSTP $! || true
		for _ in 1 2 3 4 5; do
			sleep 0.005
			# Who has stopped cannot let anybody go.
			grep -q '^State:.T' "/proc/$!/status" 2>/dev/null || continue
			run grep '^State:.t' "/proc/$pid/status"
			[ "$status" = 1 ]
		done
		kill -CONT $! || true
		wait $!
	done
}

@test "--stacks: a refusal is explained" {
	run --separate-stderr "$PMREC" --stacks -p 2147483600
	[ "$status" = 125 ]
	[[ $stderr == *"no process 2147483600"* ]]
	run --separate-stderr "$PMREC" --stacks -p $$ -t 2147483600
	[ "$status" = 125 ]
	[[ $stderr == *"has no thread 2147483600"* ]]
	run --separate-stderr "$PMREC" --stacks
	[ "$status" = 125 ]
	[[ $stderr == *"of which process"*"pmrec --stacks -p PID"* ]]
	need_nobody
	target "$PROGRAMS/split" 60
	run --separate-stderr nobody ./pmrec --stacks -p "$pid"
	[ "$status" = 125 ]
	[[ $stderr == *"process of user 0"*"try: run as root"* ]]
}
