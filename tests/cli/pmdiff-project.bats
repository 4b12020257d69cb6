#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A small project with benchmarks of google-benchmark and a harness in Rust that is called as
# criterion's is. It has twelve commits whose changes are known; each is a pull request, and the
# job of the action runs for it as it stands there, in a clone of its own with an empty HOME.
# PMDIFF, PMSTAT and SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0

# c_source NAME ROUNDS: a function NAME(), whose cost is so many rounds.
c_source() {
	cat >"$1.c" <<-END
		unsigned $1(void)
		{
			unsigned sum = 7;
			for (unsigned i = 0; i < $2; i++)
				sum = sum * 31 ^ i;
			return sum;
		}
	END
}

# rust_source ROUNDS
rust_source() {
	cat >harness.rs <<-END
		// Lists and runs cases with the words that criterion takes.
		#[inline(never)]
		fn checksum(rounds: u32) -> u32 {
		    let mut sum = 7u32;
		    for i in 0..unsafe { std::ptr::read_volatile(&rounds) } {
		        sum = sum.wrapping_mul(31) ^ i;
		    }
		    sum
		}
		fn main() {
		    let words: Vec<String> = std::env::args().skip(1).collect();
		    if words.iter().any(|word| word == "--list") {
		        println!("checksum/1: benchmark");
		    } else if words.iter().any(|word| word == "checksum/1") {
		        println!("{}", checksum($1));
		    }
		}
	END
}

google_source() {
	cat >bench.cc <<-END
		#include <benchmark/benchmark.h>
		extern "C" unsigned parse(), emit();
		static void BM_parse(benchmark::State &state)
		{
			for (auto _ : state)
				benchmark::DoNotOptimize(parse());
		}
		static void $1(benchmark::State &state)
		{
			for (auto _ : state)
				benchmark::DoNotOptimize(emit());
		}
		BENCHMARK(BM_parse);
		BENCHMARK($1);
		BENCHMARK_MAIN();
	END
}

# What is compiled before is not compiled again: objects are kept by their sources.
build_script() {
	cat >build.sh <<-'END'
		#!/bin/sh
		set -e
		# once OUTPUT SOURCE COMMAND...
		once() {
			kept=$CACHE/$1-$(sha1sum <"$2" | cut -c 1-40)
			output=$1
			shift 2
			[ -e "$kept" ] || { "$@" -o "$kept.$$" && mv "$kept.$$" "$kept"; }
			cp "$kept" "$output"
		}
		once bench.o bench.cc g++ -O1 -c bench.cc
		once parse.o parse.c cc -g -O1 -c parse.c
		once emit.o emit.c cc -g -O1 -c emit.c
		g++ bench.o parse.o emit.o -o bench -lbenchmark -lpthread
		[ ! -e harness.rs ] || once harness harness.rs rustc -g -O --crate-name harness harness.rs
	END
	chmod +x build.sh
}

config() {
	local rust=
	[ ! -e harness.rs ] || rust=',
		{"name": "rust", "command": ["./harness"], "harness": "criterion", "functions": ["harness::checksum"]}'
	cat >pmdiff.json <<-END
		{
			"build": "./build.sh", "engine": "callgrind", "runs": 1, "profile": false,
			"history": "$BATS_FILE_TMPDIR/history",
			"gates": {"fn:*:sim.Ir": "1%"},
			"cases": [
				{"name": "bench", "command": ["./bench"], "harness": "google-benchmark",
				 "functions": ["parse", "emit"]}$rust
			]
		}
	END
}

commit() {
	git add -A
	git commit -q -m "$1"
	git tag "c$((++commits))"
}

make_commits() {
	commits=0
	google_source BM_emit && c_source parse 10000 && c_source emit 10000
	build_script && config
	printf '*.o\nbench\nharness\npmdiff-out\n' >.gitignore
	commit 'Begin'
	c_source parse 10200 && commit 'Parse 2 % more'
	echo 'A project.' >README && commit 'Say what it is'
	c_source emit 13000 && commit 'Emit 30 % more'
	c_source parse 8160 && commit 'Parse 20 % less'
	google_source BM_write && commit 'Call it write'
	c_source parse '' && commit 'Break the build'
	[ -z "$rust" ] || rust_source 10000
	c_source parse 8160 && config && commit 'Mend the build, and sum up in Rust'
	[ -z "$rust" ] || rust_source 13000
	echo 1 >checksum && commit 'Sum up 30 % more'
	echo 'In C.' >>README && commit 'Say more'
	c_source emit 13260 && commit 'Emit 2 % more'
	c_source emit 10608 && c_source parse 10608 && commit 'Emit 20 % less, and parse 30 % more'
}

