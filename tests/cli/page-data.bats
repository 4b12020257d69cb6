#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --html, --flamegraph and --diff as files: what is in them, against the other reports. What a
# browser makes of the page is in page.bats. PMREC, PMREPORT and SOURCE_DIR come from meson.

bats_require_minimum_version 1.5.0

setup_file() {
	export LC_ALL=C.UTF-8
	cd "$BATS_FILE_TMPDIR" || return
	g++ -O2 -g -pthread -o work "$SOURCE_DIR/tests/page/data-work.cc"
	cp work work-new
	"$PMREC" -e cpu-clock,page-faults -F 1999 -o a.json -- ./work 8 2>err || { cat err >&2; return 1; }
	"$PMREC" -e cpu-clock,page-faults -F 1999 -o b.json -- ./work-new 5 2>err || { cat err >&2; return 1; }
	# A name of each kind that HTML, JSON, scripts or XML could stumble over.
	python3 - hostile.json <<'PYTHON'
import json
import sys

names = ['</script><script>window.__pwned=1</script>', ']]><script>window.__pwned=1</script>',
         '"\'><img src=x onerror=alert(1)>', '<!--<script>', 'a\u2028b\u2029c', 'x\u202eevil\u2066',
         'control\u0001\u001b[31m', '&lt;&#60;&', '\\u003c', '\ufffe\uffff', 'π🔥', 'operator<<']
lines = [{'type': 'header', 'format': 'pmrec', 'version': 1, 'pmrec': names[0],
          'created': names[1], 'clock': 'monotonic',
          'host': {'hostname': names[0], 'kernel': names[1], 'arch': 'x86_64', 'cpus': 1,
                   'cpu_model': names[3], 'virt': names[4]},
          'command': [names[0], names[2]],
          'events': [{'id': 0, 'name': names[0], 'requested': names[0], 'actual': names[0],
                      'freq': 999, 'unit': names[2], 'modifiers': ''}], 'options': {'call_graph': 'dwarf', 'stack_bytes': 1,
                                                 'ring_bytes': 1}},
         {'type': 'note', 'text': names[0]}]
for i, name in enumerate(names):
    lines += [{'type': 'thread', 'pid': 1, 'tid': i + 1, 'comm': name, 'time': 1000},
              {'type': 'module', 'id': i, 'path': '/x/' + name, 'build_id': None, 'kind': 'file'},
              {'type': 'frame', 'id': i, 'module': i, 'address': '0x10', 'how': 'cfi'},
              {'type': 'stack', 'id': i, 'parent': i - 1 if i else None, 'frames': [i]},
              {'type': 'sample', 'time': 1000 + i, 'pid': 1, 'tid': i + 1, 'cpu': 0, 'event': 0,
               'period': 100 + i, 'stack': i}]
lines += [{'type': 'symbol', 'frame': i, 'functions': [{'name': name, 'file': name, 'line': 1}]}
          for i, name in enumerate(names)]
with open(sys.argv[1], 'w') as file:
    for line in lines:
        file.write(json.dumps(line) + '\n')
PYTHON
}

setup() {
	export LC_ALL=C.UTF-8
	A=$BATS_FILE_TMPDIR/a.json
	B=$BATS_FILE_TMPDIR/b.json
	HOSTILE=$BATS_FILE_TMPDIR/hostile.json
	cd "$BATS_TEST_TMPDIR" || return
}

@test "the page's data agrees with the report to the sample" {
	command -v node >/dev/null || skip "node is not installed"
	node "$SOURCE_DIR/tests/page/data.test.mjs" "$PMREPORT" "$SOURCE_DIR/src/output/page" \
		"$A" "$B" >out || { cat out >&2; return 1; }
	run ! grep '^not ok' out
	grep -qE '^1\.\.[0-9]+$' out
}

@test "a range of the page has of each wait what overlaps it" {
	command -v node >/dev/null || skip "node is not installed"
	python3 "$SOURCE_DIR/tests/cli/waits.py" waits.json
	"$PMREPORT" --html page.html waits.json
	node - "$SOURCE_DIR/src/output/page" <<-'END'
		const assert = require('node:assert/strict');
		const pm = require(process.argv[2] + '/data.js');
		const html = require('node:fs').readFileSync('page.html', 'utf8');
		const data = pm.decode(JSON.parse(/id="pm-data">([^<]*)</.exec(html)[1]));
		const event = data.events.findIndex((e) => e.name === 'off-cpu');
		const select = (from, to) => {
			const sel = pm.select(data, { event, threads: null, from, to });
			const sums = { long_wait: 0, other_wait: 0 };

			for (let i = 0; i < data.paths.count; i++)
				sums[data.functions.name[data.paths.fn[i]]] += sel.self[i];
			assert.equal(sel.total, sums.long_wait + sums.other_wait);
			return [sums.long_wait / 1e6, sums.other_wait / 1e6];
		};

		assert.deepEqual(select(null, null), [2000, 6120]);
		assert.deepEqual(select(0, 8500), [2000, 6120]);
		assert.deepEqual(select(1500, 1520), [20, 0]);
		assert.deepEqual(select(2480, 2500), [20, 20]);
		assert.deepEqual(select(0, 50), [0, 50]);
		assert.deepEqual(select(100, 500), [0, 0]);
		assert.deepEqual(select(500, 3500), [2000, 1020]);
		assert.deepEqual(select(8480, null), [0, 20]);
		// The strips show waits where they were, 85 parts of 100 ms, and nothing twice.
		const { all, max } = pm.bins(data, { event, threads: null }, 85);
		const near = (value, truth) => assert.ok(Math.abs(value - truth * 1e6) < 1, `${value} ${truth}`);

		near(all[0], 100);
		near(all[1], 0);
		near(all[5], 100);
		near(all[24], 120);
		near(all[25], 100);
		near(all.reduce((x, y) => x + y, 0), 8120);
		near(max, 100);
		const map = pm.heat(data, { event, threads: null }, 4);
		near(map.values.reduce((x, y) => x + y, 0), 8120);
	END
}

