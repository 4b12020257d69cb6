#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What pmdiff keeps of commits, and the trends in it. How levels are found is the business of
# test-trend.

load common
load documents

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	# As on a machine where nobody has told git anything.
	export HOME=$BATS_TEST_TMPDIR/home GIT_CONFIG_NOSYSTEM=1
	mkdir home
	cat >home/.gitconfig <<-'END'
		[init]
			defaultBranch = main
		[user]
			useConfigOnly = true
	END
}

# commit SUBJECT: an empty one; prints its hash.
commit() {
	git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m "$1"
	git rev-parse HEAD
}

# subject COMMIT [TIME]: what was run, made of this commit.
subject() {
	printf '{"argv":[],"build_id":null,"commit":"%s","commit_time":%s}' "$1" "${2-null}"
}

# A repository with four commits whose documents are in h; the third one made it worse.
make_history() {
	git init -q . && mkdir h
	one=$(commit 'Begin') && two=$(commit 'Do nothing')
	three=$(commit "${1-Make it slower}") && four=$(commit 'Go on')
	# The later, the earlier it was measured.
	document 1000 2026-01-04T00:00:00Z >"h/$one.json"
	document 1000 2026-01-03T00:00:00Z >"h/$two.json"
	document 1030 2026-01-02T00:00:00Z >"h/$three.json"
	document 1030 2026-01-01T00:00:00Z >"h/$four.json"
}

# trend STATUS ARGUMENT...: keeps `out` and `err`, and expects this status.
trend() {
	local expected=$1 actual=0
	shift
	"$PMDIFF" --trend "$@" >out 2>err || actual=$?
	[ "$actual" = "$expected" ] || {
		echo "status $actual instead of $expected: pmdiff --trend $*"
		cat out err
		return 1
	}
}

# has TEXT: `out` has it.
has() {
	grep -qF -- "$1" out || {
		echo "not there: $1"
		cat out err
		return 1
	}
}

# json EXPRESSION...: all of them are true of the document `d`.
json() {
	python3 - "$@" <<-'END'
		import json, sys
		with open("out") as file:
		    d = json.load(file)
		for e in sys.argv[1:]:
		    if not eval(e):
		        sys.exit("not so: " + e + "\n" + json.dumps(d)[:3000])
	END
}

@test "a trend names the commit, in the order of git" {
	make_history
	trend 0 --history h
	[ "$(head -n 1 out)" = "1 of 1 numbers has moved over 4 commits" ]
	has "from  ${one:0:8}  Begin"
	has "worse  +3.00 %  1,000 → 1,030  ${three:0:8}  Make it slower"
	LC_ALL=C trend 0 --history h
	has '1,000 -> 1,030'
	run ! grep -qP '[^\x00-\x7f]' out
	trend 0 --history h --json
	json '[c["subject"] for c in d["commits"]] == ["Begin", "Do nothing", "Make it slower", "Go on"]' \
		'd["series"][0]["steps"][0]["at"] == 2' \
		"d['series'][0]['steps'][0]['commit'] == '$three'" 'd["warnings"] == []'
}

@test "without a repository commits come in the order of their times" {
	make_history
	rm -rf .git
	trend 0 --history h --json
	json "[c['commit'] for c in d['commits']] == ['$four', '$three', '$two', '$one']" \
		'd["commits"][0]["subject"] is None' 'd["series"][0]["steps"][0]["verdict"] == "better"'
	# The commit's own time is better than that of the measurement.
	document 1000 2026-01-04T00:00:00Z "$(subject "$one" 1)" >"h/$one.json"
	trend 0 --history h --json
	json "d['commits'][0]['commit'] == '$one'"
}

@test "commits that git does not know are put between the others by their times" {
	make_history
	local gone=1111111111111111111111111111111111111111
	document 1000 1999-01-01T00:00:00Z >"h/$gone.json"
	trend 0 --history h --json
	json "[c['commit'] for c in d['commits']] == ['$gone', '$one', '$two', '$three', '$four']"
	document 1030 2099-01-01T00:00:00Z >"h/$gone.json"
	trend 0 --history h --json
	json "d['commits'][4]['commit'] == '$gone'"
}

@test "what is no commit's document is left out, and told" {
	make_history
	local other=2222222222222222222222222222222222222222
	echo hello >h/README
	mkdir "h/3333333333333333333333333333333333333333.json"
	mkfifo "h/4444444444444444444444444444444444444444.json"
	document 1 >h/main.json
	head -c 200 "h/$one.json" >"h/$other.json"
	document 7 2026-01-03T00:00:00Z "$(subject "$other")" >"h/$two.json"
	trend 0 --history h --json
	json 'len(d["commits"]) == 3' 'len(d["warnings"]) == 3' \
		'any("4 entries" in w for w in d["warnings"])' \
		"any('$other.json' in w and 'as JSON' in w for w in d['warnings'])" \
		"any('$two.json' in w and 'another commit' in w for w in d['warnings'])"
}

@test "commits that ran another command are told, and what is hidden is not" {
	make_history
	git init -q h && : >h/.gitkeep
	document 1000 2026-01-04T00:00:00Z '{"argv":["/opt/ci/./bench"],"build_id":null}' >"h/$one.json"
	trend 0 --history h --json
	json 'd["warnings"] == []'
	document 500 2026-01-04T00:00:00Z '{"argv":["./bench","-q"],"build_id":null}' >"h/$one.json"
	trend 0 --history h --json
	json 'len(d["warnings"]) == 1' '"4 commits ran another" in d["warnings"][0]'
}

