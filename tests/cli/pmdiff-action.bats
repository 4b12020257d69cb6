#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The action of GitHub and the script that it and GitLab's job run, literally, with gh and curl
# that record what they are asked (fake-gh.bash): there is no service here. PMDIFF, PMSTAT and
# SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	action=$SOURCE_DIR/docs/ci/action
	export HOME=$BATS_TEST_TMPDIR/home GIT_CONFIG_NOSYSTEM=1 FORGE=$BATS_TEST_TMPDIR/forge
	mkdir home forge bin
	for program in git jq valgrind; do
		command -v "$program" >/dev/null || skip "$program is not there"
	done
	ln -s "$PMDIFF" bin/pmdiff
	ln -s "$PMSTAT" bin/pmstat
	ln -s "$SOURCE_DIR/tests/cli/fake-gh.bash" bin/gh
	ln -s "$SOURCE_DIR/tests/cli/fake-gh.bash" bin/curl
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
	unset "${!GITHUB_@}" "${!CI@}" GITLAB_CI GH_TOKEN "${!PMDIFF_@}"
}

# The commands of the action's step NAME.
step() {
	awk -v name="    - name: $1" '
		$0 == name { found = 1 }
		found && /^      run: \|$/ { script = 1; next }
		script && NF && !/^        / { exit }
		script { sub(/^        /, ""); print }' "$action/action.yml"
}

# repository [FAULTS]: a clone whose last commit costs 5 % more in parse(), with a repository to push
# to; or which may have so many page faults.
repository() {
	git init -q --bare -b main origin.git
	git clone -q origin.git work 2>/dev/null
	cd work || return
	git checkout -q -b main
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
	"engine": "callgrind",
	"functions": ["parse"],
	"runs": 1,
	"gates": { "fn:parse:sim.Ir": "1%" }
}
JSON
	# What needs no valgrind is quick: of what matters is then only whether the job fails.
	if [ -n "${1-}" ]; then
		printf '{"build":"cc -O1 $(cat flags) -o bench parse.c","command":["./bench"],"engine":"count",' >pmdiff.json
		printf '"events":["page-faults"],"runs":1,"warmups":0,"gates":{"page-faults":"<=%s"}}\n' "$1" >>pmdiff.json
	fi
	git add .
	git commit -q -m 'Parse'
	git push -q origin main
	echo '-DROUNDS=105000' >flags
	git commit -q -a -m 'Parse more'
	head=$(git rev-parse HEAD)
}

# As GitHub's runner of a pull request, or with `push`.
github() {
	export GITHUB_ACTIONS=true GITHUB_REPOSITORY=o/r GITHUB_RUN_ID=77 GITHUB_SHA=$head
	export GITHUB_SERVER_URL=https://github.com GITHUB_EVENT_PATH=$BATS_TEST_TMPDIR/event.json
	export GITHUB_STEP_SUMMARY=$BATS_TEST_TMPDIR/summary GITHUB_OUTPUT=$BATS_TEST_TMPDIR/output
	export GITHUB_ACTION_PATH=$action GH_TOKEN=secret
	if [ "${1-}" = push ]; then
		echo '{"ref":"refs/heads/main"}' >"$GITHUB_EVENT_PATH"
	else
		export GITHUB_BASE_REF=main
		printf '{"pull_request":{"number":7,"head":{"sha":"%s"}}}\n' "$head" >"$GITHUB_EVENT_PATH"
	fi
}

# job STATUS: the action's step.
job() {
	local status=0
	step Run >../step
	grep -q 'pmdiff-ci" run' ../step
	bash -e ../step >../log 2>&1 || status=$?
	[ "$status" = "$1" ] || { cat ../log; return 1; }
	grep -qx "status=$1" "$GITHUB_OUTPUT"
}

# What a job leaves, as the schemas say, and what it says of that repository.
left() {
	local form status
	for form in json:json junit:xml sarif:sarif; do
		status=0
		python3 "$SOURCE_DIR/tests/oracle/diff-schema.py" "${form%:*}" \
			"pmdiff-out/pmdiff.${form#*:}" || status=$?
		[ "$status" = 0 ] || [ "$status" = 77 ]
	done
	[[ "$(head -n 1 pmdiff-out/pmdiff.md)" == '### ❌ pmdiff: worse, 1 of 1 gated numbers'* ]]
	# shellcheck disable=SC2016 # code spans of Markdown
	grep -q '^| `fn:parse:sim.Ir` `parse.c:[0-9]*` | .* | +5\.00 % | worse |' pmdiff-out/pmdiff.md
	grep -q '<failure message="+5\.00 %, gate 1 % (pmdiff.json)"' pmdiff-out/pmdiff.xml
	grep -q '"uri":"parse.c","uriBaseId":"%SRCROOT%"},"region":{"startLine":[23]}' \
		pmdiff-out/pmdiff.sarif
	grep -q "style-src 'sha256-" pmdiff-out/pmdiff.html
	# Nothing but that.
	[ "$(git status --porcelain)" = '?? pmdiff-out/' ]
	[ "$(git worktree list | wc -l)" = 1 ]
}

