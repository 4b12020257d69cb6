#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""switches.py FILE: compares sched:sched_switch in a recorded FILE with `perf script --ns
-F tid,time,event,trace` on stdin, both of the same run on CLOCK_MONOTONIC.

Each sample of `ping` and `pong` in FILE must have its hit in perf's, at the same time, with the
same fields, and each of perf's between the first and the last of them must be in FILE. At the
same time: both read the clock in one hit, thus both before either does in the thread's next
one, however long a host takes the CPU away between the two; and most of them FAR_NS near.
Prints how many there are.
"""
import json
import re
import statistics
import sys

FAR_NS = 500_000  # between two clock readings of one hit
# include/trace/events/sched.h, TASK_REPORT; `+` is for a preempted one, one bit above them.
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "P": 64, "I": 128}
LINE = re.compile(
    r"\s*(\d+) +(\d+)\.(\d{9}): sched:sched_switch: prev_comm=(.*) prev_pid=(\d+) "
    r"prev_prio=(-?\d+) prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) next_prio=(-?\d+)"
)


def state(text):
    plus = text.endswith("+")
    return sum(STATES[letter] for letter in text.rstrip("+").split("|")) + 256 * plus


perfs = []
for line in sys.stdin:
    found = LINE.match(line)
    assert found, "not understood: " + line
    g = found.groups()
    perfs.append(
        {
            "tid": int(g[0]),
            "time": int(g[1]) * 1_000_000_000 + int(g[2]),
            "fields": {
                "prev_comm": g[3],
                "prev_pid": int(g[4]),
                "prev_prio": int(g[5]),
                "prev_state": state(g[6]),
                "next_comm": g[7],
                "next_pid": int(g[8]),
                "next_prio": int(g[9]),
            },
        }
    )
ours = []
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        row = json.loads(line)
        if row["type"] == "sample":
            ours.append(row)


def same(mine, theirs):
    """Whether these are the same hits, one by one."""
    if any(a["fields"] != b["fields"] for a, b in zip(mine, theirs)):
        return False
    times = [sorted((a["time"], b["time"])) for a, b in zip(mine, theirs)]
    if any(one[1] >= next[0] for one, next in zip(times, times[1:])):
        return False
    return statistics.median(late - early for early, late in times) < FAR_NS


players = {s["tid"] for s in ours if s["fields"]["prev_comm"] in ("ping", "pong")}
assert len(players) == 2, players
compared = 0
for tid in players:
    mine = sorted((s for s in ours if s["tid"] == tid), key=lambda s: s["time"])
    theirs = sorted((s for s in perfs if s["tid"] == tid), key=lambda s: s["time"])
    # The one may begin before the other, and end after its last.
    begins = [len(theirs) - len(mine) - late for late in (0, 1)]
    at = [i for i in begins if i >= 0 and same(mine, theirs[i : i + len(mine)])]
    assert at, (tid, len(mine), len(theirs), mine[:2], theirs[:4])
    compared += len(mine)
print(compared)