# job COMMIT BASE: the action's step for a pull request with it. Its status is in COMMIT.status.
job() {
	local status=0
	(
		git checkout -q "$1"
		git update-ref refs/remotes/origin/main "$2"
		export GITHUB_EVENT_PATH=$PWD/../event-$1.json GITHUB_OUTPUT=$PWD/../output-$1
		export GITHUB_BASE_REF=main PMDIFF_OUT=$PWD/../out-$1
		printf '{"pull_request":{"number":%s,"head":{"sha":"%s"}}}\n' "${1#c}" \
			"$(git rev-parse HEAD)" >"$GITHUB_EVENT_PATH"
		bash -e "$BATS_FILE_TMPDIR/step" >"../log-$1" 2>&1
	) || status=$?
	echo "$status" >"../$1.status"
}

# lane NAME COMMIT:BASE...: one job after the other, in a clean clone.
lane() {
	local pair
	git clone -q "$BATS_FILE_TMPDIR/project" "$BATS_FILE_TMPDIR/$1/work" || return
	cd "$BATS_FILE_TMPDIR/$1/work" || return
	shift
	for pair; do
		job "${pair%:*}" "${pair#*:}"
	done
}

setup_file() {
	local program
	for program in git jq valgrind g++; do
		command -v "$program" >/dev/null || skip "$program is not there"
	done
	echo '#include <benchmark/benchmark.h>' >"$BATS_FILE_TMPDIR/has.cc"
	g++ -fsyntax-only "$BATS_FILE_TMPDIR/has.cc" 2>/dev/null || skip 'no libbenchmark'
	# rustup's programs look in HOME.
	export RUSTUP_HOME=${RUSTUP_HOME-$HOME/.rustup} CARGO_HOME=${CARGO_HOME-$HOME/.cargo}
	rust=
	! rustc --version >/dev/null 2>&1 || rust=yes
	export rust HOME=$BATS_FILE_TMPDIR/home GIT_CONFIG_NOSYSTEM=1 CACHE=$BATS_FILE_TMPDIR/cache
	export GITHUB_ACTIONS=true GITHUB_REPOSITORY=o/r GITHUB_RUN_ID=1 GITHUB_SHA=0
	export GITHUB_SERVER_URL=https://github.com GITHUB_STEP_SUMMARY=/dev/null GH_TOKEN=secret
	export GITHUB_ACTION_PATH=$SOURCE_DIR/docs/ci/action
	export GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@example.org
	export GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@example.org
	unset "${!PMDIFF_@}"
	cd "$BATS_FILE_TMPDIR" || return
	mkdir home cache bin one two history
	ln -s "$PMDIFF" bin/pmdiff
	ln -s "$PMSTAT" bin/pmstat
	ln -s "$SOURCE_DIR/tests/cli/fake-gh.bash" bin/gh
	export PATH=$PWD/bin:$PATH
	awk '/^    - name: Run$/ { found = 1 }
		found && /^      run: \|$/ { script = 1; next }
		script && NF && !/^        / { exit }
		script { sub(/^        /, ""); print }' "$GITHUB_ACTION_PATH/action.yml" >step
	git init -q -b main project
	(cd project && make_commits)
	# The one that does not build is not merged.
	FORGE=$PWD/one lane one c2:c1 c3:c2 c4:c3 c5:c4 c6:c5 &
	FORGE=$PWD/two lane two c7:c6 c8:c6 c9:c8 c10:c9 c11:c10 c12:c11 &
	wait
}

