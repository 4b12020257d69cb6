#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# File servers that stop answering while a program of theirs runs. Whoever waits for them can be
# neither interrupted nor killed; a recording of the whole machine must not wait. PMREC,
# PMSTAT, PROGRAMS and SOURCE_DIR come from meson.

load common

setup() {
	ulimit -c 0
	need_root
	command -v bindfs >/dev/null || skip "no bindfs"
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	# Build and test run may be in folders that only their owner can enter.
	place=$(mktemp -d)
	chmod 755 "$place"
	cd "$place" || return
	mkdir files served
	cp "$PROGRAMS/split" files/hung
	cp "$PROGRAMS/split" "$PROGRAMS/frozen-stack" .
	head -c 1M /dev/zero >files/stack
	bindfs -f files served &
	server=$!
	targets=()
	for _ in {1..100}; do
		mountpoint -q served && return
		kill -0 "$server" 2>/dev/null || skip "bindfs may not mount here"
		sleep 0.05
	done
	return 1
}

# A server whose requests wait for the one that is stopped: it has taken them, and no signal
# interrupts whoever waits for an answer.
second_server() {
	mkdir twice
	bindfs -f served twice &
	second=$!
	for _ in {1..100}; do
		mountpoint -q twice && return
		sleep 0.05
	done
	return 1
}

# Everybody who waits for the server dies with it.
teardown() {
	[ -z "${place-}" ] || cd /
	for pid in "${targets[@]}" ${recorder-}; do
		kill -KILL "$pid" 2>/dev/null || :
	done
	for pid in ${server-} ${second-}; do
		kill -KILL "$pid" 2>/dev/null || :
	done
	[ -z "${second-}" ] || umount -l "$place/twice" 2>/dev/null || :
	[ -z "${place-}" ] || umount -l "$place/served" 2>/dev/null || :
	wait
	[ -z "${place-}" ] || rm -rf "$place"
}

await_state() {
	for _ in {1..200}; do
		[ "$(sed 's/.*) \(.\).*/\1/' "/proc/$2/stat" 2>/dev/null)" = "$1" ] && return
		sleep 0.05
	done
	return 1
}

# hung_target: nobody's program, of a server that has stopped since.
hung_target() {
	"${NOBODY[@]}" served/hung 60 3>&- &
	targets+=($!)
	# All of its code and data have been touched by then.
	sleep 0.3
	kill -STOP "$server"
}

# others: a program beside it, whose samples count.
others() {
	./split 60 3>&- &
	targets+=($!)
	beside=$!
}

# ends_within SECONDS PID: a recording that was asked to end does.
ends_within() {
	local begin=$EPOCHREALTIME
	for _ in {1..200}; do
		case $(sed 's/.*) \(.\).*/\1/' "/proc/$2/stat" 2>/dev/null) in
		'' | Z) break ;;
		esac
		sleep 0.05
	done
	awk -v a="$begin" -v b="$EPOCHREALTIME" -v max="$1" \
		'BEGIN { print "ended after", b - a, "s"; exit !(b - a < max) }' >&2
}

# Many share the CPUs. Of the program beside all stacks are whole, but for the first of the
# recording at most.
others_are_whole() {
	holds s.json "sum(s['pid'] == $beside for s in samples) > 10" \
		"sum(s['pid'] == $beside and 'stop' in s for s in samples) <= 1 + 0.01 * sum(s['pid'] == $beside for s in samples)" \
		'footer["lost"] <= 0.01 * len(samples)'
}

@test "a server that stopped before the recording keeps it neither from samples nor its end" {
	hung_target
	others
	"$PMREC" -q -a --no-symbols --duration 3 -o s.json 2>err 3>&- &
	recorder=$!
	ends_within 6 "$recorder"
	others_are_whole
	holds s.json 'any("does not answer" in n["text"] for n in notes)' \
		"footer['stops'].get('not_read', 0) > 0"
}

@test "SIGTERM ends a recording within two seconds while a server has stopped" {
	others
	"${NOBODY[@]}" served/hung 60 3>&- &
	targets+=($!)
	"$PMREC" -q -a --no-symbols -o s.json 2>err 3>&- &
	recorder=$!
	await_samples s.json
	kill -STOP "$server"
	"${NOBODY[@]}" ./split 60 3>&- &
	targets+=($!)
	sleep 0.5
	kill -TERM "$recorder"
	ends_within 4 "$recorder"
	others_are_whole
	# What was read while there was somebody to ask is whole, too.
	holds s.json "sum(s['pid'] == ${targets[1]} and 'stop' not in s for s in samples) > 5"
}

