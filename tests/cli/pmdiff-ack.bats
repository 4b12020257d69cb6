#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Accepted regressions, and gates over the history. PMDIFF and SOURCE_DIR come from meson.

load documents

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export HOME=$BATS_TEST_TMPDIR/home GIT_CONFIG_NOSYSTEM=1
	mkdir home
	for value in 900 1000 1003 1018 1030 1040 1200; do
		document "$value" >"$value.json"
	done
}

# judge STATUS ARGUMENT...: runs pmdiff, keeping `out` and `err`, and expects this status.
judge() {
	local expected=$1 actual=0
	shift
	"$PMDIFF" "$@" >out 2>err || actual=$?
	[ "$actual" = "$expected" ] || {
		echo "status $actual instead of $expected: pmdiff $*"
		cat out err
		return 1
	}
}

# has TEXT [FILE]: `out` has it.
has() {
	grep -qF -- "$1" "${2-out}" || {
		echo "not there: $1"
		cat "${2-out}" err
		return 1
	}
}

# is_so EXPRESSION...: all of them are true of the document `out`.
is_so() {
	python3 - "$@" <<-'END'
		import json, sys
		d = json.load(open("out"))
		for e in sys.argv[1:]:
		    if not eval(e):
		        sys.exit("not so: " + e + "\n" + json.dumps(d)[:3000])
	END
}

gate=(--gate 'sim.Ir=1%')

# accept FILE NEW [REASON]: what is worse there from 1000.json on.
accept() {
	judge 1 1000.json "$2" "${gate[@]}" --json=result.json
	judge 0 ack sim.Ir --reason "${3-checks the input}" result.json
}

@test "an accepted regression fails nothing, and is shown with its reason everywhere" {
	accept sim.Ir 1030.json
	[ ! -s out ]
	has 'accepted: sim.Ir up to 1030' err
	has 'pmdiff-acks.json: commit it' err
	judge 0 1000.json 1030.json "${gate[@]}" --json=d.json --markdown=d.md --junit=d.xml \
		--sarif=d.sarif --html=d.html
	has 'accepted'
	has 'checks the input'
	has 'checks the input' d.md
	has 'checks the input' d.xml
	has 'checks the input' d.sarif
	has 'checks the input' d.html
	run ! grep -q '<failure' d.xml
	mv d.json out
	is_so 'd["verdict"] == "changed"' 'd["rows"][0]["verdict"] == "accepted"' \
		'd["rows"][0]["ack"] == {"reason": "checks the input", "from": 1000, "to": 1030, "commit": None}' \
		'd["counts"]["accepted"] == 1' 'd["counts"]["worse"] == 0'
	local form status
	for form in json:out junit:d.xml sarif:d.sarif; do
		status=0
		python3 "$SOURCE_DIR/tests/oracle/diff-schema.py" "${form%%:*}" "${form#*:}" || status=$?
		[ "$status" = 0 ] || [ "$status" = 77 ]
	done
}