# result COMMIT: where its job left what it says.
result() {
	echo "$BATS_FILE_TMPDIR"/*/"out-$1/pmdiff.$2"
}

# ended COMMIT STATUS
ended() {
	local status
	status=$(cat "$BATS_FILE_TMPDIR"/*/"$1.status")
	[ "$status" = "$2" ] || {
		echo "status $status instead of $2"
		cat "$BATS_FILE_TMPDIR"/*/"log-$1"
		return 1
	}
}

# rows COMMIT VERDICT...: these are its gated rows of functions that changed: CASE FUNCTION VERDICT
# PERCENT.
rows() {
	local expected actual
	expected=$(printf '%s\n' "${@:2}" | sort)
	actual=$(jq -r '.rows[] | select(.gated and .event == "sim.Ir" and (.verdict == "worse" or .verdict == "better"))
		| "\(.case) \(.scope) \(.verdict) \(.change * 100 | round)"' "$(result "$1" json)" | sort)
	[ "$expected" = "$actual" ] || {
		echo "expected: $expected"
		echo "actual:   $actual"
		cat "$(result "$1" md)"
		return 1
	}
}

# forge COMMIT FILTER: jq's FILTER is true of the comment that its job wrote.
comment() {
	jq -e -s --arg number "${1#c}" \
		"[.[] | select(.address == \"repos/o/r/issues/\(\$number)/comments\" or (.address | contains(\"issues/comments/\")))
		| .body.body // empty | select(contains(\"pmdiff-ci:pmdiff\"))] | any($2)" \
		"$BATS_FILE_TMPDIR"/*/calls >/dev/null
}

@test "2 % more are found in their case and function" {
	ended c2 1
	rows c2 'BM_parse parse worse 2'
	head -n 1 "$(result c2 md)" | tr -d '\\' | grep -qF 'BM_parse//fn:parse:sim.Ir +2.00 %'
	grep -q 'parse.c' "$(result c2 sarif)"
	comment c2 'contains("fn:parse:sim.Ir")'
	ended c11 1
	rows c11 'BM_write emit worse 2'
}

@test "30 % more are, too" {
	ended c4 1
	rows c4 'BM_emit emit worse 30'
}

@test "20 % less are better" {
	ended c5 0
	rows c5 'BM_parse parse better -20'
	[[ $(head -n 1 "$(result c5 md)") == '### ✅ pmdiff: better'* ]]
}

@test "what changes nothing changes nothing" {
	ended c3 0
	rows c3
	ended c10 0
	rows c10
	[[ $(head -n 1 "$(result c3 md)") == '### ✅ pmdiff: no change'* ]]
}

@test "a benchmark that is renamed is one that is gone and a new one" {
	ended c6 0
	rows c6
	[ "$(jq -r '.cases[] | select(.verdict == "new" or .verdict == "gone") | "\(.name) \(.verdict)"' \
		"$(result c6 json)" | sort)" = "$(printf 'BM_emit gone\nBM_write new')" ]
}

@test "a build that breaks fails, and the next one is compared with what is merged" {
	ended c7 125
	comment c7 'contains("nothing was compared")'
	grep -q '<error' "$(result c7 xml)"
	ended c8 0
	rows c8
	[ -z "$rust" ] || [ "$(jq -r '.cases[] | select(.verdict == "new").name' "$(result c8 json)")" = checksum/1 ]
}

@test "two changes of one commit are found each" {
	ended c12 1
	rows c12 'BM_parse parse worse 30' 'BM_write emit better -20'
}

@test "30 % more of the Rust harness are found" {
	[ -n "$rust" ] || skip 'rustc is not there'
	ended c9 1
	rows c9 'checksum/1 harness::checksum worse 30'
}

@test "the trend has a line a case, and its steps in the commits that made them" {
	cd "$BATS_FILE_TMPDIR/project"
	"$PMDIFF" --history "$BATS_FILE_TMPDIR/history" --trend --json >"$BATS_TEST_TMPDIR/trend.json"
	run jq -r '. as $all | .series[] | select(.event == "sim.Ir" and (.scope == "parse" or .scope == "emit"))
		| select(.steps | length > 0) | .case as $case | .scope as $scope
		| .steps[] | "\($case) \($scope) \(.verdict) \(.change * 100 | round) \($all.commits[.at].subject)"' \
		"$BATS_TEST_TMPDIR/trend.json"
	[ "$(sort <<<"$output")" = "$(sort <<-'END'
		BM_parse parse worse 2 Parse 2 % more
		BM_parse parse better -20 Parse 20 % less
		BM_parse parse worse 30 Emit 20 % less, and parse 30 % more
		BM_emit emit worse 30 Emit 30 % more
		BM_write emit worse 2 Emit 2 % more
		BM_write emit better -20 Emit 20 % less, and parse 30 % more
	END
	)" ] || { echo "$output"; return 1; }
	grep -q '<tr data-line=' "$BATS_FILE_TMPDIR/two/out-c12/trend.html"
}