@test "the page holds everything, and lets only its own scripts run" {
	"$PMREPORT" --html page.html "$A"
	python3 - page.html <<'PYTHON'
import base64
import hashlib
import html.parser
import sys

text = open(sys.argv[1], newline='').read()


class Page(html.parser.HTMLParser):
    scripts, data, policy, ids = [], [], '', []
    inside = None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name, value in attributes.items():
            assert not name.startswith('on'), name
            assert name not in ('src', 'href', 'srcset'), (tag, name)
        if tag == 'meta' and attributes.get('http-equiv') == 'Content-Security-Policy':
            self.policy = attributes['content']
        self.inside = None
        if tag == 'script':
            self.inside = self.data if attributes.get('type') == 'application/json' else self.scripts
            self.inside.append('')

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.inside[-1] += data


page = Page()
page.feed(text)
hashes = ["'sha256-%s'" % base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
          for script in page.scripts]
directives = dict(part.strip().split(' ', 1) for part in page.policy.split(';'))
assert len(page.data) == 1 and len(hashes) > 3
assert directives['default-src'] == "'none'", page.policy
assert directives['script-src'].split() == hashes, (page.policy, hashes)
assert '<!--@' not in text
PYTHON
	# Without scripts there is a table: its first row is the report's.
	first=$("$PMREPORT" --json "$A" | jq -r '.events[0].rows[0] | "\(.self.percent * 10 | round / 10)"')
	sed -n '/<noscript>/,/<\/noscript>/p' page.html | grep -m 1 '<td>' | grep -F "<td>$(printf '%.1f' "$first")%</td>"
	[ "$(sed -n '/<noscript>/,/<\/noscript>/p' page.html | grep -c '<caption>')" = 2 ]
}

@test "hostile names stay names" {
	"$PMREPORT" --html page.html "$HOSTILE"
	"$PMREPORT" --html both.html --diff "$HOSTILE" "$A"
	"$PMREPORT" --html plain.html "$A"
	"$PMREPORT" --flamegraph flame.svg "$HOSTILE"
	"$PMREPORT" --flamegraph up.svg --bottom-up --diff "$HOSTILE" "$HOSTILE"
	python3 - <<'PYTHON'
import json
import re
import xml.etree.ElementTree as tree

plain = open('plain.html').read()
for name in 'page.html', 'both.html':
    text = open(name).read()
    assert text.lower().count('<script') == plain.lower().count('<script'), name
    assert '<img' not in text and not re.search('[\u2028\u2029\ufffe\uffff\0]', text.split('id="pm-data">')[0])
    data = json.loads(re.search('id="pm-data">([^<]*)</script>', text)[1])
    assert '\u2028' not in re.search('id="pm-data">([^<]*)</script>', text)[1]
    if name == 'page.html':
        names = data['functions']['names']
        for wanted in '</script><script>window.__pwned=1</script>', 'a\u2028b\u2029c', 'π🔥', '\\u003c':
            assert wanted in names, (wanted, names)
        assert any(note['text'].startswith('</script>') for note in data['quality'])
for name in 'flame.svg', 'up.svg':
    root = tree.parse(name).getroot()
    space = '{http://www.w3.org/2000/svg}'
    assert len(root.findall('.//%sscript' % space)) == 1
    titles = [title.text or '' for title in root.iter(space + 'title')]
    assert any(title.startswith('</script><script>') for title in titles), titles
    assert any(title.startswith(']]><script>') for title in titles)
    assert not any('\u202e' in title or '\u2028' in title for title in titles)
    assert not any(key.startswith('on') for element in root.iter() for key in element.keys())
PYTHON
}

