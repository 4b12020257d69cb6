#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What goes wrong around a recording: killed recorders and targets, files that take no more,
# few files, processes and little memory, storms of tasks, numbers used twice, programs that do
# what few do. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.
# FAULT_SEED=N repeats what was random; FAULT_KILLS=N and FAULT_STORM=N are for more of it.

load attach.bash

# The build may be in a folder that nobody but its owner can enter, and so is this one.
need_nobody() {
	need_root
	chmod 777 .
	cp "$PMREC" "$PROGRAMS/split" "$PROGRAMS/storm" .
	PMREC=$PWD/pmrec PROGRAMS=.
}

# small_disk KB: $disk is full soon.
small_disk() {
	need_root
	mkdir disk
	mount -t tmpfs -o size="$1"k tmpfs disk || skip "no tmpfs may be mounted"
	mounted=$PWD/disk
}

# ---- killed at random moments -----------------------------------------------------------

@test "kill -9 at random moments: what there is can be reported, nobody stays behind" {
	python3 "$SOURCE_DIR/tests/cli/kill-at-random.py" "${FAULT_SEED-}" "${FAULT_KILLS-12}" \
		"$PMREC" "$PMREPORT" "$PROGRAMS"
}

# ---- outputs that fail ------------------------------------------------------------------

# Burns until it reads in the file err that recording has stopped, and then some.
until_stopped='for i in $(seq 200); do "$0" 0.1; ! grep -q "recording has stopped" err || break; done
	"$0" 0.1; echo ended >ended'

# stops REASON OPTION...: the recording does, the command runs on to its end.
stops() {
	local reason=$1 status=0
	shift
	rm -f ended
	"$PMREC" -F 900 "$@" -- sh -c "$until_stopped" "$PROGRAMS/split" 2>err || status=$?
	cat err
	[ "$status" = 125 ]
	grep -qF "recording has stopped ($reason" err
	[ -s ended ]
}

# is_cut FILE: reportable, and said to be cut.
is_cut() {
	run --separate-stderr "$PMREPORT" "$1"
	[ "$status" = 0 ]
	[[ $stderr == *"$1 is cut short"* ]]
}

@test "a full disk: plain, compressed and --raw" {
	small_disk 64
	stops "No space left" -o disk/s.json
	is_cut disk/s.json
	rm disk/s.json
	stops "No space left" -o s.json --raw disk/raw
	is_cut s.json
	rm disk/raw
	umount disk
	mount -t tmpfs -o size=8k tmpfs disk
	stops "No space left" -o disk/s.json.zst
	is_cut disk/s.json.zst
}

@test "a full disk under snapshots: those that were complete stay so" {
	small_disk 100
	# A snapshot is of a hundred samples on each CPU at most: there is room for some of them.
	"$PMREC" -q -e cpu-clock -F 4000 -m 32 --stack-bytes 1024 --overwrite -o disk/s.json -- \
		"$PROGRAMS/split" 60 2>err 3>&- &
	local recorder=$! file status=0
	pids="$pids $recorder"
	until_true begun disk/s.json
	# Each is a file of its own, until there is no room for one.
	until_true sh -c "kill -USR2 $recorder 2>/dev/null; grep -q 'recording has stopped (.*No space' err"
	# Helpers of the recorder may end meanwhile.
	kill -KILL $(cat "/proc/$recorder/task/$recorder/children") || true
	wait "$recorder" || status=$?
	[ "$status" = 125 ]
	local complete=0
	for file in disk/s-*.json; do
		holds "$file" 'footer is not None'
		"$PMREPORT" "$file" >/dev/null
		complete=$((complete + 1))
	done
	[ "$complete" -gt 0 ]
	"$PMREPORT" disk/s.json >/dev/null || [ ! -e disk/s.json ] || [ ! -s disk/s.json ]
}

@test "a device that takes nothing, and a pipe that is closed" {
	local status=0
	stops "No space left" -o s.json --raw /dev/full
	is_cut s.json
	rm ended
	bash -c '"$1" -e cpu-clock -F 4000 -o - -- sh -c "$2" "$3" 2>err | head -c 1000 >head
		exit "${PIPESTATUS[0]}"' - "$PMREC" "$until_stopped" "$PROGRAMS/split" || status=$?
	[ "$status" = 125 ]
	[ "$(stat -c %s head)" = 1000 ]
	[ -s ended ]
	grep -qF "has stopped (Broken pipe)" err
	grep -qF "standard output: the program that reads this pipe has ended" err
}

