#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agree.py REPORT EVENT KIND FILE...: fails unless what a program makes of an export agrees with
REPORT, which is from `pmreport --json --limit 0`, function by function and in all.

KIND tells what the FILEs are:
  pprof        what `go tool pprof -top -unit=ns` prints
  callgrind    what callgrind_annotate prints: first exclusive, then inclusive costs
  speedscope   what speedscope.mjs prints
  firefox      what `profiler-cli thread functions --json` prints, a FILE for each thread
  perf-script  the export itself, read by the rules of stackcollapse-perf.pl
"""
import collections
import json
import re
import sys

report, wanted, kind, *files = sys.argv[1:]
with open(report, encoding="utf-8") as file:
    events = json.load(file)["events"]
names = [event["event"] for event in events]
event = events[names.index(wanted)]
WHOLE = event["total"]["period"]
SCALE = 1e6 if event["unit"] == "ns" else 1  # Firefox Profiler's time is in milliseconds


def label(row):
    if row["function"] is not None:
        return row["function"]
    module = row["module"]
    if "start" in row:
        return f"[{row['start']}] in {module}"
    return module if module.startswith("[") else f"[{module}]"


# By name: functions of several modules may share one, and then only their self adds up.
ours = collections.defaultdict(lambda: [0, 0, 0])
for row in event["rows"]:
    sums = ours[label(row)]
    sums[0] += row["self"]["period"]
    sums[1] += row["total"]["period"]
    sums[2] += 1

theirs = collections.defaultdict(lambda: [0, 0])
rows = 0


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def number(text):
    return int(re.sub(r"[^0-9]", "", text) or 0)


if kind == "pprof":
    for line in read(files[0]).splitlines():
        found = re.match(r" *(\d+)(?:ns)? +[\d.]+% +[\d.]+% +(\d+)(?:ns)? +[\d.]+%  (.*)$", line)
        if found:
            name = re.sub(r" \((?:partial-)?inline\)$", "", found[3])
            theirs[name][0] += int(found[1])
            theirs[name][1] += int(found[2])
elif kind == "callgrind":
    for at, path in enumerate(files):
        for line in read(path).splitlines():
            cells = r"( *(?:[\d,]+(?: \( *[\d.]+%\))?|\.) +)" * len(events)
            found = re.match(cells + r" (.*)$", line)
            if not found or found[len(events) + 1] == "PROGRAM TOTALS":
                continue
            # FILE:FUNCTION [OBJECT]; the test's files have no colon.
            name = re.sub(r" \[.*\]$", "", found[len(events) + 1]).split(":", 1)[1]
            theirs[name][at] += number(found[names.index(wanted) + 1].split("(")[0])
elif kind == "speedscope":
    for profile in json.loads(read(files[0])):
        if len(events) > 1 and not profile["name"].endswith(" " + wanted):
            continue
        for name, (own, total) in profile["frames"].items():
            theirs[name][0] += own
            theirs[name][1] += total
elif kind == "firefox":
    for path in files:
        thread = json.loads(read(path))
        assert thread["totalFunctionCount"] == len(thread["functions"]), "a part only"
        assert thread["weightType"] == ("tracing-ms" if SCALE > 1 else "samples")
        for function in thread["functions"]:
            theirs[function["name"]][0] += round(function["selfSamples"] * SCALE)
            theirs[function["name"]][1] += round(function["totalSamples"] * SCALE)
elif kind == "perf-script":
    for paragraph in re.sub(r"(?m)^#.*\n", "", read(files[0])).split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines == [""]:
            continue
        head = re.match(r"^(\S.+?)\s+(\d+)/*(\d+)*\s+", lines[0])
        what = re.search(r":\s*(\d+)*\s+(\S+):\s*$", lines[0])
        assert head and what, f"no head: {lines[0]!r}"
        rows += 1
        if what[2] != wanted:
            continue
        stack = []
        for line in lines[1:]:
            frame = re.match(r"^\s*(\w+)\s*(.+) \((.*)\)", line)
            assert frame, f"no frame: {line!r}"
            module = frame[3].rsplit("/", 1)[-1]
            if re.match(r"\[0x[0-9a-f]+\]$", frame[2]):
                stack.append(f"{frame[2]} in {module}")
            else:
                stack.append(frame[2].replace("- >", "->") if frame[2] != "[unknown]"
                             else f"[{module}]")
        assert stack, "a sample without frames"
        theirs[stack[0]][0] += int(what[1])
        for name in set(stack):
            theirs[name][1] += int(what[1])
    assert rows == sum(e["total"]["samples"] for e in events), f"{rows} samples"
else:
    sys.exit(f"what is {kind}?")

if kind == "callgrind":
    # Stands above all, so that every function has been called from somewhere.
    above = theirs.pop("[recording]")
    assert above == [0, WHOLE], above
assert WHOLE > 0 and len(ours) > 3, "nothing to compare"
wrong = []
for name in sorted(set(ours) | set(theirs)):
    own, total, functions = ours[name]
    got = [round(value) for value in theirs[name]]
    if got[0] != own or (functions == 1 and got[1] != total) or max(got) > WHOLE:
        wrong.append(f"{name}: self {got[0]} total {got[1]}, should be {own} and {total}")
summed = sum(round(own) for own, _ in theirs.values())
if summed != WHOLE:
    wrong.append(f"all: {summed}, should be {WHOLE}")
if wrong:
    sys.exit(f"{kind}, {wanted}:\n" + "\n".join(wrong[:20]))
print(f"{kind}: {len(theirs)} functions agree", file=sys.stderr)
