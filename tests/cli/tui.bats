#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The terminal browser, driven in tmux. PMREPORT and SOURCE_DIR come from meson. What stands on
# the screen is compared with what --json says of the same; pmreport.bats tells what is in
# fixtures/truth.json.

bats_require_minimum_version 1.5.0
load terminal

setup() {
	open_terminal
	cp "$SOURCE_DIR/tests/cli/fixtures/truth.json" "$BATS_TEST_TMPDIR/samples.json"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	close_terminal
}

# browse [argument...]: on 80 columns and 24 rows.
browse() {
	run_in_terminal 80x24 "'$PMREPORT' --tui $*"
}

# rows N: the list as it is seen, N numbers and a name each: `60.0% 60.0% sixty(int)`.
rows() {
	screen | sed -n '5,23p' | sed -E '/^ *$/d; s/%  *[-+] /% /' |
		awk -v n="$1" '{ for (i = 1; i <= n; i++) printf "%s ", $i; print $i }'
}

# wanted "WEIGHT..." rows|nodes [argument...]: the same of --json. In trees of people a function
# that calls itself is one node.
wanted() {
	local weights=$1 list=$2
	shift 2
	"$PMREPORT" --json "$@" >json
	python3 -c '
import json, sys
weights, rows = sys.argv[1].split(), json.load(open("json"))["events"][0][sys.argv[2]]
below = {}
for row in rows:
    below.setdefault(row.get("parent"), []).append(row)
def own(node):
    direct, deeper = {}, [child for i in node["ids"] for child in below.get(i, [])]
    while deeper:
        child = deeper.pop(0)
        if child["function"] == node["function"]:
            if "self" in node:
                node["self"]["percent"] += child["self"]["percent"]
            deeper += below.get(child["id"], [])
        elif (key := (child["function"], child["module"])) in direct:
            direct[key]["total"]["percent"] += child["total"]["percent"]
            direct[key]["ids"].append(child["id"])
        else:
            direct[key] = child | {"ids": [child["id"]]}
    return direct.values()
def show(rows, tree):
    for row in rows:
        row.setdefault("ids", [row.get("id")])
        children = own(row) if tree else []
        print(*("%.1f%%" % row[w]["percent"] for w in weights),
              (row["function"] or "[%s]" % row.get("start", "unknown")).split(" ")[0])
        show(children, tree)
show(below[None], sys.argv[2] == "nodes")' "$weights" "$list"
}

# What is below the heading, as it is.
body() {
	screen | sed -n '5,23p' | sed '/^$/d'
}

# agrees rows N, agrees body: waits until it is what is wanted; a screen is drawn from the top to
# the bottom.
agrees() {
	for _ in $(seq 1200); do
		"$@" >rows
		if cmp -s wanted rows; then return 0; fi
		sleep 0.1
	done
	diff -u wanted rows >&2
}

@test "the table is that of --json" {
	browse
	shows '^  60\.0%    60\.0%  sixty\(int\) +prog +prog\.c:20'
	wanted 'self total' rows >wanted
	[ "$(wc -l <wanted)" = 9 ]
	agrees rows 2
	head -1 seen | grep -qF './prog -n 3  cpu-clock @ 1,000 Hz (1/2)  100 samples'
	sed -n 2p seen | grep -qF '! cycles not available  lost 3  truncated 1.0%  incomplete 2.0%  unknown 2.0%'
	press s
	shows 'total\*'
	shows '^ +0\.0%    83\.0%  main'
	wanted 'self total' rows --children >wanted
	agrees rows 2
}

@test "keys move the selection" {
	browse
	shows ' 1/9$'
	press Down
	shows ' 2/9$'
	press Up Up
	shows ' 1/9$'
	press End
	shows ' 9/9$'
	press Home
	shows ' 1/9$'
	press NPage
	shows ' 9/9$'
	press PPage
	shows ' 1/9$'
	press x
	shows 'h lists them'
}

@test "the tree opens, and is that of --json" {
	browse
	shows ' 1/9$'
	press 2
	shows '^  83\.0% +0\.0%  - main'
	shows '^  10\.0% +0\.0%    \+ ten'
	press Down Down Down
	shows ' 4/8$'
	press +
	shows '^  10\.0% +10\.0%        hot_inline \(inlined\)'
	press +
	shows ' 4/8$'
	press E
	shows ' 4/11$'
	wanted 'total self' nodes --tree >wanted
	[ "$(wc -l <wanted)" = 11 ]
	agrees rows 2
	press C
	shows ' 1/4$'
	press e
	shows ' 1/9$'
	press c
	shows ' 1/4$'
	press 3
	shows '^  60\.0%  - sixty\(int\)'
	press E
	shows ' 1/1[0-9]$'
	wanted total nodes --bottom-up >wanted
	agrees rows 1
}