@test "a limit on the size of files is a full disk, for every engine" {
	(
		ulimit -f 20
		stops "File too large" -o s.json
		grep -qF "try: ulimit -f unlimited" err
		stops "File too large" --engine ptrace -o p.json
	)
	is_cut s.json
	is_cut p.json
	# The command has the signal as before.
	run sh -c 'ulimit -f 20; exec "$0" -q -o /dev/null -- sh -c "head -c 100000 /dev/zero >big"' "$PMREC"
	[ "$status" = $((128 + $(kill -l XFSZ))) ]
	[ "$(stat -c %s big)" -lt 100000 ]
}

# ---- limits -----------------------------------------------------------------------------

@test "a reader that pauses costs no samples" {
	mkfifo pipe
	{ sleep 2 && cat; } <pipe >got.json &
	"$PMREC" -q -e cpu-clock -F 4999 -o pipe -- "$PROGRAMS/split" 3
	wait
	holds got.json "footer['lost'] == 0" "len(samples) == footer['samples'] > 5000"
}

@test "a reader that never reads does not keep the recorder from ending" {
	mkfifo pipe
	sleep 1000 <pipe 3>&- &
	pids="$pids $!"
	"$PMREC" -q -e cpu-clock -F 4999 -o pipe -- bash -c 'echo $$ >pid; exec "$@"' bash \
		"$PROGRAMS/split" 60 2>err 3>&- &
	local recorder=$! status=0
	pids="$pids $recorder"
	# More than the 64 KB that a pipe holds, which are the lines of some hundred samples.
	until_true test -s pid
	spends 100 "$(cat pid)"
	kill -TERM "$recorder"
	until_true has_ended "$recorder"
	wait "$recorder" || status=$?
	cat err
	[ "$status" -ge 125 ]
	grep -q "nobody took more bytes" err
}

@test "64 open files, 40 libraries, 50 threads" {
	tee lib{1..40}.so <"$PROGRAMS/libdlopen-many.so" >/dev/null
	(ulimit -n 64 && "$PMREC" -q -o s.json -- "$PROGRAMS/odd-life" libraries 50 ./lib*.so)
	holds s.json 'footer["exit"] == {"code": 0}' 'len(samples) > 500' \
		'len({s["tid"] for s in samples if "odd_life" in chain(s)}) >= 45'
	(ulimit -n 64 && "$PMREC" -q --per-task -o s.json -- "$PROGRAMS/odd-life" libraries 50 ./lib*.so)
	holds s.json 'footer["exit"] == {"code": 0}' 'len(samples) > 500'
}

@test "more programs than files may be open" {
	local i
	for i in {1..60}; do
		cp "$PROGRAMS/split" "p$i"
	done
	# A third of 80 files may be those of programs. The first program comes again after all others.
	(
		ulimit -n 80
		"$PMREC" -q -o s.json -- sh -c \
			'for i in $(seq 60) 1; do ./p$i 0.03 & mine=$!; ls /proc/$PPID/fd | wc -l >>fds; wait $mine; done'
	)
	holds s.json 'len({s["pid"] for s in samples if "rounds" in chain(s)}) > 30' \
		'sum("rounds" in chain(s) for s in samples) > 800' \
		'sum("stop" in s for s in leaves_in(*("p%d" % i for i in range(61)))) <= 0.01 * len(samples)' \
		'not any("could not be read" in n["text"] for n in notes)'
	[ "$(sort -n fds | tail -n 1)" -lt 80 ]
}

