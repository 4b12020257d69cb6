#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Recording what runs already. PMREC, PMREPORT, PROGRAMS and SOURCE_DIR come from meson.

load attach

# ---- -p -----------------------------------------------------------------------------------

@test "no sample is from before the recording or after it" {
	"$PROGRAMS/split" 60 3>&- &
	target=$! pids=$!
	"$PMREC" -q -e cpu-clock -F 20000 --stack-bytes 4096 -p "$target" --duration 0.3s -o s.json
	kill "$target"
	holds s.json 'len(samples) > 1' \
		'samples[-1]["time"] - samples[0]["time"] <= footer["duration_ns"]'
}

@test "-p sees threads and libraries from before and after, and the truth of their time" {
	start
	local stolen
	stolen=$(stolen_ns)
	"$PMREC" -q -F 5000 --stack-bytes 4096 -o s.json -p "$target" 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true has_sample s.json
	kill -USR1 "$target"
	until_true has_tasks 4
	spends 150 "$target"
	kill -INT "$recorder"
	wait "$recorder"
	# 5 sigma of a share p of n samples: 5 * sqrt(p * (1 - p) / n).
	cat >truth <<-'END'
		(lambda own: len(own) > 300 and all(
		abs(sum(f == name for f in own) / len(own) - p) < 5 * (p * (1 - p) / len(own)) ** .5
		for name, p in (("sixty", .6), ("thirty", .3), ("ten", .1))))(
		[chain(s)[0] for s in samples if s["tid"] == s["pid"] and chain(s)[0] in ("sixty", "thirty", "ten")])
	END
	kill -STOP "$target"
	holds s.json "$(tr '\n' ' ' <truth)" \
		"header['target'] == '-p $target' and header['command'] == []" \
		'comms >= {"attached", "before", "library", "after"}' \
		'self_share("early") > 5 and self_share("spend") > 5 and self_share("late") > 5' \
		'any("/libdlopen-many.so" in m["path"] for m in modules)' \
		'rooted(0.95)' \
		"{s['pid'] for s in samples} == {$target}" \
		'footer["exit"] is None' \
		"0.9 * footer['cpu_ns'] - 3e7 < footer['events'][0]['period'] < 1.1 * footer['cpu_ns'] + 3e7 + $(at_most_stolen "$stolen")" || {
		query s.json '[self_share(n) for n in ("sixty", "thirty", "ten", "early", "spend", "late")]'
		false
	}
	"$PMREPORT" s.json | head -1 | grep -qF "pmrec -p $target"
}

# living_child: sets $child. One that was killed stays a zombie, as nobody waits for it.
living_child() {
	local pid
	for pid in $(cat "/proc/$target/task/$target/children"); do
		has_ended "$pid" || {
			child=$pid
			return 0
		}
	done
	return 1
}

@test "-p follows the processes that it starts; with -i it does not" {
	start
	for inherit in "" -i; do
		rm -f s.json
		"$PMREC" -q $inherit -o s.json -p "$target" 3>&- &
		recorder=$!
		pids="$pids $recorder"
		until_true has_sample s.json
		kill -USR2 "$target"
		until_true living_child
		pids="$pids $child"
		spends 25 "$child"
		spends 25 "$target" "$before"
		kill -INT "$recorder"
		wait "$recorder"
		kill -KILL "$child"
		if [ -z "$inherit" ]; then
			holds_calmly s.json 'self_share("child") > 5' 'footer["cpu_ns"] is None' \
				'any(chain(s)[:2] == ["child", "main"] for s in samples)'
		else
			holds_calmly s.json 'self_share("child") == 0' 'self_share("early") > 5'
		fi
	done
}

# stopped_split SECONDS: $!, which begins when SIGCONT lets it.
stopped_split() {
	bash -c 'kill -STOP $$; exec "$@"' bash "$PROGRAMS/split" "$1" 3>&- &
	pids="$pids $!"
	until_true grep -q '^State:.T' "/proc/$!/status"
}

# once_recorded FILE PID...: these go on when the recorder, which is still to be started, has opened
# its events.
once_recorded() {
	(
		until_true begun "$1"
		kill -CONT "${@:2}"
	) 3>&- &
}

@test "-p ends with the last of its processes, and with status 0" {
	stopped_split 0.3
	first=$!
	stopped_split 0.8
	second=$!
	once_recorded s.json "$first" "$second"
	run -0 "$PMREC" -o s.json -p "$first,$second"
	holds s.json "{s['pid'] for s in samples} == {$first, $second}" \
		"header['target'] == '-p $first,$second'" 'footer is not None'
	[[ $output == *'samples, 0 lost'* ]]
}

