#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The recorder as its users meet it. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
}

teardown() {
	if [ -n "${mounted-}" ]; then
		umount "$mounted"
	fi
}

need_nobody() {
	need_root
	# The build may be in a folder that nobody but its owner can enter.
	chmod 777 .
	cp "$PMREC" "$PROGRAMS/split" .
	PMREC=$PWD/pmrec
}

# ---- what is recorded -------------------------------------------------------------------

@test "the header tells what was asked and what was done" {
	"$PMREC" -q -F 500 -o s.json -- "$PROGRAMS/split" 0.1
	holds s.json 'header["command"][1:] == ["0.1"]' 'header["host"]["cpus"] >= 1' \
		'header["options"]["call_graph"] == "dwarf"' \
		'header["options"]["stack_bytes"] == 40960' \
		'events[0]["requested"] == "cycles" and events[0]["freq"] == 500'
}

@test "the footer's totals are those of the lines" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.3 3 || [ $? = 3 ]
	holds s.json 'footer["samples"] == len(samples)' \
		'footer["events"][0]["period"] == sum(s["period"] for s in samples)' \
		'sum(footer["stops"].values()) == len(samples)' \
		'footer["exit"] == {"code": 3}' \
		'footer["duration_ns"] > 0 and footer["cpu_ns"] > 200000000'
}

# bats test_tags=guest
@test "forked children are recorded with their names" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/forker"
	holds s.json 'comms >= {"forker", "kid-0", "kid-1", "kid-2"}' \
		'len({s["pid"] for s in samples}) >= 3'
}

# bats test_tags=guest
@test "threads are recorded with their names" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/threads"
	holds s.json 'comms >= {"threads", "worker-0", "worker-1", "worker-2", "worker-3"}' \
		'len({s["tid"] for s in samples}) >= 4' 'len({s["pid"] for s in samples}) == 1'
}

# bats test_tags=guest
@test "a program that executes others is followed" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/exec-chain" 2
	holds s.json 'comms >= {"exec-chain", "stage-2", "stage-1", "stage-0"}' \
		'len({s["pid"] for s in samples}) == 1' \
		'sum("main" in chain(s) for s in samples) > 200'
}

@test "several events, each with its own samples" {
	"$PMREC" -q -e cpu-clock,page-faults -o s.json -- "$PROGRAMS/split" 0.3
	holds s.json '[e["name"] for e in events] == ["cpu-clock", "page-faults"]' \
		'{s["event"] for s in samples} == {0, 1}' \
		'[e["samples"] for e in footer["events"]] == [sum(s["event"] == i for s in samples) for i in (0, 1)]'
}

# bats test_tags=guest
@test ":u leaves the kernel out, without it the kernel is there" {
	need_root
	# A second of CPU time, after which SIGXCPU ends it. How fast it is depends on the machine: an
	# emulated one takes 10 s for 12 GB.
	dd=(sh -c 'ulimit -S -t 1; exec dd if=/dev/zero of=/dev/null bs=4M status=none')
	run -152 "$PMREC" -q -e cpu-clock:u -o u.json -- "${dd[@]}"
	run -152 "$PMREC" -q -e cpu-clock -o k.json -- "${dd[@]}"
	holds u.json '"kernel" not in {f["how"] for f in frames}' \
		'events[0]["modifiers"] == "u"'
	holds k.json '"kernel" in {f["how"] for f in frames}' \
		'"[kernel]" in {m["path"] for m in modules}' \
		'any("stop" not in s and len(chain(s)) > 5 for s in samples)'
}

# bats test_tags=guest
@test "a fixed period is the weight of each sample" {
	"$PMREC" -q -e cpu-clock -c 5000000 -o s.json -- "$PROGRAMS/split" 0.5
	holds s.json 'events[0]["period"] == 5000000 and "freq" not in events[0]' \
		'{s["period"] for s in samples} == {5000000}'
}

@test "--no-symbols leaves addresses" {
	"$PMREC" -q --no-symbols -o s.json -- "$PROGRAMS/split" 0.1
	holds s.json 'len(samples) > 0 and names == {}' \
		'own_notes[-1]["text"] == "names were left out (--no-symbols)"'
	"$PMREPORT" s.json >out
	grep -qF "! names were left out (--no-symbols)" out
	[[ $(<out) != *stripped* ]]
}