# calls FILTER: how many of the recorded calls jq's FILTER selects.
calls() {
	[ -e "$FORGE/calls" ] || { echo 0; return; }
	jq -c "select($1)" "$FORGE/calls" | wc -l
}

@test "the action is well formed, and takes what the script needs" {
	python3 - "$action/action.yml" <<-'END' || { [ $? = 77 ] && skip 'python3-yaml is not there'; }
		import sys
		try:
		    import yaml
		except ImportError:
		    sys.exit(77)
		a = yaml.safe_load(open(sys.argv[1]))
		assert a["runs"]["using"] == "composite"
		steps = {s["name"]: s for s in a["runs"]["steps"]}
		assert list(steps) == ["Install", "Run", "Upload"], list(steps)
		assert steps["Upload"]["if"] == "always()"
		for step in steps.values():
		    assert "uses" in step or step["shell"] == "bash"
		    for value in step.get("env", {}).values():
		        if "inputs." in value:
		            assert value.split("inputs.")[1].split()[0] in a["inputs"], value
		assert all("description" in i and "default" in i for i in a["inputs"].values())
		assert steps["Run"]["env"]["GH_TOKEN"] == "${{ inputs.token }}"
	END
	shellcheck "$action/pmdiff-ci"
}

@test "a pull request gets one comment, which the next run updates, and a check" {
	repository
	github
	job 1
	[ "$(calls '.method == "POST" and .address == "repos/o/r/issues/7/comments"')" = 1 ]
	[ "$(calls ".method == \"POST\" and .address == \"repos/o/r/check-runs\" and
		.body.name == \"pmdiff\" and .body.head_sha == \"$head\" and .body.status == \"completed\" and
		.body.conclusion == \"failure\" and (.body.output.title | startswith(\"worse, 1 of 1 gated\")) and
		(.body.output.summary | contains(\"fn:parse:sim.Ir\"))")" = 1 ]
	[ "$(wc -l <"$FORGE/calls")" = 4 ]
	jq -e '.[0].body | startswith("<!-- pmdiff-ci:pmdiff -->\n### ❌ pmdiff: worse") and
		contains("pmdiff ack ROW") and contains("https://github.com/o/r/actions/runs/77")' \
		"$FORGE/comments.json"
	cmp "$GITHUB_STEP_SUMMARY" pmdiff-out/pmdiff.md
	left
	# Somebody else's comments stay as they are.
	jq '[{id: 5, body: "Nice! <!-- pmdiff-ci:pmdiff -->", user: {type: "Bot"}},
		{id: 6, body: "<!-- pmdiff-ci:pmdiff -->\nQuoted", user: {type: "User"}}] + .' "$FORGE/comments.json" >c
	mv c "$FORGE/comments.json"
	echo '-DROUNDS=100000' >flags
	git commit -q -a -m 'Parse as before'
	job 0
	[ "$(calls '.method == "PATCH" and .address == "repos/o/r/issues/comments/1000"')" = 1 ]
	[ "$(calls '.method == "POST" and (.address | endswith("/comments"))')" = 1 ]
	jq -e 'length == 3 and .[0].id == 5 and (.[0].body | startswith("Nice!")) and
		(.[1].body | endswith("Quoted")) and (.[2].body | contains("### ✅ pmdiff: no change"))' "$FORGE/comments.json"
	[ "$(calls '.body.conclusion == "success"')" = 1 ]
	[ "$(cd pmdiff-out && echo * .[!.]*)" = 'pmdiff.html pmdiff.json pmdiff.md pmdiff.sarif pmdiff.xml .[!.]*' ]
}

@test "the project's own code gets no token" {
	repository 100000
	sed -i "s:\"build\"\:\":&env >>$BATS_TEST_TMPDIR/environment; :" pmdiff.json
	github
	export GITHUB_TOKEN=secret PMDIFF_TOKEN=secret
	job 0
	grep -q '^PATH=' ../environment
	run ! grep -E 'secret|TOKEN' ../environment
	# What writes the comment has it.
	[ "$(calls '.method == "POST" and (.address | endswith("/comments"))')" = 1 ]
}

@test "without a token, or where it may not write, the result is the same" {
	repository 1
	github
	GH_TOKEN='' job 1
	[ "$(calls true)" = 0 ]
	grep -q 'no token' ../log
	echo POST >"$FORGE/refuse"
	job 1
	grep -q 'the comment could not be written: it needs the permission pull-requests: write' ../log
	grep -q 'the check could not be written: it needs the permission checks: write' ../log
	# Comments that cannot be listed may have ours: no second one is written.
	rm "$FORGE/calls"
	echo GET >"$FORGE/refuse"
	job 1
	grep -q 'the comment could not be written' ../log
	[ "$(calls '.method == "POST" and (.address | endswith("/comments"))')" = 0 ]
	rm "$FORGE/calls" "$FORGE/refuse"
	# Nor where there is no program that could write it.
	rm ../bin/gh
	if ! command -v gh; then
		job 1
		grep -q 'gh is missing: it writes the comment' ../log
	fi
	PMDIFF_COMMENT=no job 1
	[ "$(calls true)" = 0 ]
}

@test "a build that breaks is told in the comment, and is no success" {
	repository 100000
	echo '-DROUNDS=' >flags
	git commit -q -a -m 'Break it'
	github
	job 125
	jq -e '.[0].body | contains("nothing was compared")' "$FORGE/comments.json"
	[ "$(calls '.body.conclusion == "failure"')" = 1 ]
}

@test "results of an earlier run are not taken for those of one that fails" {
	repository 1
	github
	mkdir -p pmdiff-out/.history
	for file in pmdiff.json pmdiff.md pmdiff.xml trend.html pmdiff-flame-x.html; do
		echo '### ✅ pmdiff: no change' >"pmdiff-out/$file"
	done
	echo '{' >pmdiff.json
	job 2
	[ "$(ls -A pmdiff-out)" = pmdiff.md ]
	grep -q '^### ❌ pmdiff: it failed (exit status 2) before' pmdiff-out/pmdiff.md
	[ "$(calls '.body.conclusion == "failure"')" = 1 ]
	jq -e '.[0].body | contains("it failed")' "$FORGE/comments.json"
}

@test "the main branch keeps its history in notes of git, and requests only read it" {
	repository 100000
	github push
	PMDIFF_HISTORY=git-notes job 0
	[ "$(git -C ../origin.git notes --ref pmdiff list | wc -l)" = 2 ]
	[ "$(calls '.address | endswith("/comments")')" = 0 ]
	[ "$(calls '.body.conclusion == "success"')" = 1 ]
	grep -q '<title>' pmdiff-out/trend.html
	# Somebody has pushed meanwhile.
	git clone -q ../origin.git ../other
	(
		cd ../other
		git fetch -q origin refs/notes/pmdiff:refs/notes/pmdiff
		git -c user.name=T -c user.email=t@example.org notes --ref pmdiff append -m x HEAD
		git push -q origin refs/notes/pmdiff
	)
	echo '-DROUNDS=100000' >flags
	git commit -q -a -m 'Parse as before'
	PMDIFF_HISTORY=git-notes job 0
	[ "$(git -C ../origin.git notes --ref pmdiff list | wc -l)" = 3 ]
	git push -q origin main
	echo '-DROUNDS=100001' >flags
	git commit -q -a -m 'Parse one more'
	github
	PMDIFF_HISTORY=git-notes job 0
	[ "$(git -C ../origin.git notes --ref pmdiff list | wc -l)" = 3 ]
}

@test "by hand, notes that are not pushed stay, and nothing is pushed" {
	repository 100000
	github push
	PMDIFF_HISTORY=git-notes job 0
	git fetch -q origin refs/notes/pmdiff:refs/notes/kept
	git update-ref -d refs/notes/pmdiff
	git commit -q --allow-empty -m 'Measured here'
	git notes --ref pmdiff add -m mine HEAD
	git commit -q --allow-empty -m 'Next'
	unset "${!GITHUB_@}" GH_TOKEN
	PMDIFF_HISTORY=git-notes "$action/pmdiff-ci" run 2>../log || { cat ../log; return 1; }
	[ "$(git notes --ref pmdiff show HEAD~2)" = "$(git notes --ref kept show HEAD~2)" ]
	git notes --ref pmdiff show HEAD~1
	[ "$(git -C ../origin.git notes --ref pmdiff list | wc -l)" = 2 ]
}

@test "a history on a branch of its own" {
	repository 100000
	github push
	PMDIFF_HISTORY=branch:perf job 0
	[ "$(git -C ../origin.git ls-tree --name-only perf | wc -l)" = 2 ]
	git -C ../origin.git cat-file -e "perf:$head.json"
	echo '-DROUNDS=100000' >flags
	git commit -q -a -m 'Parse as before'
	PMDIFF_HISTORY=branch:perf job 0
	[ "$(git -C ../origin.git ls-tree --name-only perf | wc -l)" = 3 ]
	[ "$(git -C ../origin.git rev-list --count perf)" = 2 ]
	[ "$(git worktree list | wc -l)" = 1 ]
	grep -q '<tr data-line=' pmdiff-out/trend.html
	PMDIFF_HISTORY=somewhere run bash -e ../step
	[ "$status" = 2 ]
}

@test "GitLab's job writes a note of the merge request, and a status" {
	local status=0
	python3 "$SOURCE_DIR/tests/ci/gitlab.py" "$SOURCE_DIR/docs/ci/gitlab.yml" pmdiff >script || status=$?
	[ "$status" != 77 ] || skip "$(cat script)"
	repository
	mkdir -p ../pmrec/docs/ci
	ln -s "$action" ../pmrec/docs/ci/action
	sed "s:/tmp/pmrec:$BATS_TEST_TMPDIR/pmrec:" ../script >../job
	grep -q 'pmdiff-ci run' ../job
	export GITLAB_CI=true CI_API_V4_URL=https://gitlab.com/api/v4 CI_PROJECT_ID=3 CI_COMMIT_SHA=$head
	export CI_MERGE_REQUEST_IID=9 CI_MERGE_REQUEST_DIFF_BASE_SHA PMDIFF_TOKEN=secret CI_JOB_URL=https://gitlab.com/j/1
	CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git rev-parse HEAD~1)
	# A person's note, which begins as ours does.
	echo '[{"id":5,"body":"<!-- pmdiff-ci:pmdiff -->","author":{"id":7}}]' >"$FORGE/comments.json"
	for _ in 1 2; do
		status=0
		bash -e ../job >../log 2>&1 || status=$?
		[ "$status" = 1 ] || { cat ../log; return 1; }
	done
	left
	local api=https://gitlab.com/api/v4/projects/3
	[ "$(calls ".method == \"POST\" and .address == \"$api/merge_requests/9/notes\"")" = 1 ]
	[ "$(calls ".method == \"PUT\" and .address == \"$api/merge_requests/9/notes/1001\" and
		(.body.body | contains(\"fn:parse:sim.Ir\"))")" = 1 ]
	[ "$(calls ".address == \"$api/statuses/$head\" and .body.state == \"failed\"")" = 2 ]
}

# sources: of a pmrec that is installed quickly, and the action's step that installs it.
sources() {
	mkdir source
	# shellcheck disable=SC2016 # make's
	printf 'install:\n\tmkdir -p $(PREFIX)/bin && cp bench $(PREFIX)/bin/pmdiff\n' >source/Makefile
	printf '#!/bin/sh\necho installed\n' >source/bench && chmod +x source/bench
	step Install >step
	export GITHUB_ACTION_PATH=$action GITHUB_PATH=$PWD/path RUNNER_TEMP=$PWD PREFIX=$PWD/prefix
	export PMREC_SOURCE=$PWD/source PMREC_URL='' PMREC_REF=main
}

@test "installing builds pmrec from where the script is, and makes it found" {
	sources
	bash -e step
	[ "$(cat path)" = "$PWD/prefix/bin" ]
	[ "$(prefix/bin/pmdiff)" = installed ]
}

@test "installing installs make and the programs of a run that are missing" {
	local program bash
	bash=$(command -v bash)
	sources
	mkdir few
	for program in sh env id dirname cat mkdir cp ln valgrind; do
		ln -s "$(command -v "$program")" few
	done
	printf '#!/bin/sh\nexec "$@"\n' >few/sudo
	# As in the image of a container: without `update`, no package is known.
	cat >few/apt-get <<-END
		#!/bin/sh
		echo "\$*" >>$PWD/asked
		if [ "\$1" = update ]; then
			mkdir $PWD/lists
		elif [ -e $PWD/lists ]; then
			ln -s $(command -v make) $(command -v jq) $PWD/few
		fi
	END
	chmod +x few/*
	PATH=$PWD/few run "$bash" -e step
	[ "$status" = 0 ] || { echo "$output"; return 1; }
	[ "$(cat asked)" = "$(printf 'update -qq\ninstall -y -qq --no-install-recommends make jq')" ]
	[ "$(prefix/bin/pmdiff)" = installed ]
	# Without a way to install them, one line names them.
	rm few/make few/apt-get
	PATH=$PWD/few run "$bash" -e step
	[ "$status" = 2 ]
	[ "$output" = 'pmdiff-ci: missing: make; there is no apt-get: install them before this step' ]
}