@test "-t is of that thread alone" {
	start
	"$PMREC" -q -o s.json --max-samples 200 -t "$before"
	holds_calmly s.json 'len(samples) == 200' "{s['tid'] for s in samples} == {$before}" \
		'sum("before" in chain(s) for s in samples) > 190' "header['target'] == '-t $before'"
	"$PMREC" -q -o s.json --max-samples 200 -t "$before,$library"
	holds_calmly s.json "{s['tid'] for s in samples} == {$before, $library}" \
		'self_share("early") > 10 and self_share("spend") > 10'
}

@test "a command beside a target is only the clock" {
	start
	run -7 "$PMREC" -o s.json -p "$target" -- sh -c 'sleep 0.4; exit 7'
	holds_calmly s.json "{s['pid'] for s in samples} == {$target}" 'header["command"] == []' \
		'0.35e9 < footer["duration_ns"] < 10e9' 'footer["exit"] is None'
	# One that outlives the target is ended.
	rm s.json
	stopped_split 0.2
	local split=$!
	once_recorded s.json "$split"
	run -0 "$PMREC" -o s.json -p "$split" -- sleep 600
	run -127 "$PMREC" -o s.json -p "$target" -- no-such-command
}

# ---- everybody ----------------------------------------------------------------------------

@test "-a sees programs that have nothing to do with each other" {
	need_root
	start
	"$PROGRAMS/split" 60 3>&- &
	local split=$!
	pids="$pids $split"
	"$PMREC" -q -e cpu-clock -a -o s.json 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	spends 10 "$target" "$before"
	spends 10 "$split"
	kill -INT "$recorder"
	wait "$recorder"
	holds_calmly s.json "{$target, $split} <= {s['pid'] for s in samples}" \
		'header["target"] == "-a"' \
		'{"attached", "split"} <= comms' \
		"sum(chain(s)[0] == 'early' and chain(s)[1] == 'before' for s in samples if s['pid'] == $target) > 5" \
		"sum(chain(s)[-1] == '_start' for s in samples if s['pid'] == $split) > 5"
}

@test "-C is of these CPUs alone" {
	need_root
	start
	"$PMREC" -q -e cpu-clock -C 0 -o s.json -- sleep 0.5
	holds_calmly s.json '{s["cpu"] for s in samples} == {0}' 'header["target"] == "-a -C 0"'
	fails "CPU" "$PMREC" -q -C 4000 -o s.json -- sleep 0.1
}

@test "-u is of all processes of a user" {
	need_root
	chmod 777 .
	start
	setpriv --reuid=65534 --regid=65534 --clear-groups -- "$PROGRAMS/split" 60 3>&- &
	other=$!
	pids="$pids $other"
	until_true grep -q '^Uid:[[:space:]]*65534' "/proc/$other/status"
	for user in 65534 "$(getent passwd 65534 | cut -d: -f1)"; do
		[ -n "$user" ] || continue
		rm -f s.json
		"$PMREC" -q -o s.json -u "$user" 3>&- &
		recorder=$!
		pids="$pids $recorder"
		until_true begun s.json
		spends 30 "$other"
		kill -INT "$recorder"
		wait "$recorder"
		holds_calmly s.json "$other in {s['pid'] for s in samples}" \
			"$target not in {s['pid'] for s in samples}" \
			"header['target'] == '-u $user'" \
			"(lambda of: sum('sixty' in chain(s) for s in of) > 0.4 * len(of) > 60)([s for s in samples if s['pid'] == $other])"
	done
	fails "there is no user no-such-user" "$PMREC" -u no-such-user
	fails "has no processes now" "$PMREC" -u 4000000000
	if getent passwd games && ! pgrep -u games; then
		fails "try: --user games" "$PMREC" -u games -- true
	fi
}

# descendants PID: the numbers of all that descends from it.
descendants() {
	local child
	for child in $(pgrep -P "$1"); do
		echo "$child"
		descendants "$child"
	done
}