@test "an acceptance ends at its level, and at the base that it was for" {
	accept sim.Ir 1030.json
	# By the gate, which the row has anyway.
	judge 0 1000.json 1040.json "${gate[@]}"
	judge 1 1000.json 1200.json "${gate[@]}"
	has 'was accepted, but not this'
	# The way back from a better base is another regression.
	judge 1 900.json 1030.json "${gate[@]}"
	judge 1 1018.json 1030.json "${gate[@]}"
	has 'was accepted, but not this'
	# A better value is as good as ever.
	judge 0 1000.json 1003.json "${gate[@]}"
	# The next one is in its place.
	accept sim.Ir 1200.json 'twice as much'
	judge 0 1000.json 1200.json "${gate[@]}"
	has 'twice as much'
	judge 0 ack
	[ "$(cat out)" = 'sim.Ir  from 1000  up to 1200
  twice as much' ]
	judge 0 ack --remove sim.Ir
	judge 1 1000.json 1030.json "${gate[@]}"
	judge 0 ack
	has 'no regression is accepted'
}

@test "an accepted level beyond a hard limit holds when it has become the base" {
	judge 1 1000.json 1030.json --gate 'sim.Ir<=1010' --json=result.json
	judge 0 ack sim.Ir --reason 'checks the input' result.json
	judge 0 1000.json 1030.json --gate 'sim.Ir<=1010'
	judge 0 1030.json 1030.json --gate 'sim.Ir<=1010'
	judge 1 1030.json 1040.json --gate 'sim.Ir<=1010'
	# With a gate beside the limit the base counts again.
	judge 0 1030.json 1030.json "${gate[@]}" --gate 'sim.Ir<=1010'
	judge 1 1018.json 1030.json "${gate[@]}" --gate 'sim.Ir<=1010'
}

@test "a case means all its rows that failed, a glob those that it fits" {
	suite small 1000 large 1000 other 1000 >base.json
	suite small 1030 large 1200 other 1000 >new.json
	judge 1 base.json new.json "${gate[@]}" --json=result.json
	judge 0 ack large --reason 'a larger table' result.json
	judge 0 ack
	[ "$(grep -c 'up to' out)" = 1 ]
	has 'large//sim.Ir  from 1000  up to 1200'
	judge 1 base.json new.json "${gate[@]}"
	has 'small//sim.Ir'
	judge 0 ack 'sm*' --reason 'slower' result.json
	judge 0 base.json new.json "${gate[@]}"
	judge 2 ack other --reason 'no' result.json
	has 'other has not failed' err
	has 'large//sim.Ir, small//sim.Ir' err || has 'small//sim.Ir, large//sim.Ir' err
}

@test "the file is that of the repository, with the commit that is named" {
	git init -q -b main repository
	cd repository
	git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m 'Do more'
	mkdir inner && cd inner
	judge 1 ../../1000.json ../../1030.json "${gate[@]}" --json=r.json
	judge 0 ack sim.Ir --reason 'why not' --commit HEAD r.json
	cd ..
	has "\"commit\":\"$(git rev-parse HEAD)\"" pmdiff-acks.json
	python3 -m json.tool pmdiff-acks.json >/dev/null
	judge 0 ../1000.json ../1030.json "${gate[@]}"
	judge 0 ack --acks other.json
	has 'no regression is accepted'
	judge 1 --acks other.json ../1000.json ../1030.json "${gate[@]}"
}

@test "wrong use and wrong files are told in one line" {
	judge 2 ack sim.Ir
	has 'why is it accepted?' err
	judge 2 ack sim.Ir --reason ' ' 1000.json
	judge 2 ack sim.Ir --reason x
	has 'which level is accepted?' err
	judge 2 ack sim.Ir --reason x nowhere.json
	has 'nowhere.json: cannot be read' err
	judge 2 ack sim.Ir --reason x 1000.json
	has 'is no file of format pmdiff' err
	judge 2 ack --reason x
	# What no reader takes is not written.
	judge 1 1000.json 1030.json "${gate[@]}" --json=result.json
	judge 2 ack sim.Ir --reason "$(printf 'x%.0s' {1..4097})" result.json
	has 'the reason xxx' err
	has 'has more than 4096 bytes' err
	[ ! -e pmdiff-acks.json ]
	judge 0 ack sim.Ir --reason "$(printf 'x%.0s' {1..4096})" result.json
	judge 0 ack
	rm pmdiff-acks.json
	judge 2 ack --remove sim.Ir
	has 'sim.Ir is not accepted' err
	judge 2 ack --remove sim.Ir --reason x
	judge 0 1000.json 1000.json "${gate[@]}" --json=fine.json
	judge 2 ack sim.Ir --reason x fine.json
	has 'nothing has failed' err
	local bad
	for bad in '{' '[]' '{"format":"pmdiff-acks","version":2,"acks":[]}' \
		'{"format":"pmdiff-acks","version":1,"acks":[{"row":"a","reason":"b","to":null}]}' \
		'{"format":"pmdiff-acks","version":1,"acks":[{"row":"a","reason":"","to":1}]}' \
		'{"format":"pmdiff-acks","version":1,"acks":[{"row":"a","reason":"b","to":1},{"row":"a","reason":"b","to":1}]}' \
		'{"format":"pmdiff-acks","version":1,"acks":[7]}'; do
		echo "$bad" >pmdiff-acks.json
		judge 2 1000.json 1030.json "${gate[@]}"
		[ "$(grep -c '' err)" = 1 ]
		has 'pmdiff-acks.json: ' err
	done
}

# A history of as many commits, each 4 thousandths above the one before, from 1,000,000 on.
creep() {
	git init -q -b main .
	mkdir -p h
	for i in $(seq 0 "$1"); do
		git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m "Step $i"
		document $((1000000 + i * 4000)) >"h/$(git rev-parse HEAD).json"
	done
	git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m 'Last'
	document $((1000000 + $1 * 4000)) >base.json
	document $((1004000 + $1 * 4000)) >new.json
}

@test "many small steps, each within the gate, are found over the history" {
	creep 19
	judge 0 base.json new.json "${gate[@]}" --history h
	judge 1 base.json new.json "${gate[@]}" --history h --history-gate 'sim.Ir=3%' --json=result.json
	has 'history:sim.Ir'
	has 'Against the median of the last 20 commits'
	# It is a line of its own, and the direct comparison holds.
	judge 1 base.json new.json "${gate[@]}" --history h --history-gate 'sim.Ir=3%' --json
	is_so 'len(d["rows"]) == 2' \
		'[r["verdict"] for r in d["rows"] if r["history"]] == ["worse"]' \
		'[r["verdict"] for r in d["rows"] if not r["history"]] == ["same"]' \
		'[round(r["base"]["median"]) for r in d["rows"] if r["history"]] == [1038000]'
	judge 0 base.json new.json "${gate[@]}" --history h --history-gate 'sim.Ir=10%'
	# It can be accepted, too.
	judge 0 ack 'history:sim.Ir' --reason 'many features' result.json
	judge 0 base.json new.json "${gate[@]}" --history h --history-gate 'sim.Ir=3%'
	has 'many features'
	# As settings.
	rm pmdiff-acks.json
	echo '{"gates":{"sim.Ir":"1%"},"history_gates":{"sim.Ir":"3%"},"history":"h"}' >pmdiff.json
	judge 1 base.json new.json
	has 'history:sim.Ir'
}

@test "a short history decides nothing, and says so" {
	creep 3
	judge 0 base.json new.json "${gate[@]}" --history h --history-gate 'sim.Ir=0.1%' --json
	is_so '[r["verdict"] for r in d["rows"] if r["history"]] == ["unknown"]' \
		'[r["base"] for r in d["rows"] if r["history"]] == [None]' \
		'"4 commits" in [r["why"] for r in d["rows"] if r["history"]][0]'
	# It is no doubt about what was measured: each new history is short.
	is_so 'd["verdict"] == "same"'
	judge 0 base.json new.json "${gate[@]}" --history h --history-gate 'sim.Ir=0.1%' --strict
	judge 2 base.json new.json "${gate[@]}" --history h --history-gate 'sim.It=1%'
	has 'sim.Ir' err
	judge 2 base.json new.json --history-gate 'sim.Ir<=5'
	judge 2 base.json new.json --history-gate 'sim.Ir=1%'
	has 'needs a history' err
}

@test "a history gate whose number the new side does not have is unknown" {
	creep 19
	# Another number is on both sides, else nothing would be compared.
	python3 - <<-'END'
		import json
		for name, ir in ("base", None), ("none", {"value": None, "status": "not_counted"}):
		    d = json.load(open("base.json"))
		    counts = d["runs"][0]["counts"]
		    d["events"].append(dict(d["events"][0], name="sim.Dr", requested="sim.Dr"))
		    counts.append(dict(counts[0]))
		    counts[0] = ir or counts[0]
		    json.dump(d, open(name + "2.json", "w"))
	END
	judge 0 base2.json none2.json --history h --history-gate 'sim.Ir=3%' --json
	is_so '[r["verdict"] for r in d["rows"] if r["history"]] == ["unknown"]' \
		'[r["why"] for r in d["rows"] if r["history"]] == ["The new side has no number of it."]' \
		'[r["new"] for r in d["rows"] if r["history"]] == [None]' 'd["verdict"] == "inconclusive"'
	judge 4 base2.json none2.json --history h --history-gate 'sim.Ir=3%' --strict
}

@test "the trend's page has a line for each case and row, its steps and what was accepted" {
	git init -q -b main .
	mkdir h
	for i in 0 0 1 1; do
		git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m "Do <it> $i"
		suite small 1000 large $((1000 + i * 200)) >"h/$(git rev-parse HEAD).json"
	done
	judge 0 --history h --trend
	[ "$(head -n 1 out)" = '1 of 2 numbers has moved over 4 commits' ]
	has 'large//sim.Ir'
	judge 0 --history h --trend --json
	is_so '[s["case"] for s in d["series"]] == ["large", "small"]' 'len(d["commits"]) == 4'
	suite small 1000 large 1000 >base.json
	suite small 1000 large 1200 >new.json
	judge 1 base.json new.json "${gate[@]}" --json=result.json
	judge 0 ack large --reason 'a "larger" table' result.json
	judge 0 --history h --trend --html=trend.html
	[ "$(grep -c '<tr data-line=' trend.html)" = 2 ]
	[ "$(grep -c '<section ' trend.html)" = 2 ]
	has '<circle class="step accepted"' trend.html
	grep -q '<title>accepted +20.00 %: [0-9a-f]*  Do &lt;it&gt; 1 (a &quot;larger&quot; table)</title>' trend.html
	# Nothing is fetched from anywhere.
	run ! grep -qE '(src|href)="?(https?:|//)' trend.html
}
