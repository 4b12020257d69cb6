# SPDX-License-Identifier: MIT
# What the tests of the recorder share. To be loaded.

bats_require_minimum_version 1.5.0

# Tests leave nothing in the user's own.
export XDG_CACHE_HOME=$BATS_RUN_TMPDIR

# query FILE EXPRESSION...: see samples.py.
query() {
	python3 "$SOURCE_DIR/tests/cli/samples.py" "$@"
}

# holds FILE EXPRESSION...: all of them are true. The file is read once for all.
holds() {
	local file=$1 expression answers i=0
	shift
	mapfile -t answers < <(query "$file" "$@")
	for expression; do
		[ "${answers[i]-}" = True ] || {
			echo "not so: $expression: ${answers[i]-no answer}" >&2
			query "$file" 'len(samples)' comms notes footer \
				'[chain(s) for s in samples][:5]' >&2
			return 1
		}
		i=$((i + 1))
	done
	[ "${#answers[@]}" = "$i" ]
}

# await_sample FILE: waits for the first sample, which pmrec writes at once.
# await_samples FILE: waits for a hundred and one, which are enough for the shares of `split`.
await_sample() {
	await_lines 1 "$1"
}
await_samples() {
	await_lines 101 "$1"
}
await_lines() {
	local lines
	for _ in {1..1200}; do
		lines=$(grep -c '"type":"sample"' "$2" 2>/dev/null || :)
		[ "${lines:-0}" -lt "$1" ] || return 0
		sleep 0.1
	done
	return 1
}

# until_true COMMAND...: within two minutes, for machines that are busy.
until_true() {
	local i
	for i in {1..1200}; do
		"$@" && return
		# What comes at once is not waited for.
		if [ "$i" -lt 10 ]; then sleep 0.02; else sleep 0.1; fi
	done
	echo "never: $*" >&2
	return 1
}

# calm: stdin without the warnings of a machine that does much else, or whose host does.
calm() {
	grep -vE 'the host took|the recording began [0-9.]+ s late|real-time priority was given up|the samples stand for'
}

# executes PID FILE: whether the process runs this program. Until its execve(2) it is a copy of
# the shell.
executes() {
	[ "/proc/$1/exe" -ef "$2" ]
}

# begun FILE: whether the recorder has opened it, which it does after its events; it gets its name
# with the first sample.
begun() {
	[ -s "$1" ] || [ -s "$1.partial" ]
}

# has_ended PID: it may be a zombie.
has_ended() {
	[ ! -e "/proc/$1/exe" ]
}

# cpu_ticks PID [TID]: the CPU time of a process or a thread, in hundredths of a second.
cpu_ticks() {
	sed 's/.*) //' "/proc/$1/${2:+task/$2/}stat" | awk '{ print $12 + $13 }'
}

has_spent() {
	[ "$(cpu_ticks "${@:2}")" -ge "$1" ]
}

# spends TICKS PID [TID]: waits until it has used so much more CPU time. What a program does in a
# time by the clock has no lower limit on a busy machine.
spends() {
	until_true has_spent $(($1 + $(cpu_ticks "${@:2}"))) "${@:2}"
}

# What the host has taken from this machine's CPUs until now, in nanoseconds. The clock that is
# sampled goes on meanwhile, CPU time does not (CONFIG_PARAVIRT_TIME_ACCOUNTING).
stolen_ns() {
	awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" { printf "%.0f", $9 / hz * 1e9 }' /proc/stat
}

# at_most_stolen NS_BEFORE: what was taken since then at most, for it is told by clock ticks.
at_most_stolen() {
	local ns=$(($(stolen_ns) - $1))
	echo $((ns > 0 ? ns + 1000000000 / $(getconf CLK_TCK) : 0))
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# nobody COMMAND...: without any privilege.
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
nobody() {
	"${NOBODY[@]}" "$@"
}

LEVEL_FILE=/proc/sys/kernel/perf_event_paranoid
# at LEVEL COMMAND...: for as short as it can be, for others use this machine, too. Who depends on
# the level holds a lock meanwhile (tests/unit/perf-level.h). `level` is what it was until it is
# that again, and is put back by the test's teardown otherwise.
at() {
	local status=0 lock
	exec {lock}<$LEVEL_FILE
	flock --wait 60 "$lock" || return
	level=$(cat $LEVEL_FILE)
	echo "$1" >$LEVEL_FILE
	"${@:2}" {lock}<&- || status=$?
	echo "$level" >$LEVEL_FILE
	level=
	exec {lock}<&-
	return $status
}

# Runs its arguments where tracefs is mounted, without leaving a mount behind; where nothing may
# be mounted (containers), as they are.
traced() {
	if [ -d /sys/kernel/tracing/events ] || ! unshare -m true 2>/dev/null; then
		"$@"
	else
		# shellcheck disable=SC2016
		unshare -m sh -c 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"' sh "$@"
	fi
}

# ... and where it is not.
untraced() {
	# shellcheck disable=SC2016
	unshare -m sh -c 'umount -a -t tracefs; ! [ -d /sys/kernel/tracing/events ] && exec "$@"' \
		sh "$@"
}