@test "a file that was closed to make room is read again, and none in its place" {
	local i
	for i in {1..40}; do
		cp "$PROGRAMS/split" "p$i"
	done
	cp "$PROGRAMS/split" kept
	cp "$PROGRAMS/split" replaced
	cp "$PROGRAMS/deep" other
	(
		ulimit -n 60
		"$PMREC" -q -o s.json -- sh -c '
			# The CPU time of a process, in hundredths of a second.
			spends() {
				while [ "$(cut -d " " -f 14 "/proc/$1/stat")" -lt "$2" ]; do sleep 0.05; done
			}
			./kept 60 & kept=$!
			./replaced 60 & replaced=$!
			echo "$kept $replaced" >pids
			spends $kept 20; spends $replaced 20
			kill -STOP $kept $replaced
			for i in $(seq 40); do ./p$i 0.02; done
			mv other replaced
			kill -CONT $kept $replaced
			spends $kept 50; spends $replaced 50
			kill $kept $replaced
			exit 0'
	)
	read -r kept replaced <pids
	# Root reads what the process has mapped. For others that file is gone.
	# The program's own code: its execve(2) and what the loader does first are not the question, and
	# take any number of samples. One or two of its stacks may have been read while the file was
	# closed.
	holds s.json "sum(s['pid'] == $kept and 'rounds' in chain(s) for s in samples) > 20" \
		"{s['pid'] for s in leaves_in('kept')} == {$kept}" \
		'sum("stop" in s for s in leaves_in("kept")) <= 2' \
		"not any(s['pid'] == $replaced and 'down' in chain(s) for s in samples)" \
		"sum(s['pid'] == $replaced for s in samples) > 20"
	[ "$(id -u)" != 0 ] ||
		holds s.json "{s['pid'] for s in leaves_in('replaced')} == {$replaced}" \
			'sum("stop" in s for s in leaves_in("replaced")) <= 2'
}

@test "64 open files and a running process of more threads are refused with the number" {
	"$PROGRAMS/storm" crowd 50 60000000 >used 3>&- &
	local target=$!
	pids="$pids $target"
	until_true sh -c "[ \$(ls /proc/$target/task | wc -l) = 51 ]"
	run --separate-stderr sh -c 'ulimit -n 64; exec "$0" --per-task -o s.json -p "$1" --duration 1s' "$PMREC" "$target"
	kill -KILL "$target"
	[ "$status" = 125 ]
	[[ $stderr == *"102 file descriptors are needed"*"hard limit is 64"*"prlimit"* ]]
	[ ! -e s.json ]
}

