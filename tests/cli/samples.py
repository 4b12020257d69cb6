#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""samples.py FILE EXPRESSION...: prints each Python expression over a recorded file.

Reads the file by docs/format.md alone and fails on anything that is not as written there.
Names in an expression: header, footer (None when cut), notes, samples, comms (set), events,
modules, self_share(function) and jit_share(function) in percent, mostly_in(function),
split_is_true() of tests/programs/split.c, rooted(share), leaves_in(file...), clock_error(),
own_notes (without those of a busy machine), chain(sample) as names, `[START]` or addresses, leaf
first, and chain_frames(sample) as ids.
With --cut as the first argument a last line without its newline is left out.
"""
import functools
import json
import re
import sys

args = sys.argv[1:]
cut = args[0] == "--cut"
if cut:
    args = args[1:]
with open(args[0], "rb") as file:
    data = file.read()
lines = data.split(b"\n")
if lines.pop() and not cut:
    sys.exit("the last line has no newline")
rows = [json.loads(line.decode("utf-8")) for line in lines]
assert all(line.startswith(b'{"type":"') for line in lines), "type comes first"
header = rows[0]
assert header["type"] == "header" and header["format"] == "pmrec" and header["version"] == 1


by_kind = {}
for row in rows:
    by_kind.setdefault(row["type"], []).append(row)


def of(kind):
    return by_kind.get(kind, [])


modules, frames, samples = of("module"), of("frame"), of("sample")
# What a host takes from a virtual machine comes to any recording, whatever is tested.
notes = [row for row in of("note") if "the host took" not in row["text"]]
# What a machine that does much else adds to any of them.
own_notes = [row for row in notes if not row["text"].startswith(
    ("the recording began ", "real-time priority was given up ", "the samples stand for "))]
events = header["events"]
footer = rows[-1] if rows[-1]["type"] == "footer" else None
comms = {row["comm"] for row in of("thread")}
names = {row["frame"]: row["functions"] for row in of("symbol")}
for table in (modules, frames, events):
    assert [row["id"] for row in table] == list(range(len(table))), "ids are dense"
stacks = []
for row in of("stack"):
    parent = row["parent"]
    for i, frame in enumerate(row.get("frames", [row.get("frame")])):
        assert frame < len(frames) and row["id"] + i == len(stacks)
        assert parent is None or parent < len(stacks)
        stacks.append((parent, frame))
        parent = len(stacks) - 1
threads = {(row["pid"], row["tid"]) for row in of("thread")}
assert all((row["pid"], row["tid"]) in threads for row in samples
           if row["tid"] is not None), "threads are known"
assert all(tid is not None for _, tid in threads), "nobody's name is told"


@functools.lru_cache(maxsize=None)
def names_in_frame(frame):
    known = names.get(frame, [{"name": frames[frame]["address"]}])
    return [function.get("name") or "[%s]" % function.get("start", "unknown")
            for function in known]


@functools.lru_cache(maxsize=None)
def names_in_stack(at):
    found = []
    while at is not None:
        at, frame = stacks[at]
        found += names_in_frame(frame)
    return found


# The samples of a stack share one list.
def chain(sample):
    return names_in_stack(sample["stack"])


def chain_frames(sample):
    at, found = sample["stack"], []
    while at is not None:
        at, frame = stacks[at]
        found.append(frame)
    return found


# Of all samples, or of those with another function in their stacks.
def self_share(function, within=None):
    total = sum(s["period"] for s in samples if within is None or within in chain(s))
    own = sum(s["period"] for s in samples if chain(s)[:1] == [function])
    return 100 * own / total


def jit_share(function):
    """Of the samples in generated code, those in the function, in percent. The rest of a program's
    time, in the loader and in the kernel, has no upper limit on a slow machine."""
    leaves = [s for s in samples if s["stack"] is not None]
    modules_of = [(s, frames[stacks[s["stack"]][1]]["module"]) for s in leaves]
    made = [s for s, m in modules_of if m is None or modules[m]["kind"] == "jit"]
    own = sum(s["period"] for s in made if chain(s)[:1] == [function])
    return 100 * own / max(1, sum(s["period"] for s in made))


def mostly_in(function, least=100):
    """Whether so many samples have the function in their stacks, and most of these are in itself."""
    return (sum(function in chain(s) for s in samples) >= least
            and self_share(function, function) > 50)


def rooted(least, function=None):
    """Whether this share of the samples, or of those with the function in their stacks, reach the
    root. In execve(2) there is no stack that could: those samples do not count, and a slow machine
    takes many of them."""
    of = [s for s in samples if s.get("stop") != "exec"
          and (function is None or function in chain(s))]
    return sum("stop" not in s for s in of) >= least * len(of)


def leaves_in(*files):
    """The samples in the code of a file of one of these names. Those of the kernel are none, of
    execve(2) for example, nor are those of the loader, which come first in each program."""
    def file_of(sample):
        module = None if sample["stack"] is None else frames[stacks[sample["stack"]][1]]["module"]
        return None if module is None else modules[module]["path"].split("/")[-1]
    return [s for s in samples if file_of(s) in files]


def clock_error():
    """What a clock may be off by, in nanoseconds: each stretch on a CPU is counted in whole
    periods, which has a standard deviation of half a period at most. Four of them."""
    times = sum(int(n) for note in notes for n in re.findall(r"preempted (\d+) times", note["text"]))
    period = max((s["period"] for s in samples if s["event"] == 0), default=0)
    return 4 * period / 2 * (times + 1) ** 0.5


def split_is_true(least=20):
    """Whether the leaves in split's three functions are 60, 30 and 10 % of each other, within
    five standard deviations of a binomial distribution, and enough to say so."""
    truth = {"sixty": 0.6, "thirty": 0.3, "ten": 0.1}
    weights = {name: [s["period"] for s in samples if chain(s)[:1] == [name]] for name in truth}
    every = [weight for of_name in weights.values() for weight in of_name]
    if len(every) < least:
        return False
    effective = sum(every) ** 2 / sum(weight * weight for weight in every)
    return all(abs(sum(weights[name]) / sum(every) - p) <= 5 * (p * (1 - p) / effective) ** 0.5
               for name, p in truth.items())


for expression in args[1:]:
    print(eval(expression))
