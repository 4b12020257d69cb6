#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A recording of a whole machine must not grow with the activity of other users, and must
# not spoil their recordings. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load attach

# all_until COMMAND...: records the machine to s.json while the command runs.
all_until() {
	"$PMREC" -q -a -F 499 --stack-bytes 1024 --no-symbols -o s.json "${flags[@]}" 3>&- 2>said &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	"$@"
	kill -TERM "$recorder"
	wait "$recorder"
}

not() {
	! "$@"
}

lines_of() {
	grep -c "\"type\":\"$1\"" "$2" || true
}

@test "a thread has a line when it has a sample, and no more than its share" {
	need_root
	flags=()
	# shellcheck disable=SC2016
	all_until bash -c 'echo $$ >pid; exec "$@"' bash "${NOBODY[@]}" \
		"$PROGRAMS/churn" rename 1.5 >out
	[ "$(cut -d' ' -f2 out)" -gt 5000 ] # renames, each of which was a line
	threads=$(lines_of thread s.json)
	samples=$(lines_of sample s.json)
	[ "$samples" -gt 300 ]
	# Two for a sample at most: its thread and the first of its process.
	[ "$threads" -le $((2 * samples)) ]
	[ "$threads" -gt 3 ]
	# A name is written with a sample only. test-pmrec-record has the limit of a second.
	python3 - <<-'END'
		import collections, json
		rows = [json.loads(line) for line in open('s.json')]
		pid = int(open('pid').read())
		names = [row for row in rows if row['type'] == 'thread' and row['pid'] == pid and
		         row['comm'].startswith('name-')]
		by_tid = collections.Counter(row['tid'] for row in names)
		times = [row['time'] for row in rows if row['type'] == 'sample' and row['pid'] == pid]
		assert 1 <= len(by_tid) <= 4 and max(by_tid.values()) <= len(times), by_tid
		# The name of a sample is the last one before it, and none is missing.
		known = {}
		for row in rows:
		    if row['type'] == 'thread':
		        known[row['pid'], row['tid']] = row['comm']
		    if row['type'] == 'sample' and row['tid'] is not None:
		        assert (row['pid'], row['tid']) in known, row
	END
}

@test "--overwrite: nothing is written before there is a snapshot" {
	need_root
	flags=(--overwrite)
	sizes() {
		nobody "$PROGRAMS/churn" rename 1 >out
		nobody "$PROGRAMS/churn" fork 0.5 >>out
		stat -c %s s.json.partial >size
	}
	all_until sizes
	[ "$(wc -l <out)" = 2 ]
	[ "$(cat size)" -lt 20000 ]
	[ "$(lines_of sample s.json)" -gt 10 ]
	[ "$(lines_of thread s.json)" -le $((2 * $(lines_of sample s.json))) ]
}

has_inode() {
	[ "$(stat -c %i "$2" 2>/dev/null)" = "$1" ]
}

# holds_replaced PID: whether it has a descriptor of the file that it has replaced.
holds_replaced() {
	find "/proc/$1/fd" -lname '*.json.old (deleted)' | grep -q .
}

has_zombies() {
	local pid
	for pid in $(cat "/proc/$1/task/$1/children"); do
		! grep -qs '^State:.Z' "/proc/$pid/status" || return 0
	done
	return 1
}

@test "a recorder closes the recording that it has replaced, and has no zombies" {
	for _ in 1 2; do
		"$PMREC" -q -e cpu-clock -F 4000 -o s.json -- "$PROGRAMS/split" 0.05
	done
	before=$(stat -c %i s.json)
	stat s.json.old
	"$PMREC" -q -e cpu-clock -o s.json -- "$PROGRAMS/split" 60 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true has_inode "$before" s.json.old
	until_true not holds_replaced "$recorder"
	sleep 0.3
	until_true not has_zombies "$recorder"
	kill -TERM "$recorder"
	run wait "$recorder"
}

@test "thousands of short processes leave lines of those with samples alone" {
	need_root
	flags=()
	all_until nobody "$PROGRAMS/churn" fork 1.5 >out
	[ "$(cut -d' ' -f2 out)" -gt 500 ]
	[ "$(lines_of thread s.json)" -le $((2 * $(lines_of sample s.json))) ]
	"$PMREPORT" -q --by process s.json >text
	grep -q churn text
}

@test "perf record beside pmrec -a ends well, and its file is readable" {
	need_root
	command -v perf >/dev/null || skip "perf is not installed"
	flags=()
	beside() {
		perf record -q -e cpu-clock -F 99 -o perf.data -- "$PROGRAMS/split" 0.2 >perf.out 2>&1
	}
	all_until beside
	perf report --stdio -i perf.data 2>/dev/null | grep -q sixty
	perf script -i perf.data --show-mmap-events 2>/dev/null | grep -q "PERF_RECORD_MMAP2.*split"
}

@test "records of other recorders with build-ids do not change files" {
	need_root
	command -v perf >/dev/null || skip "perf is not installed"
	perf record --buildid-mmap -q -o /dev/null true 2>/dev/null || skip "perf knows no --buildid-mmap"
	perf record --buildid-mmap -q -a -e cpu-clock -F 99 -o perf.data sleep 60 3>&- &
	pids="$pids $!"
	other=$!
	sleep 0.5
	"$PMREC" -q -e cpu-clock -F 2000 -o s.json -- "$PROGRAMS/split" 0.4
	kill -INT "$other"
	holds s.json '1.3 <= self_share("sixty") / self_share("thirty") <= 3' \
		'sum("stop" in s for s in samples) < 0.05 * len(samples)'
}

@test "a program that is written over in its place is another one from then on" {
	cp "$PROGRAMS/split" program
	"$PMREC" -q -e cpu-clock:u -F 2000 -o s.json -- sh -c \
		'./program 0.3; cat "$PROGRAMS/churn" >program; exec ./program deep 0.8'
	# Names of the previous content are lost, and its frames must not get the new
	# names.
	holds s.json 'sum("deeper" in chain(s) for s in samples) > 3' \
		'len({m["build_id"] for m in modules if m["path"].endswith("/program")}) == 2' \
		'not {"fork_all", "rename_all"} & {n for s in samples for n in chain(s)}' \
		'any("/program could not be read" in n["text"] for n in notes)'
}