@test "little memory" {
	[ -z "${ASAN_OPTIONS-}" ] || skip "a sanitizer's memory has no limit"
	local mb
	for mb in 300 60; do
		(ulimit -v $((mb * 1024)) && "$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.2)
		holds s.json 'split_is_true()' 'footer["exit"] == {"code": 0}'
	done
	for mb in 24 16 8; do
		rm -f s.json
		run sh -c 'ulimit -v $(($1 * 1024)); exec "$0" -o s.json -- "$2" 0.1' "$PMREC" "$mb" "$PROGRAMS/split"
		[ "$status" -le 127 ]
		[ ! -e s.json ] || "$PMREPORT" s.json >/dev/null
	done
}

@test "few processes" {
	need_nobody
	# A leak sanitizer would need a thread of its own.
	run -125 nobody env ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" \
		prlimit --nproc=0:0 ./pmrec -o s.json -- ./split 0.2
	[[ $output == *"cannot make a process: "* ]]
	[ ! -e s.json ]
}

# ---- many tasks -------------------------------------------------------------------------

# storm KIND COUNT MICROSECONDS OPTION...: nothing is lost, or else it is said. Few samples may be
# fewer by chance: by four standard deviations (of a binomial distribution sqrt(n) / 2 at most), and
# by the period that has begun on each CPU.
storm() {
	local kind=$1 count=$2 us=$3
	local due='footer["cpu_ns"] * 999 / 1e9'
	shift 3
	"$PMREC" -q -e cpu-clock -F 999 "$@" -o s.json -- "$PROGRAMS/storm" "$kind" "$count" "$us" >used
	holds s.json 'footer["exit"] == {"code": 0}' \
		'len(samples) == footer["samples"] == footer["events"][0]["samples"]' \
		'sum(footer["stops"].values()) == len(samples)' \
		'footer["lost"] == 0 or any("were lost" in n["text"] for n in notes)' \
		"footer['events'][0]['period'] >= 0.8 * footer['cpu_ns'] or len(samples) >= $due - 2 * ($due) ** 0.5 - header['host']['cpus'] or "'any("stand for" in n["text"] or "lost" in n["text"] for n in notes)'
}

@test "thousands of threads, hundreds of processes: recorded, or else said" {
	local option n=${FAULT_STORM-300}
	for option in --stack-bytes=8192 --per-task; do
		storm crowd "$n" 400 "$option"
		storm threads "$n" 400 "$option"
		storm processes $((n / 3)) 600 "$option"
		storm tree $((n / 5)) 2000 "$option"
	done
}

@test "two hundred programs one after the other in one process" {
	local option
	for option in --stack-bytes=8192 --per-task; do
		"$PMREC" -q "$option" -e cpu-clock -o s.json -- "$PROGRAMS/odd-life" exec 200
		holds s.json 'sum(c.startswith("stage-") for c in comms) == 201' \
			'footer["exit"] == {"code": 0}' 'mostly_in("odd_life")' \
			'len({s["pid"] for s in samples}) == 1'
	done
}

# ---- numbers that come again ------------------------------------------------------------

@test "two programs with the same number have names of their own" {
	need_root
	unshare -p -f --mount-proc sh -c 'echo 100 >/proc/sys/kernel/ns_last_pid' ||
		skip "no PID namespace with a ns_last_pid that may be written"
	objcopy --redefine-sym sixty=first "$PROGRAMS/split" first
	objcopy --redefine-sym sixty=second "$PROGRAMS/split" second
	local option
	for option in --stack-bytes=8192 --per-task; do
		# At the same addresses, too.
		setarch -R unshare -p -f --mount-proc "$PMREC" -q "$option" -e cpu-clock -o s.json -- \
			"$PROGRAMS/odd-life" reuse ./first ./second >number
		holds s.json 'footer["exit"] == {"code": 0}' \
			"{s['pid'] for s in samples if 'first' in chain(s)} == {s['pid'] for s in samples if 'second' in chain(s)} == {$(cat number)}" \
			'20 < self_share("first", "rounds") < 40' '20 < self_share("second", "rounds") < 40' \
			'max(s["time"] for s in samples if "first" in chain(s)) < min(s["time"] for s in samples if "second" in chain(s))'
	done
}

# ---- odd programs -----------------------------------------------------------------------

@test "a program that closes all its files" {
	"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/odd-life" close
	holds s.json 'mostly_in("odd_life")' 'footer["exit"] == {"code": 0}'
}

@test "a program that gives itself a name of control characters" {
	"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/odd-life" comm
	holds s.json 'mostly_in("odd_life")' 'any(c.startswith("\x1b[31m\n\r\t\x7f") for c in comms)'
	"$PMREPORT" s.json --by thread >out
	run ! grep -q $'[\e\r\x7f]' out
}

@test "a program that removes itself, and one without a root" {
	need_root
	cp "$PROGRAMS/odd-life" mortal
	"$PMREC" -q -e cpu-clock -o s.json -- ./mortal unlink
	holds s.json 'mostly_in("odd_life")'
	[ ! -e mortal ]
	mkdir jail
	"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/odd-life" chroot jail
	holds s.json 'mostly_in("odd_life")' 'footer["exit"] == {"code": 0}'
}

@test "a set-user-ID program: nobody is told that there is nothing, root has it" {
	need_nobody
	cp split privileged
	chmod 4755 privileged
	nobody "$PMREC" -e cpu-clock -o s.json -- ./privileged 0.3 2>err
	nobody "$PMREC" -e cpu-clock -o other.json -- sh -c './split 0.2; ./privileged 0.5' 2>>err
	if findmnt -no OPTIONS -T . | grep -qw nosuid; then
		skip "set-user-ID does nothing on this file system"
	fi
	grep -q "no samples, though the command used .* (set-user-ID)" err
	grep -q "the samples stand for .* of .* (set-user-ID)" err
	holds s.json 'len(samples) == 0' 'any("set-user-ID" in n["text"] for n in notes)'
	"$PMREPORT" s.json >out
	grep -q "set-user-ID" out || tr '\n' ' ' <out | grep -q "set-user-ID"
	"$PMREC" -q -e cpu-clock -o s.json -- ./privileged 0.3
	holds s.json 'split_is_true()'
}