@test "without a counter for cycles exactly one warning tells the substitute" {
	run --separate-stderr "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
	[ "$(query s.json 'events[0]["name"]')" = cpu-clock ] || skip "this machine has a PMU"
	[ "$(calm <<<"$stderr" | grep -c warning:)" = 1 ]
	[[ $stderr == *"cycles"*"cpu-clock"* ]]
	holds s.json 'len(own_notes) == 1 and "cpu-clock" in own_notes[0]["text"]'
}

# ---- the output -------------------------------------------------------------------------

@test "the summary is one line that names the next command" {
	run --separate-stderr "$PMREC" -e cpu-clock -o s.json -- "$PROGRAMS/split" 0.5
	[ "$output" = "" ]
	stderr=$(calm <<<"$stderr")
	[ "$(wc -l <<<"$stderr")" = 1 ]
	[[ $stderr =~ ^pmrec:\ [0-9]+\ samples,\ 0\ lost,\ [0-9.]+%\ rooted,\ [0-9.]+\ KB\ in\ s.json\;\ next:\ pmreport\ s.json$ ]]
}

@test "the file is samples.json unless told otherwise" {
	"$PMREC" -q -- "$PROGRAMS/split" 0.1
	holds samples.json 'len(samples) > 0'
}

@test "standard output carries the recording alone" {
	"$PMREC" -o - -- sh -c 'echo to-stdout; exec "$0" 0.1' "$PROGRAMS/split" \
		>s.json 2>err
	holds s.json 'footer["samples"] == len(samples) > 0'
	grep -qx to-stdout err
	grep -q ' to standard output$' err
}

@test "the command keeps its standard input and output" {
	run --separate-stderr bash -c 'echo word | "$1" -q -- cat' - "$PMREC"
	[ "$output" = word ]
	[ "$stderr" = "" ]
}

@test "a name in .zst compresses" {
	"$PMREC" -q -o s.json.zst -- "$PROGRAMS/split" 0.3
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.3
	[ "$(head -c 4 s.json.zst | od -An -tx1)" = " 28 b5 2f fd" ]
	[ "$(stat -c %s s.json.zst)" -lt "$(($(stat -c %s s.json) / 2))" ]
	"$PMREPORT" s.json.zst | grep -q sixty
}

@test "only the owner may read the file" {
	(umask 0 && "$PMREC" -q -- true)
	[ "$(stat -c %a samples.json)" = 600 ]
}

@test "a symbolic link is replaced, what it leads to is not touched" {
	echo precious >victim
	ln -s victim samples.json
	"$PMREC" -q -- true
	[ "$(cat victim)" = precious ]
	[ ! -L samples.json ]
}

@test "nothing is printed with --quiet" {
	run --separate-stderr "$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	[ "$output$stderr" = "" ]
}

@test "what it cost is printed with --verbose" {
	run --separate-stderr "$PMREC" -v -o s.json -- "$PROGRAMS/split" 0.1
	[[ $stderr == *"own CPU time"* && $stderr == *"999 Hz"* ]]
}

# ---- exit status ------------------------------------------------------------------------

@test "the command's exit status is passed through" {
	run "$PMREC" -q -- "$PROGRAMS/split" 0.01 0
	[ "$status" = 0 ]
	run "$PMREC" -q -- "$PROGRAMS/split" 0.01 3
	[ "$status" = 3 ]
	run "$PMREC" -q -- sh -c 'kill -KILL $$'
	[ "$status" = 137 ]
}

# bats test_tags=guest
@test "a crash is passed through, and the file is complete" {
	run "$PMREC" -q -- "$PROGRAMS/crash"
	[ "$status" = 139 ]
	holds samples.json 'footer["exit"] == {"signal": 11}' 'len(samples) > 100' \
		'any(chain(s)[:8] == ["step", "fall"] + 6 * ["lean"] for s in samples)'
}

@test "a command that does not exist: 127, and no file" {
	run -127 "$PMREC" -- no-such-command
	[[ $output == *no-such-command* ]]
	run -127 "$PMREC" -- ./no-such-file
	printf '#!/no/such/interpreter\n' >script
	chmod +x script
	run -127 "$PMREC" -- ./script
	[[ $output == *"/no/such/interpreter"* ]]
	[ ! -e samples.json ]
}