@test "callers and callees of the selected function" {
	browse
	shows ' 1/9$'
	press Enter
	shows '^callers of sixty\(int\)  60\.0%'
	shows '^  10\.0%      worker'
	wanted total nodes --callers sixty >wanted
	agrees rows 1
	press q
	shows '^1 functions'
	press /
	shows '^/'
	press main Enter
	shows ' 7/9$'
	press '>'
	shows '^what is called by main  83\.0%'
	press E
	shows ' 1/6$'
	wanted 'total self' nodes --callees main >wanted
	agrees rows 2
	press Escape
	shows ' 7/9$'
}

@test "lines and instructions of the selected function" {
	browse
	shows ' 1/9$'
	press a
	shows '^lines and instructions of sixty\(int\)'
	"$PMREPORT" --annotate sixty --event cpu-clock -q --width 79 |
		sed 's/ *$//' >wanted
	grep -q '100\.0%' wanted
	agrees body
	press s
	shows '^lines of sixty\(int\)'
	press q
	shows ' 1/9$'
	browse --annotate hot_inline --source
	shows '^lines of hot_inline'
	shows '100\.0% +7 '
	run_in_terminal 80x24 "'$PMREPORT' --tui --annotate 'main|fib'"
	shows "'main.fib' fits several functions"
	shows '^status=2'
}

@test "searching finds what is closed, and goes on" {
	browse --tree
	shows '^  83\.0% +0\.0%  - main'
	press C
	shows ' 1/4$'
	press / 'HOT_INLINE' Enter
	shows 'not found: HOT_INLINE'
	press / 'hot_(in|out)line' Enter
	shows '^  10\.0% +10\.0% +hot_inline'
	shows ' 5/9$'
	press / thirty Enter
	shows ' 9/9$'
	press n
	shows 'from the beginning again'
	shows ' 3/9$'
	press / sys_r Enter
	shows ' 9/11$'
	press / sixtx BSpace y Enter
	shows '^from the beginning again'
	shows ' 2/11$'
	press N
	shows '^from the end again'
	shows ' 8/11$'
	press N
	shows ' 2/11$'
	press / 'a(' Enter
	shows 'not found: a\('
	press / Escape
	shows 'h help'
}

@test "threads, processes and modules filter" {
	browse
	shows ' 1/9$'
	press t
	shows 'which thread'
	press Down
	shows ' 2/2$'
	press Enter
	shows '16 of 100 samples  thread 11'
	wanted 'self total' rows --tid 11 >wanted
	agrees rows 2
	press d
	shows '10 of 100 samples  thread 11  module prog'
	press Escape
	shows '16 of 100 samples  thread 11$'
	press t
	shows ' 100 samples$'
	press k
	shows '4 of 100 samples  module \[kernel\]'
	press F
	shows '^   4\.0% +4\.0%  sys_read'
	press F
	shows '^ 100\.0% +100\.0%  sys_read'
	press k
	shows ' 100 samples$'
	press 4
	shows '^   2\.0% +2\.0%  libx\.so\.1'
	press End
	shows ' 3/3$'
	press Enter
	shows '2 of 100 samples  module libx'
	press Escape Escape
	shows 'q ends'
	press 6
	shows '^ 100\.0% +100 +10 '
}

@test "events, the limit, and what is written" {
	browse
	shows ' 1/9$'
	press P
	shows '^write to: pmreport-1.txt'
	press Enter
	shows '^written to pmreport-1.txt'
	"$PMREPORT" --event cpu-clock --limit 0 --width 0 >wanted
	diff -u wanted pmreport-1.txt
	press P
	shows '^write to: pmreport-2.txt'
	press C-u pmreport-1.txt Enter
	shows '^not written: there is such a file already'
	diff -u wanted pmreport-1.txt
	press L
	shows 'in percent: 0'
	press C-u 3 Enter
	shows ' 1/5, 4 below 3%$'
	press L C-u x Enter
	shows 'a limit is a percentage'
	press Tab
	shows 'page-faults \(2/2\)  5 samples'
	"$PMREPORT" --json --event page-faults |
		jq -r '.events[0].rows[0] | "\(.self.percent) \(.function)"' >wanted
	grep -qxF '100 ns::thirty' wanted
	shows '^ 100\.0% +100\.0%  ns::thirty'
	press Tab
	shows 'cpu-clock @ 1,000 Hz \(1/2\)'
}

@test "it begins with what the options ask for" {
	browse --callers sixty --tid 11 --event cpu-clock
	shows '^callers of sixty  62\.5%'
	shows '16 of 100 samples  thread 11'
	shows '^  62\.5%      worker'
	press q
	shows '^  12\.5% +12\.5%  \[unknown\] +libx'
	press q
	shows '^status=0'
	browse --by module
	shows '^  94\.0% +98\.0%  prog'
	browse --by comm
	shows '^  84\.0% +84\.0%  prog'
	press Enter
	shows 'which thread'
	browse --by cpu
	shows '^ +self\* +total  CPU'
	"$PMREPORT" --json --by cpu --event cpu-clock |
		jq -r '.events[0].rows[] | [.self.percent, .total.percent, .cpu] | @tsv' |
		awk '{ printf "%.1f%% %.1f%% %s\n", $1, $2, $3 }' >wanted
	grep -qx '100.0% 100.0% 0' wanted
	agrees rows 2
	press Enter
	shows 'which thread'
	run -2 "$PMREPORT" --tui --by cpu,module
}