@test "only what is a source, and may be passed on, gets into the page" {
	local data=$SOURCE_DIR/tests/page/data-work.cc
	sed "s|\"[^\"]*/data-work.cc\"|\"$PWD/hot.cc\"|g" "$A" >moved.json
	awk '{ print $0 " // only-in-this-file" }' "$data" >hot.cc
	"$PMREPORT" --html page.html moved.json
	grep -q 'only-in-this-file' page.html
	# A name proves nothing: the file behind it has another one.
	mv hot.cc secret
	ln -s secret hot.cc
	"$PMREPORT" --html page.html moved.json
	run ! grep 'only-in-this-file' page.html
	[ "$(id -u)" = 0 ] || skip "what root keeps back needs root"
	rm hot.cc
	mv secret hot.cc
	chown 4711 hot.cc
	chmod 600 hot.cc
	"$PMREPORT" --html page.html moved.json
	run ! grep 'only-in-this-file' page.html
	grep -q 'not for the recorded user (uid 0) are left out of root.s report: .*/hot.cc' page.html
}

@test "the boxes of a flame graph are as wide as pmreport says" {
	for kind in --tree --bottom-up; do
		turned=${kind#--tree}
		"$PMREPORT" --event cpu-clock --json "$kind" "$A" >tree.json
		rm -f flame.svg
		"$PMREPORT" --event cpu-clock --flamegraph flame.svg \
			${turned:+"$turned"} "$A"
		python3 - <<'PYTHON'
import collections
import json
import re
import xml.etree.ElementTree as tree

space = '{http://www.w3.org/2000/svg}'
root = tree.parse('flame.svg').getroot()
frames = next(g for g in root.iter(space + 'g') if g.get('id') == 'frames')
event = json.load(open('tree.json'))['events'][0]
ours, theirs, path = collections.Counter(), collections.Counter(), []
for box in frames:
    depth = int(box.get('data-depth'))
    lines = box.find(space + 'title').text.split('\n')
    name = lines[0].removesuffix(' (inlined)')
    samples = int(re.search('([0-9,]+) samples?,', box.find(space + 'title').text)[1].replace(',', ''))
    path[depth:] = [name if depth else '']
    width = float(box.get('width')[:-1])
    if depth == 0:
        assert samples == event['total']['samples'] and width == 100
        continue
    assert abs(width - 100 * samples / event['total']['samples']) < .001, (name, width, samples)
    ours['\n'.join(path)] += samples
least, left_out, paths = .1 / 1200 * event['total']['period'], 0, []
for node in event['nodes']:
    name = node['function'] or '[%s]' % node.get('start', 'unknown') + (
        ' in ' + node['module'] if node['module'] else '')
    paths.append((paths[node['parent']] if node['parent'] is not None else '') + '\n' + name)
    if node['total']['period'] >= least:
        theirs[paths[-1]] += node['total']['samples']
assert ours == theirs, (ours - theirs, theirs - ours)
assert len(ours) > 20
PYTHON
	done
}

@test "a comparison tells the difference in points, and what has none says so" {
	"$PMREPORT" --event cpu-clock --flamegraph same.svg --diff "$A" "$A"
	[ "$(grep -c 'points</title>' same.svg)" -gt 20 ]
	[ "$(grep -c 'points</title>' same.svg)" = "$(grep -c ': ±0.00 points</title>' same.svg)" ]
	run ! grep -E 'points</title>.*class="(more|less)[0-9]"' same.svg
	"$PMREPORT" --event cpu-clock --flamegraph other.svg --diff "$B" "$A"
	grep -qE 'points</title>.*class="(more|less)[0-9]"' other.svg
	# What differs by a fiftieth of both is no difference, as on the page.
	python3 - other.svg <<-'PYTHON'
		import re, sys
		boxes = re.findall(r'\n[^\n]*?([\d.]+)%[^\n]*(?:\nself [^\n]*)?\nbase ([\d.]+)%: [^\n]*</title>.*?class="(\w+)"',
		                   open(sys.argv[1]).read())
		assert len(boxes) > 20, len(boxes)
		for now, base, color in boxes:
		    now, base = float(now), float(base)
		    if abs(now - base) < 0.015 * (now + base):
		        assert color == "same", (now, base, color)
		    if abs(now - base) > 0.025 * (now + base) + 0.03:
		        assert color[:4] == ("more" if now > base else "less"), (now, base, color)
	PYTHON
	# main of either program is one function.
	grep -E '^<svg .*<title>main$' -A 4 other.svg | grep -E 'base [0-9.]+%: ' | grep -qv 'base 0.00%'
	for format in text json csv folded; do
		run -2 "$PMREPORT" --format "$format" --diff "$A" "$B"
		[[ "${lines[0]}" == *"--diff goes with --html and --flamegraph, not with $format"* ]]
	done
	run -2 --separate-stderr "$PMREPORT" --flamegraph - --event cpu-clock --diff "$HOSTILE" "$A"
	# shellcheck disable=SC2154 # bats sets it
	[[ "$stderr" == *"the base has no event"* ]]
	[ -z "$output" ]
	run -1 "$PMREPORT" --html x.html --diff missing.json "$A"
	[ ! -e x.html ]
	cp "$A" copy.json
	run -2 "$PMREPORT" --html copy.json --diff copy.json "$A"
	cmp "$A" copy.json
}
