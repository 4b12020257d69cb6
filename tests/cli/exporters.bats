#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Files for other programs, each read by the program that it is for, and its sums compared with
# those of --json function by function. PMREC, PMREPORT, SOURCE_DIR and BUILD_DIR come from meson.
#
# real.json: programs/exported.cc, with two events. fixtures/hostile-names.json: names with
# everything that could break a format. Programs from npm are pinned in tests/export.

bats_require_minimum_version 1.5.0

setup_file() {
	export LC_ALL=C.UTF-8
	cd "$BATS_FILE_TMPDIR" || return
	# An ordinary user may be allowed to measure nothing (kernel.perf_event_paranoid).
	"$PMREC" -q -e page-faults -o may.json -- true 2>err || {
		[ "$(id -u)" != 0 ] || { cat err >&2; return 1; }
		head -1 err >may-not-record
		return 0
	}
	g++ -g -O2 -o exported "$SOURCE_DIR/tests/programs/exported.cc" -lpthread
	"$PMREC" -e cpu-clock/freq=999/ -e page-faults/period=50/ -o real.json -- ./exported 0.2 \
		2>err || { cat err >&2; return 1; }
	"$PMREPORT" --json --limit 0 real.json >real-report.json
}

setup() {
	export LC_ALL=C.UTF-8
	unset NO_COLOR
	REAL=$BATS_FILE_TMPDIR/real.json
	HOSTILE=$SOURCE_DIR/tests/cli/fixtures/hostile-names.json
	PROFILER_CLI=
	cd "$BATS_TEST_TMPDIR" || return
}

# What answers its questions would run on.
teardown() {
	[ -z "$PROFILER_CLI" ] || timeout 20 node "$PROFILER_CLI" stop >/dev/null 2>&1 || true
}