@test "a run keeps counts of both sides in a directory" {
	git init -q .
	one=$(commit 'Begin') && two=$(commit 'Go on')
	for i in 1 2; do
		"$PMDIFF" run --base HEAD^ -r 2 -w 0 -e page-faults --history h -- true >run 2>err || {
			status=$?
			[ "$status" = 1 ] || { cat err; return 1; }
		}
	done
	[ "$(ls h | LC_ALL=C sort)" = "$(printf '%s.json\n' "$one" "$two" | LC_ALL=C sort)" ]
	python3 - "$two" "$(git show -s --format=%ct)" <<-'END'
		import json, sys
		d = json.load(open("h/" + sys.argv[1] + ".json"))
		assert len(d["runs"]) == 2, d["runs"]
		assert d["subjects"][0]["commit"] == sys.argv[1], d["subjects"]
		assert d["subjects"][0]["commit_time"] == int(sys.argv[2]), d["subjects"]
	END
	trend 0 --history h --all
	has "from  ${one:0:8}  Begin"
}

@test "notes of git, by somebody without a name" {
	git init -q .
	one=$(commit 'Begin') && two=$(commit 'Go on')
	"$PMDIFF" run --base HEAD^ -r 2 -w 0 -e page-faults --history git-notes -- true >run 2>err ||
		[ $? = 1 ] || { cat err; return 1; }
	[ "$(git notes --ref pmdiff list | wc -l)" = 2 ]
	git notes --ref pmdiff show "$two" >out
	json 'd["format"] == "pmstat"' "d['subjects'][0]['commit'] == '$two'" 'len(d["runs"]) == 2'
	git -c user.name=T -c user.email=t@example.org notes --ref pmdiff add -f -m 'not counts' "$one"
	trend 0 --history git-notes:refs/notes/pmdiff --json
	json 'len(d["commits"]) == 1' "'${one:0:12}' in d['warnings'][0]"
	trend 0 --history git-notes:other
	has 'over 0 commits'
}

@test "a history that is not there is told in one line" {
	trend 2 --history nowhere
	[[ $(cat err) == "pmdiff: nowhere: "*"No such file"* ]]
	: >file
	trend 2 --history file
	[[ $(cat err) == "pmdiff: file: "*"Not a directory"* ]]
	GIT_CEILING_DIRECTORIES=$BATS_TEST_TMPDIR trend 2 --history git-notes
	[[ $(cat err) == *"not a git repository"* ]]
	git init -q .
	trend 2 --history git-notes:
	[[ $(cat err) == *"behind the colon"* ]]
	trend 2 --history 'git-notes:a b'
	[[ $(cat err) == *"cannot be the name of a ref"* ]]
	mkdir empty
	trend 0 --history empty
	has 'no number was measured in two commits over 0 commits'
}

@test "where no history can be is told before anything is measured" {
	local status
	git init -q .
	commit 'Begin' && commit 'Go on'
	: >file
	for where in file no/where git-notes:a..b git-notes:; do
		status=0
		"$PMDIFF" run --base HEAD^ --history "$where" -- touch "$PWD/measured" >out 2>err || status=$?
		[ "$(wc -l <err)" -le 2 ] || { cat err; return 1; }
		[[ $where == git-notes* && $status = 2 || $where != git-notes* && $status = 125 ]]
		[ ! -s out ] && [ ! -e measured ]
	done
}

@test "JSON is as its schema says" {
	python3 -c 'import jsonschema' 2>/dev/null || skip 'needs python3-jsonschema'
	make_history
	document 0 >"h/$one.json"
	document 0 >"h/$two.json"
	document 5 2026-01-01T00:00:00Z "$(subject "$(printf '5%.0s' {1..40})")" count \
		>"h/5555555555555555555555555555555555555555.json"
	trend 0 --history h --json
	json 'd["series"][0]["steps"][0]["change"] is None'
	python3 - "$SOURCE_DIR/docs/pmdiff-trend.schema.json" <<-'END'
		import json, jsonschema, sys
		schema = json.load(open(sys.argv[1]))
		jsonschema.Draft202012Validator.check_schema(schema)
		jsonschema.Draft202012Validator(schema).validate(json.load(open("out")))
	END
}

@test "the page in Chromium: its script runs, and no foreign one" {
	local browser
	browser=$(command -v chromium || command -v chromium-browser) || skip 'needs chromium'
	# shellcheck disable=SC2016 # as written
	make_history '</script><img src=x onerror="document.title=`pwned`"> & more'
	trend 0 --history h --html=page.html
	run ! grep -q 'https\?://' page.html
	timeout 60 "$browser" --headless --no-sandbox --disable-dev-shm-usage --dump-dom \
		"file://$PWD/page.html" >dom 2>/dev/null
	# It shows the filter when it can filter.
	grep -q '<div class="tools">' dom
	grep -q '<title>h – trends</title>' dom
	run ! grep -q '<img' dom
	grep -qF '&lt;/script&gt;&lt;img src=x' dom
	[ "$(grep -c '<section' dom)" = 1 ]
}
