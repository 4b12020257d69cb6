# SPDX-License-Identifier: MIT
# What the tests of running targets share. To be loaded.

load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ulimit -c 0
	pids=
}

# Whatever a test has left running, by its own number.
teardown() {
	local pid
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	if [ -n "${cgroup-}" ]; then
		sleep 0.2
		rmdir "$cgroup"
	fi
	if [ -n "${mounted-}" ]; then
		umount "$mounted"
	fi
}

# holds_calmly FILE EXPRESSION...: the same, and what the test has started waits meanwhile.
holds_calmly() {
	local pid
	for pid in $pids; do
		kill -STOP "$pid" 2>/dev/null || true
	done
	holds "$@" || return
	for pid in $pids; do
		kill -CONT "$pid" 2>/dev/null || true
	done
}

has_sample() {
	grep -q '"type":"sample"' "$1" 2>/dev/null
}

# start [COMMAND...]: the program `attached`; $target, $before and $library are its numbers.
start() {
	"$@" "$PROGRAMS/attached" "$PROGRAMS/libdlopen-many.so" >numbers 3>&- &
	pids="$pids $!"
	until_true test -s numbers
	read -r target before library <numbers
}

# has_tasks COUNT: so many threads of the target.
has_tasks() {
	[ "$(ls "/proc/$target/task" | wc -l)" = "$1" ]
}

# fails TEXT COMMAND...: exit status 125, and TEXT among what it says.
fails() {
	local text=$1
	shift
	run -125 "$@"
	[[ $output == *"$text"* ]] || {
		echo "not in it: $text" >&2
		return 1
	}
}
