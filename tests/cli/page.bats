#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The page of --html in Chromium. tests/page/drive.mjs runs all checks in two browsers, once
# for the file; each test below reads how its check ended. PMREPORT, SOURCE_DIR and BUILD_DIR come
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
	make_edges "$truth" || return
	python3 "$SOURCE_DIR/tests/bench/make-recording" --nodes 200000 --samples 200000 -o many.json \
		>/dev/null && "$PMREPORT" --html many.html many.json && rm many.json
}

# Pages of runs without samples, with one, with all of them lost, with 10,000 threads and 100
# events, and with stacks 4,096 deep, long names, and sources that can be read.
make_edges() {
	local name

	seq -f 'line %g' 1 100 >prog.c
	python3 - "$1" <<-'END' || return
		import copy, json, os, sys
		truth = [json.loads(line) for line in open(sys.argv[1])]
		ABI = 'std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >'

		def write(name, objects):
		    with open(name + '.json', 'w') as out:
		        for o in objects:
		            out.write(json.dumps(o) + '\n')

		def only(samples, lost):
		    left, numbers = [], [0, 0]
		    for o in copy.deepcopy(truth):
		        if o['type'] == 'sample':
		            if sum(numbers) == samples:
		                continue
		            numbers[o['event']] += 1
		        elif o['type'] == 'footer':
		            o.update(samples=samples, lost=lost, truncated=0, stops={'root': samples})
		            for e in o['events']:
		                e.update(samples=numbers[e['id']], period=1000000 * numbers[e['id']], lost=lost // 2)
		        left.append(o)
		    return left

		write('empty', only(0, 0))
		write('lost', only(0, 5000))
		write('one', only(1, 0))

		def crowd():
		    n = 10000
		    for o in copy.deepcopy(truth):
		        if o['type'] == 'header':
		            o['events'] = [dict(o['events'][0], id=i, name='event-%d' % i) for i in range(100)]
		        elif o['type'] == 'thread':
		            continue
		        elif o['type'] == 'frame' and o['id'] == 0:
		            for i in range(n):
		                yield {'type': 'thread', 'pid': 10, 'tid': 10 + i, 'comm': 't%d' % i, 'time': 1000000}
		        elif o['type'] == 'sample':
		            if o['time'] == 11000000:
		                for i in range(2 * n):
		                    yield dict(o, time=11000000 + i * 8000, tid=10 + i % n, event=0 if i < n else i % 100)
		            continue
		        elif o['type'] == 'footer':
		            o.update(samples=2 * n, lost=0)
		            o['events'] = [{'id': i, 'samples': s, 'period': s * 1000000, 'lost': 0}
		                           for i, s in enumerate([n + n // 100] + [n // 100] * 99)]
		        yield o

		write('crowd', crowd())

		def deep():
		    names = {1: 'std::_Hashtable<' + ABI + ', std::pair<' + ABI + ' const, int> >::_M_find_before_node',
		             2: '\u202eevil\u2066\x07\x1b[31m', 3: 'std::' + 'x' * 100000, 8: 'deepest'}
		    made = False
		    for o in copy.deepcopy(truth):
		        if o['type'] == 'header':
		            o['uid'] = os.getuid()
		        elif o['type'] == 'stack':
		            last = o['id']
		        elif o['type'] == 'sample':
		            if not made:
		                for i in range(4096):
		                    yield {'type': 'stack', 'id': last + 1 + i, 'parent': last + i if i else 0,
		                           'frames': [8 if i == 4095 else 1 + i % 2]}
		                made = True
		            if o['stack'] == 1 and o['time'] > 30000000:
		                o['stack'] = last + 4096
		        elif o['type'] == 'symbol':
		            for f in o['functions']:
		                f['file'] = os.getcwd() + '/prog.c'
		                f['name'] = names.get(o['frame'], f['name'])
		        yield o

		write('edges', deep())
	END
	for name in empty lost one crowd edges; do
		"$PMREPORT" --html $name.html $name.json || return
	done
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
	HOME=$PWD timeout 900 node "$SOURCE_DIR/tests/page/drive.mjs" \
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

@test "the tree has roles, levels, keys and one stop for the tabulator" {
	outcome tree
}

@test "the focus stays where the work is" {
	outcome focus
}

@test "a range can be typed, filters add up, and addresses of nonsense do no harm" {
	outcome selecting
}

@test "stacks are copied and exported as they are seen" {
	outcome copies
}

@test "runs without samples say so, and one sample is all" {
	outcome few
}

@test "10,000 threads and 100 events" {
	outcome crowd
}

@test "4,096 levels, long names and names that turn the text around" {
	outcome deep
}

@test "a graph fits on paper, dark on white" {
	outcome paper
}

@test "no motion for who wants none, and no style that is not the page's" {
	outcome calm
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
