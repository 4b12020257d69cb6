#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# When a recording begins and ends, and who says so. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR
# come from meson.

load attach

# ---- by itself ------------------------------------------------------------------------------

@test "-D leaves out the beginning, and knows what it missed" {
	begin=$(monotonic_ns)
	"$PMREC" -q -F 5000 -o s.json -D 300 -- "$PROGRAMS/split" 0.9
	holds s.json "min(s['time'] for s in samples) >= $begin + 300000000" \
		'split_is_true()' 'comms == {"split"}' 'footer is not None'
	start
	"$PMREC" -q -o s.json -D 100 --max-samples 200 -p "$target"
	holds_calmly s.json 'self_share("early") > 5' 'self_share("spend") > 5' \
		'comms == {"attached", "before", "library"}'
}

@test "--duration ends a recording, and waits for a command that is the target" {
	run -3 "$PMREC" -F 5000 --stack-bytes 4096 -o s.json --duration 300ms -- "$PROGRAMS/split" 0.8 3
	[[ $output == *"--duration was over"* ]]
	holds s.json '0.25e9 < footer["duration_ns"] < 5e9' 'footer["exit"] is None' \
		'footer["cpu_ns"] is None' 'split_is_true()' \
		'any("--duration" in n["text"] for n in notes)'
}

@test "--max-samples is kept to the sample" {
	run -0 "$PMREC" -F 5000 --max-samples 123 -o s.json -- "$PROGRAMS/split" 0.5
	holds s.json 'len(samples) == 123 == footer["samples"]' \
		'any("--max-samples" in n["text"] for n in notes)'
	run -0 "$PMREC" --max-samples 1 -o s.json -- "$PROGRAMS/split" 0.2
	holds s.json 'len(samples) == 1'
}

@test "--max-size ends a recording, and what completes the file comes on top" {
	"$PMREC" -q -F 10000 --max-size 100K --stack-bytes 1024 -o s.json -- "$PROGRAMS/split" 1.2
	holds s.json 'len(samples) > 100' 'footer is not None' 'split_is_true()' \
		'any("--max-size" in n["text"] for n in notes)'
	size=$(stat -c %s s.json)
	[ "$size" -ge 102400 ] && [ "$size" -lt 400000 ]
}

# ---- by a FIFO ------------------------------------------------------------------------------

# say WORD: and wait for the answer.
say() {
	local answer=
	echo "$1" >control
	read -r -t 120 answer <>ack
	[ "$answer" = ack ]
}

samples_in() {
	grep -c '"type":"sample"' "$1" || true
}

monotonic_ns() {
	python3 -c 'import time; print(time.monotonic_ns())'
}

@test "--control begins, interrupts and ends a recording" {
	mkfifo control ack
	start
	"$PMREC" -o s.json -D -1 --control fifo:control,ack -p "$target" 2>said 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	say ping
	sleep 0.6
	[ "$(samples_in s.json.partial)" = 0 ]
	enabled=$(monotonic_ns)
	say enable
	await_lines 50 s.json
	say disable
	disabled=$(monotonic_ns)
	sleep 0.6
	again=$(monotonic_ns)
	say enable
	# All of the target's threads, if they have the CPU time of so many samples.
	spends 20 "$target" "$target"
	spends 20 "$target" "$before"
	spends 20 "$target" "$library"
	say stop
	stopped=$(monotonic_ns)
	wait "$recorder"
	# The target never rests, and a sample has the time when it was taken.
	holds_calmly s.json "all($enabled < s['time'] < $stopped for s in samples)" \
		"not any($disabled < s['time'] < $again for s in samples)" \
		"sum(s['time'] < $disabled for s in samples) > 10" \
		"sum(s['time'] > $again for s in samples) > 10" \
		'self_share("early") > 5 and self_share("spend") > 5' \
		'comms >= {"attached", "before", "library"}' \
		'any("--control said stop" in n["text"] for n in notes)'
}

@test "--control: what it does not know it says, and goes on" {
	mkfifo control
	start
	"$PMREC" -o s.json --control fifo:control -p "$target" 2>said 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	printf 'evlist\n\033[2Jxx\n%0300d\nsnapshot\nstop\n' 0 >control
	wait "$recorder"
	grep -qF 'unknown command "evlist"' said
	grep -qF 'snapshot needs --overwrite' said
	none_of said $'\033'
	holds s.json 'footer is not None'
}

none_of() {
	! grep -qF "$2" "$1"
}

@test "--control fd: is an open file" {
	start
	mkfifo words
	exec 7<>words
	"$PMREC" -q -o s.json --control fd:7 -p "$target" 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	echo stop >&7
	wait "$recorder"
	exec 7>&-
	holds s.json 'footer is not None'
}