@test "a command that cannot be run: 126, and no file" {
	echo text >plain
	run "$PMREC" -- ./plain
	[ "$status" = 126 ]
	[[ $output == *plain* ]]
	run "$PMREC" -- /
	[ "$status" = 126 ]
	printf '\x7fELF\x02\x01\x01\0\0\0' >broken
	chmod +x broken
	run "$PMREC" -- ./broken
	[ "$status" = 126 ]
	[ ! -e samples.json ]
}

@test "a mistyped command does not cost the file of the run before" {
	echo before >samples.json
	run -127 "$PMREC" -- no-such-command
	[ "$(cat samples.json)" = before ]
}

@test "a command that ends at once leaves a valid file" {
	run --separate-stderr "$PMREC" -- true
	[ "$status" = 0 ]
	holds samples.json 'footer["exit"] == {"code": 0}' '"true" in comms'
}

@test "no samples at all is said, with the reason" {
	run --separate-stderr "$PMREC" -e cpu-clock -F 1 -- true
	[ "$status" = 0 ]
	[[ $stderr == *"no samples"* ]]
	holds samples.json 'samples == []' 'footer["samples"] == 0' 'len(own_notes) == 1'
	"$PMREPORT" samples.json >/dev/null
	# What was counted, though too seldom, is not said to be none.
	run --separate-stderr "$PMREC" -e page-faults -c 1000000000 -- true
	[ "$status" = 0 ]
	[[ $stderr == *"no samples: page-faults was counted "[1-9]*" times, too few"* ]]
	run --separate-stderr "$PMREC" -e alignment-faults -c 1 -- true
	[ "$status" = 0 ]
	[[ $stderr == *"no samples: the kernel counted nothing"* ]]
}

# ---- wrong use --------------------------------------------------------------------------

# wrong TEXT ARGUMENT...: is refused with one clear line, before anything runs.
wrong() {
	local text=$1
	shift
	run --separate-stderr "$PMREC" "$@" -- touch ran
	[ "$status" = 125 ]
	[[ ${stderr_lines[0]} == "pmrec: "*"$text"* ]] || {
		echo "$stderr"
		return 1
	}
	[ "${#stderr_lines[@]}" -le 2 ]
	[ ! -e ran ]
	[ ! -e samples.json ]
}

@test "wrong use is told in one line" {
	wrong "did you mean --stack-bytes?" --stakc-bytes 8
	wrong "unknown option -Z" -Z
	wrong "8 to 65528" --stack-bytes 65529
	wrong "8 to 65528" --stack-bytes 0
	wrong "8 to 65528" --stack-bytes -8
	wrong "8 to 65528" --call-graph dwarf,99999
	wrong "dwarf, dwarf,BYTES, fp, lbr or none" --call-graph dwarfs
	wrong "power of two" -m 3
	wrong "power of two" -m 0
	wrong "power of two" -m 5K
	wrong "samples a second" -F 0
	wrong "samples a second" -F fast
	wrong "number of events" -c 0
	wrong "exclude each other" -F 99 -c 99
	wrong "exclude each other" --raw x.raw --off-cpu
	wrong "needs a name" -o ""
	run "$PMREC"
	[ "$status" = 125 ]
	[[ $output == *"no command"* ]]
	run "$PMREC" -o
	[ "$status" = 125 ]
	[[ $output == *"needs a value"* ]]
}

@test "an unknown event is answered with near names" {
	wrong "cycles" -e cycels
	wrong "page-faults" -e cpu-clock,page-fualts
	wrong "" -e ""
	wrong "" -e cycles:z
}

@test "options behind the command are the command's" {
	"$PMREC" -q true -o other.json -F 0
	[ ! -e other.json ]
	holds samples.json 'header["command"] == ["true", "-o", "other.json", "-F", "0"]'
}

@test "stack bytes are rounded up to what the kernel takes" {
	"$PMREC" -q --stack-bytes 1001 -- true
	holds samples.json 'header["options"]["stack_bytes"] == 1008'
}