@test "a server that stops between the start of a program and its first sample" {
	others
	"${NOBODY[@]}" served/hung 60 3>&- &
	targets+=($!)
	sleep 0.2
	kill -STOP "${targets[1]}"
	"$PMREC" -q -a --no-symbols -o s.json 2>err 3>&- &
	recorder=$!
	await_samples s.json
	kill -STOP "$server"
	kill -CONT "${targets[1]}"
	sleep 1
	kill -INT "$recorder"
	ends_within 4 "$recorder"
	others_are_whole
	holds s.json "footer['stops'].get('not_read', 0) > 0"
}

@test "a stack whose pages nobody gives" {
	others
	"${NOBODY[@]}" ./frozen-stack served/stack 60 3>&- &
	targets+=($!)
	await_state T "${targets[1]}"
	kill -STOP "$server"
	"$PMREC" -q -a --no-symbols --stack-bytes 4096 -o s.json 2>err 3>&- &
	recorder=$!
	await_samples s.json
	kill -CONT "${targets[1]}"
	sleep 1
	kill -TERM "$recorder"
	ends_within 4 "$recorder"
	others_are_whole
	holds s.json "sum(s['pid'] == ${targets[1]} and len(chain(s)) > 3 for s in samples) > 5"
}

# ends_by SIGNAL COMMAND...: which waits for a server in vain.
ends_by() {
	"${@:2}" 2>err 3>&- &
	recorder=$!
	sleep 0.7
	kill -0 "$recorder"
	kill "-$1" "$recorder"
	ends_within 4 "$recorder"
}

# leaves_by SIGNAL COMMAND...: the same once its child `cat` waits, which nothing can end.
leaves_by() {
	"${@:2}" 2>err 3>&- &
	recorder=$!
	for _ in {1..200}; do
		! pgrep -P "$recorder" -x cat >/dev/null || break
		sleep 0.05
	done
	sleep 0.3
	kill "-$1" "$recorder"
	ends_within 5 "$recorder"
	grep -q "not waiting for the command: process .* cannot be ended" err
}

@test "a program whose file nobody gives: a signal ends the wait for its start" {
	cp "$PROGRAMS/deep" files/never
	kill -STOP "$server"
	ends_by TERM "$PMREC" -q -o s.json -- served/never
	ends_by TERM "$PMREC" -q --engine ptrace -o s.json -- served/never
	ends_by TERM "$PMSTAT" -- served/never
}

@test "a program whose file is given up to its exec" {
	second_server
	cp "$PROGRAMS/deep" files/never
	# Who looks at it before has its answer.
	"$PMREC" -q -o s.json -- twice/never 1 >out 2>&1
	kill -STOP "$server"
	ends_by TERM "$PMREC" -q -o s.json -- sh -c 'exec twice/never 1'
	ends_by TERM "$PMSTAT" -- sh -c 'exec twice/never 1'
}

@test "a command in an uninterruptible sleep is not waited for" {
	second_server
	ls -l twice/stack >out
	kill -STOP "$server"
	leaves_by TERM "$PMREC" -q -o s.json -- cat twice/stack
}

@test "the same with the engine ptrace" {
	second_server
	ls -l twice/stack >out
	kill -STOP "$server"
	leaves_by INT "$PMREC" -q --engine ptrace -o s.json -- cat twice/stack
}

@test "the same with pmstat" {
	second_server
	ls -l twice/stack >out
	kill -STOP "$server"
	leaves_by TERM "$PMSTAT" -- cat twice/stack
}

@test "the same when the time of pmstat is over" {
	second_server
	ls -l twice/stack >out
	kill -STOP "$server"
	"$PMSTAT" --timeout 0.5 -- cat twice/stack 2>err 3>&- &
	recorder=$!
	ends_within 6 "$recorder"
	grep -q "not waiting for the command: process .* cannot be ended" err
}

@test "names of a program whose server has stopped" {
	others
	"${NOBODY[@]}" served/hung 60 3>&- &
	targets+=($!)
	sleep 0.3
	"$PMREC" -q -p "$beside,${targets[1]}" -o s.json 2>err 3>&- &
	recorder=$!
	await_samples s.json
	kill -STOP "$server"
	kill -TERM "$recorder"
	ends_within 6 "$recorder"
	# Its file is in memory since its first sample.
	holds s.json "sum(s['pid'] == ${targets[1]} and 'rounds' in chain(s) for s in samples) > 5" \
		"sum(s['pid'] == $beside and 'rounds' in chain(s) for s in samples) > 5"
}