@test "-p takes the processes that a process has started, and theirs; --only-pid does not" {
	sh -c '("$0" 60 & "$0" 60; wait) & wait' "$PROGRAMS/split" 3>&- &
	master=$!
	pids="$pids $master"
	three_descend() {
		[ "$(descendants "$master" | wc -l)" = 3 ]
	}
	until_true three_descend
	pids="$pids $(descendants $master)"
	burners=$(descendants $master | tail -n 2 | paste -sd,)
	"$PMREC" -q -e cpu-clock -o s.json -p "$master" --max-samples 300 --duration 60s
	holds_calmly s.json "{s['pid'] for s in samples} == {$burners}" \
		"header['target'] == '-p $master'" 'split_is_true()' \
		'any(chain(s)[-2:] == ["main", "_start"] or "main" in chain(s) for s in samples)'
	rm s.json
	run --separate-stderr "$PMREC" -e cpu-clock -o s.json -p "$master" --only-pid --duration 0.3s
	[ "$status" = 0 ]
	[[ "$stderr" == *'no samples: what was recorded used only 0.0 ms of CPU time; --only-pid has left out the 3 processes that -p has started'* ]]
	holds_calmly s.json 'not samples' "header['target'] == '-p $master --only-pid'"
	# These have no children, and are recorded themselves.
	"$PMREC" -q -e cpu-clock -o s.json -p "$burners" --only-pid --max-samples 300 --duration 60s
	holds_calmly s.json "{s['pid'] for s in samples} == {$burners}"
	fails "--only-pid limits -p" "$PMREC" --only-pid -a
}

@test "a target's end is the end, not that of what it has started before" {
	mkfifo end
	sh -c '"$0" 60 & echo $!; read -r _ <end' "$PROGRAMS/split" >child 3>&- &
	master=$!
	until_true test -s child
	pids="$pids $master $(cat child)"
	"$PMREC" -q -e cpu-clock -o s.json -p "$master" 3>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true has_sample s.json
	echo >end
	wait "$recorder"
	holds_calmly s.json "{s['pid'] for s in samples} >= {$(cat child)}"
}

enough_workers() {
	[ "$(wc -l <workers)" -ge "$enough" ]
}