@test "a buffer size is taken in pages and in bytes" {
	"$PMREC" -q -m 512 -- true
	holds samples.json "header['options']['ring_bytes'] == 512 * $(getconf PAGESIZE)"
	rm samples.json
	"$PMREC" -q -m 1M -- true
	holds samples.json 'header["options"]["ring_bytes"] == 1 << 20'
}

@test "help names every option of the manual, and all events" {
	run "$PMREC" --help
	[ "$status" = 0 ]
	[[ $output == *--stack-bytes* && $output == *page-faults* ]]
	run "$PMREC" --version
	[[ $output =~ ^pmrec\ [0-9]+\.[0-9]+ ]]
}

# ---- no permission ----------------------------------------------------------------------

# bats test_tags=guest
@test "a seccomp filter is named as the cause, with the fix" {
	run --separate-stderr "$PROGRAMS/deny-perf" 1 "$PMREC" -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *seccomp*"try: "*PERFMON* ]]
	[ ! -e ran ]
	[ ! -e samples.json ]
}

# bats test_tags=guest
@test "kernel samples that paranoid forbids: cause, value and fix" {
	need_nobody
	local level
	level=$(cat /proc/sys/kernel/perf_event_paranoid)
	[ "$level" -ge 2 ] || skip "perf_event_paranoid is $level here"
	run --separate-stderr nobody "$PMREC" -e cpu-clock:k -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"perf_event_paranoid is $level"*"try: "*sysctl* ]]
	[ ! -e ran ]
}

@test "without :k the kernel is left out, with one warning" {
	need_nobody
	local level
	level=$(cat /proc/sys/kernel/perf_event_paranoid)
	[ "$level" = 2 ] || skip "perf_event_paranoid is $level here"
	run --separate-stderr nobody "$PMREC" -e cpu-clock -o s.json -- ./split 0.3
	[ "$status" = 0 ]
	[ "$(grep -c 'warning:.*user space only' <<<"$stderr")" = 1 ]
	holds s.json 'split_is_true()' 'any("paranoid" in n["text"] for n in notes)'
}

@test "a limit on locked memory: a smaller buffer, the value and the fix" {
	need_nobody
	# What is left is perf_event_mlock_kb alone.
	local kb
	kb=$(cat /proc/sys/kernel/perf_event_mlock_kb)
	[ "$kb" -lt 1024 ] || skip "perf_event_mlock_kb is $kb here"
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || skip "perf is forbidden here"
	for args in "" "-m 8192"; do
		run --separate-stderr nobody prlimit --memlock=0 \
			./pmrec -e cpu-clock:u $args -o s.json -- ./split 0.3
		echo "$stderr"
		[ "$status" = 0 ]
		[[ $stderr == *"warning: the rings are "*" KiB for each CPU"* ]]
		[[ $stderr == *"locked memory is limited (more: sudo sysctl kernel.perf_event_mlock_kb="* ]]
		holds s.json "header['options']['ring_bytes'] <= $kb * 1024" 'len(samples) > 100' \
			'any("locked memory" in n["text"] for n in notes)'
		rm -f s.json
	done
}

# ---- files that are there already ---------------------------------------------------------

@test "-o does not replace the command's program or another file that is no recording" {
	cp "$PROGRAMS/split" prog
	echo precious >letter
	for file in prog letter; do
		cp "$file" before
		run --separate-stderr "$PMREC" -o "$file" -- ./prog 0.1
		[ "$status" = 125 ]
		[[ $stderr == *"$file: exists and is no recording"* && $stderr == *--force* ]]
		cmp "$file" before
	done
	cp letter s.json.old
	"$PMREC" -q -o s.json -- ./prog 0.1
	run --separate-stderr "$PMREC" -o s.json -- ./prog 0.1
	[ "$status" = 125 ]
	[[ $stderr == *"s.json.old: exists and is no recording"* ]]
	cmp letter s.json.old
	"$PMREC" -q --force -o letter -- ./prog 0.1
	holds letter 'len(samples) > 10'
	[ "$(cat letter.old)" = precious ]
}

@test "the recording of before is kept as .old" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cp s.json first
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cmp s.json.old first
	holds s.json 'len(samples) > 10'
	[ ! -e s.json.partial ]
}