@test "a resized terminal keeps what is selected" {
	browse
	shows ' 1/9$'
	press End
	shows ' 9/9$'
	t resize-window -x 120 -y 40
	shows '^ .{110,} 9/9$'
	t resize-window -x 60 -y 10
	shows '^.{50,56} 9/9$'
	shows '^   0\.0%    10\.0%  ten'
	t resize-window -x 39 -y 9
	shows '^39x9 is too small:'
	t resize-window -x 80 -y 24
	shows ' 9/9$'
	press q
	shows '^status=0'
}

@test "the help fits, and the warnings are there" {
	browse
	shows ' 1/9$'
	press h
	shows '^keys'
	press End
	shows '^  P +write this page'
	press q
	shows ' 1/9$'
	press i
	shows '^! 3 samples were lost'
	"$PMREPORT" --width 78 | sed -n 1p >wanted
	grep -qxF "$(cat wanted)" seen
}

@test "the terminal is as it was, however it ends" {
	browse
	shows ' 1/9$'
	press q
	shows '^status=0'
	diff before after
	browse
	shows ' 1/9$'
	press C-c
	shows '^status=0'
	diff before after
	run_in_terminal 80x24 "sh -c 'echo \$\$ >pid; exec \"$PMREPORT\" --tui'"
	shows ' 1/9$'
	kill -TERM "$(cat pid)"
	shows '^status=143'
	diff before after
}

# Besides the hang-up a terminal sends SIGCONT, which takes back the SIGSTOP by which the search
# for leaks stops the program: that would wait for ever.
without_leak_search() {
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
}

@test "a terminal that goes away ends it" {
	without_leak_search
	run_in_terminal 80x24 "sh -c 'echo \$\$ >pid; exec \"$PMREPORT\" --tui'"
	shows ' 1/9$'
	t kill-server
	for _ in $(seq 2400); do
		kill -0 "$(cat pid)" 2>/dev/null || return 0
		sleep 0.05
	done
	echo 'it runs still'
	return 1
}

@test "hung up without a signal, it ends as well" {
	without_leak_search
	run_in_terminal 80x24 "sh -c 'trap \"\" HUP; echo \$\$ >pid; exec \"$PMREPORT\" --tui'"
	shows ' 1/9$'
	t kill-server
	for _ in $(seq 2400); do
		kill -0 "$(cat pid)" 2>/dev/null || return 0
		sleep 0.05
	done
	echo 'it runs still'
	return 1
}

@test "a recording on standard input leaves the keys to the terminal" {
	browse '- <samples.json'
	shows ' 1/9$'
	press Down
	shows ' 2/9$'
	press q
	shows '^status=0'
}

@test "no terminal, one line" {
	run -1 --separate-stderr "$PMREPORT" --tui </dev/null
	[ "$output" = '' ]
	[[ ${stderr_lines[0]} = *'is not a terminal'* ]]
	[ "${#stderr_lines[@]}" = 2 ]
	run_in_terminal 80x24 "'$PMREPORT' --tui >out"
	shows 'the output is not a terminal'
	shows '^status=1'
	[ ! -s out ]
	run_in_terminal 80x24 "TERM=dumb '$PMREPORT' --tui"
	shows "of type 'dumb' cannot be drawn on"
	shows '^status=1'
	run_in_terminal 80x24 "TERM=no-such-terminal '$PMREPORT' --tui"
	shows "of type 'no-such-terminal' cannot be drawn on"
	shows '^status=1'
	run -2 "$PMREPORT" --tui --json
	run -2 "$PMREPORT" --tui -o x
}

@test "no colours where none are wanted, and ASCII alone" {
	# The keys reach what is drawn: without NO_COLOR there are colours.
	browse
	shows ' 1/9$'
	t capture-pane -e -p >with
	grep -q $'\033\\[[0-9;]*3[1-7]' with
	t kill-server
	sed 's/ns::thirty/ns::th\\u00efrty_with_a_name_that_is_longer_than_the_column_it_has/' \
		samples.json >long.json
	run_in_terminal 80x24 "NO_COLOR=1 LC_ALL=C '$PMREPORT' --tui long.json"
	shows '^  20\.0% +20\.0%  .*\.\.\.'
	t capture-pane -e -p >without
	run ! grep -q $'\033\\[[0-9;]*[34][0-7]' without
	run ! grep -qP '[^\x00-\x7f]' without
}

@test "names cannot take the screen over" {
	sed 's/ns::thirty/n\\u001b[2J\\u0007\\u202Es\\u0300\\u009b1mx/' samples.json >hostile.json
	run_in_terminal 80x24 "'$PMREPORT' --tui hostile.json"
	shows '^  20\.0% +20\.0%  n\\x1b\[2J\\x07�s\?\\x9b1mx'
	shows '^  60\.0% +60\.0%  sixty'
	press Down Enter
	shows '^callers of n.x1b'
}