@test "--control refuses what is no FIFO" {
	touch file
	fails "this is no FIFO" "$PMREC" --control fifo:file -- true
	fails "mkfifo nothing" "$PMREC" --control fifo:nothing -- true
	fails "expected fifo:PATH" "$PMREC" --control file -- true
	fails "expected fifo:PATH" "$PMREC" --control fifo: -- true
	fails "expected fifo:PATH" "$PMREC" --control fd:x -- true
	fails "there is no --control" "$PMREC" -D -1 -- true
}

@test "--control fd: must be of use, and an answer that nobody reads holds nothing up" {
	start
	mkfifo words full
	exec 7<>words 8<>full
	fails "open for writing only" "$PMREC" --control fd:9 -- true 9>words
	fails "open for reading only" "$PMREC" --control fd:7,9 -- true 9<words
	# As much as a FIFO holds, so that the next word would wait.
	dd if=/dev/zero of=full oflag=nonblock bs=4096 count=4096 2>/dev/null || true
	"$PMREC" -q -o s.json --control fd:7,8 -p "$target" 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	printf 'ping\nstop\n' >&7
	until_true has_footer s.json
	wait "$recorder"
	exec 7>&- 8>&-
}

has_footer() {
	grep -q '"type":"footer"' "$1"
}

@test "--control disable: nobody is blocked meanwhile" {
	mkfifo control ack
	# python3 may be a script that looks for the real one first.
	python3 -c 'import time
open("ready", "w")
while True: time.sleep(0.1)' 3>&- &
	sleeper=$!
	pids="$pids $sleeper"
	until_true test -e ready
	"$PMREC" -q -o s.json --off-cpu -D -1 --control fifo:control,ack -p "$sleeper" 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	before=$(monotonic_ns)
	say enable
	until_true has_sample s.json
	say disable
	sleep 0.4
	between=$(monotonic_ns)
	sleep 0.4
	say enable
	until_true was_away_after "$between"
	say stop
	wait "$recorder"
	holds s.json "not any(s['time'] - s['period'] < $between < s['time'] for s in samples)" \
		"all(s['time'] - s['period'] >= $before for s in samples)" \
		"any(s['time'] < $between and s['event'] == 1 for s in samples)" \
		"any(s['time'] > $between and s['event'] == 1 for s in samples)"
}

was_away_after() {
	grep '^{.*}$' s.json |
		jq -se "any(.[]; .type == \"sample\" and .event == 1 and .time > $1)" >/dev/null
}

# ---- snapshots ------------------------------------------------------------------------------

snapshots() {
	find . -name 's-*.json' | wc -l
}

has_snapshots() {
	[ "$(snapshots)" = "$1" ]
}

@test "--overwrite: each SIGUSR2 makes a complete file of what is newest" {
	start
	"$PMREC" -o s.json -m 64 --stack-bytes 1024 --overwrite -p "$target" 2>said 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	spends 60 "$target"
	kill -USR2 "$recorder"
	until_true has_snapshots 1
	kill -USR1 "$target"
	until_true has_tasks 4
	spends 150 "$target"
	kill -USR2 "$recorder"
	until_true has_snapshots 2
	kill -INT "$recorder"
	wait "$recorder"
	kill -STOP "$target"
	files=$(find . -name 's-*.json' | sort)
	set -- $files
	for file; do
		[[ $file =~ /s-[0-9]{8}T[0-9]{6}\.[0-9]{3}\.json$ ]]
		holds "$file" 'footer is not None' 'len(samples) > 10' \
			'footer["samples"] == len(samples)' \
			'self_share("early") > 5' 'self_share("spend") > 5'
	done
	holds "$1" '"after" not in comms'
	holds "$2" 'self_share("late") > 5'
	holds s.json 'footer is not None'
	grep -qF "samples in s-" said
}

@test "--overwrite takes no device's name away" {
	mkfifo pipe
	fails "has to name a regular file" "$PMREC" --overwrite -o pipe -- true
	[ -p pipe ]
	fails "exclude each other" "$PMREC" --overwrite --off-cpu -- true
}

# ---- through a pipe -------------------------------------------------------------------------

@test "a pipe into pmreport gives the report" {
	"$PMREC" -q -o - -- "$PROGRAMS/split" 0.5 | "$PMREPORT" - >report
	grep -q 'sixty' report
	none_of report 'cut short'
}

@test "Ctrl-C in a pipe ends the recording, and the report is complete" {
	cat >pipe <<-END
		"$PMREC" -q -o - -- "$PROGRAMS/split" 30 | "$PMREPORT" - >report
	END
	setsid bash pipe 3>&- &
	leader=$!
	pids="$pids $leader"
	until_true pgrep -s "$leader" -x split >/dev/null
	spends 20 "$(pgrep -s "$leader" -x split)"
	# As the terminal does it: to the whole group.
	kill -INT -- "-$leader"
	until_true grep -q sixty report
	none_of report 'cut short'
}