@test "who records again reads where the recording of before is" {
	run --separate-stderr "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
	[[ $stderr != *.old* ]]
	run --separate-stderr "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
	[[ ${stderr_lines[-1]} == *" in s.json (the one before is kept as s.json.old); next: pmreport s.json" ]]
}

@test "a recording that cannot take its name is kept, and so is that of before" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cp s.json before
	mkdir s.json.old
	for kept in s.json.kept s.json.kept.2; do
		run --separate-stderr "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
		[ "$status" = 125 ]
		[[ $stderr == *"s.json: cannot be replaced: Is a directory; what was recorded is in $kept"* ]]
		[[ $stderr == *"try: pmreport $kept"* ]]
		holds "$kept" 'len(samples) > 10' 'footer["samples"] == len(samples)'
		cmp s.json before
	done
	[ ! -e s.json.partial ]
}

@test "a recording that can neither be completed nor take its name is kept" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cp s.json before
	mkdir s.json.old
	run --separate-stderr bash -c 'ulimit -f 4; exec "$@"' - \
		"$PMREC" -F 499 -o s.json -- "$PROGRAMS/split" 0.5
	[ "$status" = 125 ]
	[[ $stderr == *"s.json: cannot be replaced: Is a directory; what was recorded is in s.json.kept"* ]]
	[ -s s.json.kept ]
	cmp s.json before
}

@test "a snapshot leaves what is at -o alone" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cp s.json before
	"$PMREC" --overwrite -o s.json -- sh -c 'echo $$ >pid; exec "$0" 60' "$PROGRAMS/split" 2>said 3>&- &
	recorder=$!
	until_true test -s s.json.partial
	until_true test -s pid
	spends 20 "$(cat pid)"
	kill -USR2 "$recorder"
	until_true compgen -G 's-*.json' >/dev/null
	holds "$(echo s-*.json)" 'len(samples) > 0'
	cmp s.json before
	[ ! -e s.json.old ]
	kill -INT "$recorder"
	wait "$recorder" || :
	cmp s.json.old before
	holds s.json 'len(samples) > 0'
}

@test "--raw without samples replaces no other" {
	"$PMREC" -q -o s.json --raw s.raw -- "$PROGRAMS/split" 0.1
	cp s.raw before
	"$PMREC" -q -e page-faults -c 1000000000 -o s.json --raw s.raw -- true
	cmp s.raw before
	[ ! -e s.raw.old ]
}

@test "a recording without samples replaces none, and says where it is" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cp s.json before
	run --separate-stderr "$PMREC" -e page-faults -c 1000000000 -o s.json -- true
	[ "$status" = 0 ]
	[[ $stderr == *"in s.json.partial, for it does not replace the recording in s.json"* ]]
	cmp s.json before
	holds s.json.partial 'samples == []' 'footer["samples"] == 0'
	run --separate-stderr "$PMREPORT" s.json
	[[ $stderr == *"the newest recording is s.json.partial"* ]]
	rm s.json
	run --separate-stderr "$PMREPORT" s.json
	[ "$status" = 1 ]
	[[ $stderr == *"pmreport s.json.partial"* ]]
}

@test "a recorder without descriptors or disk leaves the recording of before" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 0.1
	cp s.json before
	run bash -c 'ulimit -n 14; "$@"' - "$PMREC" -o s.json -- "$PROGRAMS/split" 0.1
	[ "$status" = 125 ]
	cmp s.json before
	mkdir disk
	mount -t tmpfs -o size=64k tmpfs disk || skip "no tmpfs may be mounted"
	cp before disk/s.json
	dd if=/dev/zero of=disk/fill bs=1k status=none || :
	run "$PMREC" -o disk/s.json -- "$PROGRAMS/split" 0.1
	[ "$status" = 125 ]
	left=$(md5sum <disk/s.json)
	umount disk
	[ "$left" = "$(md5sum <before)" ]
}

# ---- outputs that fail ------------------------------------------------------------------

@test "a missing folder is told before the command runs" {
	run --separate-stderr "$PMREC" -o missing/s.json -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"missing/s.json"*"no folder missing"*"mkdir -p missing"* ]]
	[ ! -e ran ]
}