@test "processes that are born while the targets are looked for are not missed" {
	# The child of a child starts workers before, while and after pmrec attaches. Each burns
	# 0.1 s of CPU time; when it is done it writes its number, and the time when half of it was
	# over.
	cat >nest.py <<-'END'
		import os, time
		if os.fork() == 0:
		    if os.fork() == 0:
		        living = 0
		        while living or not os.path.exists("stop"):
		            if living == 4 or os.path.exists("stop"):
		                os.wait()
		                living -= 1
		            elif os.fork():
		                living += 1
		            else:
		                begin = time.thread_time()
		                while time.thread_time() < begin + 0.05:
		                    pass
		                half = time.monotonic_ns()
		                while time.thread_time() < begin + 0.1:
		                    pass
		                line = f"{os.getpid()} {half}\n"
		                fd = os.open("workers", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
		                os.write(fd, line.encode())
		                os._exit(0)
		        os._exit(0)
		    os.wait()
		    os._exit(0)
		os.wait()
	END
	for _ in 1 2 3; do
		rm -f workers stop s.json
		python3 nest.py 3>&- &
		master=$!
		pids="$pids $master"
		until_true test -s workers
		"$PMREC" -q -e cpu-clock -o s.json -p $master 3>&- &
		recorder=$!
		pids="$pids $recorder"
		until_true has_sample s.json
		enough=$(($(wc -l <workers) + 20))
		until_true enough_workers
		touch stop
		wait "$recorder"
		# A worker that was half done long after the first sample ran for 50 ms meanwhile.
		holds s.json 'len({s["pid"] for s in samples}) > 2' \
			'{int(p) for p, t in map(str.split, open("workers")) if int(t) > samples[0]["time"] + 300000000} <= {s["pid"] for s in samples}'
	done
}

# make_cgroup: $cgroup, of version 2.
make_cgroup() {
	need_root
	if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
		cgroup=/sys/fs/cgroup/pmrec-test-$$
	else
		mkdir cgroups
		mount -t cgroup2 none cgroups || skip "no cgroup v2 can be mounted"
		mounted=$PWD/cgroups
		cgroup=$PWD/cgroups/pmrec-test-$$
	fi
	mkdir "$cgroup" || skip "no control group can be made"
}

@test "-G is of a control group alone" {
	make_cgroup
	start
	"$PROGRAMS/split" 20 3>&- &
	inside=$!
	pids="$pids $inside"
	echo "$inside" >"$cgroup/cgroup.procs" || skip "no process can be moved"
	# As on a machine that nobody has set up; systemd does what the message says.
	run --separate-stderr "$PMREC" -q -G "$cgroup" --duration 0.1s
	if [ "$status" -ne 0 ]; then
		[[ "$stderr" == *'counts nothing in this control group, for no controller'* ]]
		[[ "$stderr" == *'echo +pids | sudo tee /sys/fs/cgroup/cgroup.subtree_control'* ]]
		echo +pids >"${cgroup%/*}/cgroup.subtree_control" ||
			skip "controllers cannot be switched on"
	fi
	for group in "$cgroup" "${cgroup#/sys/fs/cgroup/}"; do
		"$PMREC" -q -o s.json -G "$group" --max-samples 200
		holds_calmly s.json "{s['pid'] for s in samples} == {$inside}" \
			'split_is_true()'
	done
	fails "there is no such control group" "$PMREC" -G no-such-group
	fails "no control group" "$PMREC" -G /tmp
}

@test "-G --off-cpu has the names of threads that wait" {
	make_cgroup
	mkfifo go
	exec 8<>go
	"$PROGRAMS/off-cpu" 3 - <&8 >truth 3>&- 8>&- &
	inside=$!
	pids="$pids $inside"
	echo "$inside" >"$cgroup/cgroup.procs" || skip "no process can be moved"
	[ -n "${mounted-}" ] || echo +pids >"${cgroup%/*}/cgroup.subtree_control" ||
		skip "controllers cannot be switched on"
	until_true executes "$inside" "$PROGRAMS/off-cpu"
	"$PMREC" -q --off-cpu -e cpu-clock -o s.json -G "$cgroup" 3>&- 8>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	echo >&8
	exec 8>&-
	wait "$inside"
	kill -INT "$recorder"
	wait "$recorder"
	holds s.json "comms == {'off-cpu'}" "{s['pid'] for s in samples} == {$inside}" \
		"len({s['tid'] for s in samples if s['event'] == 1}) == 4"
}

# ---- what does not go ---------------------------------------------------------------------

@test "targets that are not there are told apart" {
	fails "no process has the number 999999999" "$PMREC" -p 999999999
	fails "no thread has the number 999999999" "$PMREC" -t 999999999
	start
	fails "$before is a thread of process $target" "$PMREC" -p "$before"
	# A child that nobody waits for.
	python3 -c 'import os, time
child = os.fork() or os._exit(0)
print(child, flush=True)
time.sleep(20)' >zombie 3>&- &
	pids="$pids $!"
	until_true test -s zombie
	until_true grep -qs '^State:[[:space:]]*Z' "/proc/$(cat zombie)/status"
	fails "zombie" "$PMREC" -p "$(cat zombie)"
	[ ! -e samples.json ]
}

@test "a process of another user is refused with the reason" {
	need_root
	start
	chmod 777 .
	cp "$PMREC" pmrec
	run -125 setpriv --reuid=65534 --regid=65534 --clear-groups -- \
		./pmrec -e cpu-clock:u -o s.json -p "$target"
	echo "$output"
	[[ $output == *"process $target belongs to another user, and only root may record it"*"try: sudo"* ]]
	[ ! -e s.json ]
}

@test "a target in another mount and PID namespace has names" {
	need_root
	unshare -m -p -f true || skip "unshare is not allowed"
	cp "$PROGRAMS/split" "$PROGRAMS/libdlopen-many.so" .
	cat >inside <<-'END'
		mount -t tmpfs none /mnt && cp split /mnt/hidden && rm split && exec /mnt/hidden 20
	END
	unshare -m -p -f sh inside 3>&- &
	outer=$!
	pids="$pids $outer"
	until_true pgrep -P "$outer" -x hidden >/dev/null
	inner=$(pgrep -P "$outer" -x hidden)
	pids="$pids $inner"
	[ ! -e /mnt/hidden ]
	"$PMREC" -q -o s.json --max-samples 300 -p "$inner"
	holds_calmly s.json 'split_is_true()' "{s['pid'] for s in samples} == {$inner}" \
		'any(m["path"] == "/mnt/hidden" and m["build_id"] for m in modules)'
}

@test "-t: CPU time of threads that it makes is not counted, and not claimed" {
	cat >threads.py <<-END
		import threading, time
		def spend():
		    end = time.thread_time() + 20
		    while time.thread_time() < end: pass
		open("ready", "w").write("yes")
		input()
		thread = threading.Thread(target=spend)
		thread.start()
		thread.join()
	END
	mkfifo go
	exec 7<>go
	python3 threads.py <go 3>&- 7>&- &
	main=$!
	pids="$pids $main"
	until_true test -s ready
	"$PMREC" -q -e cpu-clock --max-samples 100 -o s.json -t "$main" 3>&- 7>&- &
	recorder=$!
	pids="$pids $recorder"
	until_true begun s.json
	echo >&7
	wait "$recorder"
	exec 7>&-
	holds s.json 'sum(s["tid"] != s["pid"] for s in samples) > 10' \
		'footer["cpu_ns"] is None'
}