# Sets EVENTS: those of the recording.
recording() {
	[ ! -e "$BATS_FILE_TMPDIR/may-not-record" ] || skip "$(cat "$BATS_FILE_TMPDIR/may-not-record")"
	EVENTS=$(jq -r '.events[].event' "$BATS_FILE_TMPDIR/real-report.json")
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

agree() {
	local event=$1 kind=$2
	shift 2
	python3 "$SOURCE_DIR/tests/export/agree.py" "$BATS_FILE_TMPDIR/real-report.json" \
		"$event" "$kind" "$@"
}

# Sets NODE_MODULES: the programs of tests/export, fetched once for a build. Without a network
# that is tried once, and not for long.
node_modules() {
	local dir=$BUILD_DIR/tests/export failed=$BATS_FILE_TMPDIR/npm-failed
	needs node
	needs npm
	[ ! -e "$failed" ] || skip "$(cat "$failed")"
	mkdir -p "$dir"
	if ! cmp -s "$SOURCE_DIR/tests/export/package-lock.json" "$dir/fetched"; then
		cp "$SOURCE_DIR"/tests/export/package*.json "$dir"
		(cd "$dir" && timeout 90 npm ci --ignore-scripts --no-audit --no-fund \
			--fetch-retries=1 --fetch-timeout=20000) >npm.log 2>&1 3>&- || {
			echo "npm cannot fetch them: $(grep -m1 -i 'npm err' npm.log || echo 'no answer')" \
				>"$failed"
			skip "$(cat "$failed")"
		}
		cp "$dir/package-lock.json" "$dir/fetched"
	fi
	NODE_MODULES=$dir/node_modules
}

speedscope() {
	node "$SOURCE_DIR/tests/export/speedscope.mjs" "$NODE_MODULES/speedscope" "$@"
}

@test "go tool pprof reads what pprof has" {
	needs go
	recording
	"$PMREPORT" --format pprof -o p.pb.gz "$REAL" 2>err
	[ "$(cat err)" = 'pmreport: pprof knows no time within a recording: samples are added up' ]
	for event in $EVENTS; do
		go tool pprof -top -unit=ns -nodefraction=0 -edgefraction=0 -nodecount=1000000 \
			-sample_index="$event" p.pb.gz >top
		agree "$event" pprof top
	done
	go tool pprof -top -nodecount=1000000 p.pb.gz | grep -q 'work::mix<unsigned int> (inline)'
	go tool pprof -tags p.pb.gz >tags
	grep -q '): w$' tags
	go tool pprof -list work::touch p.pb.gz | grep -q 'memory\[i\] = 1;'
	go tool pprof -raw p.pb.gz | grep -q "^1: 0x0/.* .*/exported [0-9a-f]* \[FN\]\[FL\]\[LN\]\[IN\]"
}

@test "pprof holds what is to be known, and filters apply" {
	needs go
	"$PMREPORT" -q --format pprof -o truth.pb.gz "$SOURCE_DIR/tests/cli/fixtures/truth.json"
	go tool pprof -comments truth.pb.gz | grep -qF 'cycles is not there: cpu-clock is sampled'
	go tool pprof -comments truth.pb.gz | grep -qF '3 samples were lost'
	go tool pprof -tags truth.pb.gz | grep -q ': truncated$'
	"$PMREPORT" -q --format pprof --event cpu-clock --comm 'work er' --time 0%-100% -o part.pb.gz \
		"$SOURCE_DIR/tests/cli/fixtures/truth.json"
	go tool pprof -comments part.pb.gz | grep -qF -- '--time 0%-100% --comm work er'
	go tool pprof -top -sample_index=samples part.pb.gz | grep -q 'Total samples = 16 '
}

@test "callgrind_annotate reads what callgrind has" {
	needs callgrind_annotate
	recording
	"$PMREPORT" -q --format callgrind -o callgrind.out "$REAL"
	# Elsewhere: it calls files by other names in the folder where they are.
	for inclusive in no yes; do
		(cd / && callgrind_annotate --auto=no --threshold=100 --inclusive=$inclusive \
			"$BATS_TEST_TMPDIR/callgrind.out") >$inclusive
	done
	for event in $EVENTS; do
		agree "$event" callgrind no yes
	done
}

@test "speedscope reads its own format, and pprof's" {
	recording
	node_modules
	"$PMREPORT" -q --format speedscope -o real.speedscope.json "$REAL"
	speedscope real.speedscope.json real.speedscope.json >profiles
	for event in $EVENTS; do
		agree "$event" speedscope profiles
	done
	[ "$(jq -r '.[].name' profiles | grep -c '^w (tid ')" = 2 ]
	"$PMREPORT" -q --format pprof --event cpu-clock -o real.pb.gz "$REAL"
	speedscope real.pb.gz real.pb.gz >profiles
	[ "$(jq '.[0].total' profiles)" = "$(jq '.events[0].total.period' \
		"$BATS_FILE_TMPDIR/real-report.json")" ]
}

@test "Firefox Profiler reads what firefox has" {
	recording
	node_modules
	local cli=$NODE_MODULES/@firefox-devtools/profiler-cli/dist/profiler-cli.js thread
	export HOME=$BATS_TEST_TMPDIR
	node "$cli" --version >version.txt 2>&1 ||
		skip "its program does not run: $(head -1 version.txt)"
	"$PMREPORT" -q --format firefox -o real.firefox.json "$REAL"
	PROFILER_CLI=$cli
	# It may say that it is slow. What it leaves running keeps none of our files.
	timeout 60 node "$cli" load real.firefox.json >load.log 2>&1 3>&- || true
	for _ in $(seq 100); do
		timeout 20 node "$cli" thread list --json >list.json 2>load.log && break
		sleep 0.2
	done
	for thread in $(jq -r '.threads[].threadHandle // .threads[].handle' list.json); do
		node "$cli" thread functions --thread "$thread" --include-idle --json >"$thread.json"
	done
	node "$cli" profile meta >meta.txt
	mapfile -t time < <(grep -l '"tracing-ms"' t-*.json)
	mapfile -t faults < <(grep -L '"tracing-ms"' t-*.json)
	agree cpu-clock firefox "${time[@]}"
	agree page-faults firefox "${faults[@]}"
	grep -q 'Event: page-faults' meta.txt
}

@test "perf script's readers find every sample in perf-script" {
	recording
	"$PMREPORT" -q --format perf-script -o real.txt "$REAL"
	for event in $EVENTS; do
		agree "$event" perf-script real.txt
	done
	grep -q 'operator- >' real.txt
	grep -q '^w                [0-9]*/[0-9]* \[[0-9]*\]  *[0-9]*\.[0-9]\{9\}:  *[0-9]* cpu-clock: $' \
		real.txt
}

@test "speedscope reads perf-script, with one event and all of its stacks" {
	recording
	node_modules
	"$PMREPORT" -q --format perf-script --event cpu-clock -o real.txt "$REAL"
	speedscope real.linux-perf.txt real.txt >profiles
	# It takes the time between samples for their weight.
	# Beside one of samples whose thread had just ended, if there are any.
	[ "$(jq -r '.[].name' profiles | grep 'tid: ' | grep -cv 4294967295)" = 2 ]
	jq -e '[.[].frames["work::mix<unsigned int>"][0]] | min > 0' profiles
}

@test "names cannot break any format" {
	for format in pprof firefox speedscope callgrind perf-script; do
		"$PMREPORT" -q --format $format -o hostile.$format "$HOSTILE"
	done
	gzip -t <hostile.pprof
	jq -e '.threads | length > 3' hostile.firefox
	jq -e '.profiles | length > 3' hostile.speedscope
	# Each line of these begins as the format allows; a name with a newline would begin one.
	run ! grep -vE '^$|^#|^(version|creator|pid|cmd|part|desc|positions|event|events|totals):|^(c?ob|fl|c?fn|cfi)=\([0-9]+\)|^calls=[0-9]+ 0$|^[0-9]+( [0-9]+)*$' \
		hostile.callgrind
	run ! grep -vE '^$|^# |^#$|^\S.{15,} [0-9]+/[0-9]+ (\[[0-9]+\] )?[ 0-9]+\.[0-9]{9}: [0-9]+ \S+: $|^	 *[0-9a-f]+ .* \(.*\)$' \
		hostile.perf-script
	[ "$(grep -c '^[^#	].*: $' hostile.perf-script)" = 61 ]
	LC_ALL=C run ! grep -l "$(printf '[\001-\010\013-\037]')" hostile.callgrind hostile.perf-script \
		hostile.firefox hostile.speedscope
}

@test "other programs read the hostile names, too" {
	needs go
	"$PMREPORT" -q --format pprof -o hostile.pb.gz "$HOSTILE"
	go tool pprof -top -nodefraction=0 hostile.pb.gz >top
	grep -qF 'fn=(1) main' top
	if command -v callgrind_annotate >/dev/null; then
		"$PMREPORT" -q --format callgrind -o hostile.out "$HOSTILE"
		callgrind_annotate --auto=no --threshold=100 hostile.out >annotated
		grep -qF 'operator->' annotated
	fi
}

@test "events that one word would name, and threads without an id" {
	# sample records have pid and tid before the event; those of thread 11 lose both.
	sed -E '1s/"name":"cpu-clock"/"name":"page.faults"/
		1s/"actual":"[^"]*"/"actual":"page.faults"/
		/"type":"sample"/s/"pid":10,"tid":11/"pid":null,"tid":null/' \
		"$SOURCE_DIR/tests/cli/fixtures/truth.json" >odd.json
	"$PMREPORT" -q --format callgrind -o odd.out odd.json
	grep -qx 'events: page_faults page_faults_1' odd.out
	"$PMREPORT" -q --format perf-script -o odd.txt odd.json
	[ "$(grep -c ' 4294967295/4294967295 .* page.faults: $' odd.txt)" = 16 ]
	grep -qF 'tid 4294967295 is an unknown one' odd.txt
	"$PMREPORT" -q --format firefox -o odd.firefox.json odd.json
	jq -e '[.threads[].tid] | any(. == "unknown")' odd.firefox.json
}

@test "a terminal gets no gzip" {
	script -qec "'$PMREPORT' --format pprof '$HOSTILE'; echo status \$?" /dev/null >shown
	grep -qF 'pprof is not for a terminal: -o profile.pb.gz writes it to a file' shown
	grep -q 'status 2' shown
	"$PMREPORT" -q --format pprof "$HOSTILE" | gzip -t
}