@test "an output that takes nothing is told before the command runs" {
	run --separate-stderr "$PMREC" -o /dev/full -- touch ran
	[ "$status" = 125 ]
	[[ $stderr == *"/dev/full"*"No space left"* ]]
	[ ! -e ran ]
}

@test "help and version that cannot be written are no success" {
	for word in --help --version; do
		status=0
		"$PMREC" "$word" >/dev/full 2>err || status=$?
		[ "$status" = 125 ]
		grep -q 'standard output: .*No space left' err
	done
}

@test "a disk that fills up: the command does its work, 125, the rest is readable" {
	need_root
	mkdir disk
	mount -t tmpfs -o size=64k tmpfs disk || skip "no tmpfs may be mounted"
	mounted=$PWD/disk
	run --separate-stderr "$PMREC" -o disk/s.json -- sh -c '"$1" 2 && touch done
		echo command: end >&2' - "$PROGRAMS/split"
	[ "$status" = 125 ]
	[[ $stderr == *"recording has stopped (No space left"*"command: end"*"disk/s.json"* ]]
	[ -e done ]
	[[ $stderr == *"disk/s.json"*"No space left"* ]]
	query --cut disk/s.json 'len(samples)'
	"$PMREPORT" disk/s.json >/dev/null
}

@test "a closed pipe: the command does its work" {
	run --separate-stderr bash -c \
		'"$1" -e cpu-clock -o - -- sh -c "\"\$0\" 2; touch done" "$2" | head -c 100; exit "${PIPESTATUS[0]}"' \
		- "$PMREC" "$PROGRAMS/split"
	[ "$status" = 125 ]
	[ "${#output}" = 100 ]
	[[ $stderr == *"standard output"* ]]
	[ -e done ]
}

# ---- being stopped ----------------------------------------------------------------------

@test "kill -9 of the recorder: nothing that was written is lost" {
	"$PMREC" -q -o s.json -- sh -c 'echo $$ >pid; exec "$0" 60' "$PROGRAMS/split" 3>&- &
	local recorder=$! target
	await_samples s.json
	target=$(cat pid)
	kill -KILL "$recorder"
	kill -0 "$target"
	kill -KILL "$target"
	query --cut s.json 'len(samples)'
	[ "$(query --cut s.json 'len(samples) > 100 and footer is None')" = True ]
	run --separate-stderr "$PMREPORT" s.json
	[ "$status" = 0 ]
	[[ $output$stderr == *"cut short"* ]]
}

@test "SIGINT to the recorder alone ends the command, and completes the file" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 60 3>&- &
	local recorder=$! status=0
	await_samples s.json
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	[ "$status" = 143 ]
	holds s.json 'footer["exit"] == {"signal": 15}' 'split_is_true()'
}

@test "SIGTERM likewise" {
	"$PMREC" -q -o s.json -- "$PROGRAMS/split" 60 3>&- &
	local recorder=$! status=0
	await_samples s.json
	kill -TERM "$recorder"
	wait "$recorder" || status=$?
	[ "$status" = 143 ]
	holds s.json 'footer["exit"] == {"signal": 15}' 'split_is_true()'
}

# bats test_tags=guest
@test "Ctrl-C on a terminal reaches the command once, and completes the file" {
	run python3 "$SOURCE_DIR/tests/cli/tty-interrupt.py" s.json \
		"$PMREC" -o s.json -- "$PROGRAMS/split" 60
	[ "$status" = 130 ]
	holds s.json 'footer["exit"] == {"signal": 2}' 'split_is_true()'
}

@test "the first signal stops the recording, the second a command that will not end" {
	cat >stubborn <<-'END'
		#!/bin/bash
		trap '' INT TERM
		while :; do :; done
	END
	chmod +x stubborn
	"$PMREC" -o s.json -- ./stubborn 2>err 3>&- &
	local recorder=$! status=0
	await_samples s.json
	kill -TERM "$recorder"
	until_true grep -q 'waiting for the command' err
	kill -0 "$recorder"
	kill -TERM "$recorder"
	wait "$recorder" || status=$?
	[ "$status" = 137 ]
	holds s.json 'footer["exit"] == {"signal": 9}'
}
