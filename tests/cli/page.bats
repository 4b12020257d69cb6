#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The page of --html in Chromium. tests/page/drive.mjs runs all checks in one browser, once for
# the file; each test below reads how its check ended. PMREPORT, SOURCE_DIR and BUILD_DIR come
# from meson. Where Chromium, node or what npm fetches is missing, the tests skip.

bats_require_minimum_version 1.5.0

# fetch FOLDER: playwright-core as the lock file has it; into the build, never into the sources.
fetch() {
	mkdir -p "$1" && cp "$SOURCE_DIR"/tests/page/package*.json "$1" || return
	cmp -s "$1/package-lock.json" "$1/installed-lock.json" && return
	(cd "$1" && timeout 120 npm ci --ignore-scripts --no-audit --no-fund) >"$1/npm.log" 2>&1 &&
		cp "$1/package-lock.json" "$1/installed-lock.json"
}

# Pages with known truth: the fixture of pmreport.bats, the same against a run without half of
# sixty(int), the same with names that would like to be markup, and one with 200,000 nodes.
make_pages() {
	local truth=$SOURCE_DIR/tests/cli/fixtures/truth.json

	"$PMREPORT" --json "$truth" >truth.report.json 2>/dev/null || return
	"$PMREPORT" --html truth.html "$truth" || return
	awk '/"type":"sample"/ && /"tid":10,.*"event":0,.*"stack":1}/ && ++n <= 30 { next } { print }' \
		"$truth" >base.json
	"$PMREPORT" --html diff.html --diff base.json "$truth" || return
	python3 - "$truth" >hostile.json <<-'END' || return
		import json, sys
		names = ['<img src=x onerror="window.__pwned=1">', '</script><script>window.__pwned=2</script>',
		         "'\"--><svg onload=window.__pwned=3>", ']]><iframe srcdoc="x"></iframe>',
		         '__proto__', 'constructor\u2028window.__pwned=4', '\u202elanif\\"; window.__pwned=5; "']
		for line in open(sys.argv[1]):
		    o = json.loads(line)
		    if o['type'] == 'symbol':
		        for f in o['functions']:
		            f['name'] = names[o['frame'] % len(names)]
		    elif o['type'] == 'module':
		        o['path'] = '/opt/' + names[o['id'] % len(names)]
		    elif o['type'] == 'thread':
		        o['comm'] = names[o['tid'] % 2]
		    elif o['type'] == 'header':
		        o['command'] = names
		        o['events'][1]['name'] = names[1]
		    print(json.dumps(o))
	END
	"$PMREPORT" --html hostile.html hostile.json || return
	python3 "$SOURCE_DIR/tests/bench/make-recording" --nodes 200000 --samples 200000 -o many.json \
		>/dev/null && "$PMREPORT" --html many.html many.json && rm many.json
}

setup_file() {
	local modules=$BUILD_DIR/tests/page program chromium

	export LC_ALL=C.UTF-8
	cd "$BATS_FILE_TMPDIR" || return
	for program in node npm chromium; do
		command -v $program >/dev/null && continue
		echo "$program is not installed" >skip
		return
	done
	chromium=$(command -v chromium)
	# Ubuntu's package is a stub for a snap, which does not run in a container.
	timeout 60 "$chromium" --version >version 2>&1 || {
		echo 'the installed chromium does not start (a snap?)' >skip
		return
	}
	fetch "$modules" || {
		echo "npm cannot fetch playwright-core: $(grep -m 1 -i error "$modules/npm.log")" >skip
		return
	}
	make_pages || return
	# HOME and the profile are the test's own; the time is for a machine that does much else.
	HOME=$PWD timeout 300 node "$SOURCE_DIR/tests/page/drive.mjs" \
		"$modules/node_modules/playwright-core/index.js" "$chromium" "$PWD" >driver.log 2>&1 ||
		echo "the driver ended with $?" >>driver.log
}

# outcome NAME: of the check of that name in tests/page/drive.mjs.
outcome() {
	cd "$BATS_FILE_TMPDIR" || return
	[ ! -e skip ] || skip "$(cat skip)"
	[ -e "results/$1" ] || {
		cat driver.log >&2
		return 1
	}
	sed 's/^/# /' "results/$1.notes" >&3
	[ "$(cat "results/$1")" = ok ] || {
		cat "results/$1" >&2
		return 1
	}
}

@test "a page opens without a complaint or a request" {
	outcome open
}

@test "a click zooms, the menu hides, and back is a way out" {
	outcome zoom
}

@test "a search matches what the report counts" {
	outcome search
}

@test "an inverted graph begins with what costs most, and callers are right" {
	outcome invert
}

@test "a range of time and a thread filter every view" {
	outcome range
}

@test "the table sorts, filters and agrees with the report" {
	outcome sort
}

@test "everything can be done from the keyboard" {
	outcome keyboard
}

@test "texts have contrast, in the dark as well" {
	outcome contrast
}

@test "the address keeps what is seen" {
	outcome hash
}

@test "names of functions are never markup" {
	outcome hostile
}

@test "two runs are compared with signs and colours" {
	outcome diff
}

@test "200,000 nodes are shown without waiting" {
	outcome many
}

@test "without scripts there is a table" {
	outcome noscript
}
