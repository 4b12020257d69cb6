#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""waits.py FILE: writes a recording of 8.5 s with three waits that are known to the nanosecond.

It begins at 0.5 s of its clock: a thread waits from then until 0.6 s in other_wait() and from
2.98 s to the end, at 9 s, another one from 1 s to 3 s in long_wait().
"""
import json
import sys

BASE = 10_000_000_000
MS = 1_000_000


def event(number, name, unit):
    return {
        "id": number,
        "name": name,
        "requested": name,
        "actual": name,
        "modifiers": "",
        "unit": unit,
        "period": 1,
    }


def sample(ms, tid, number, period_ms, stack, **more):
    return {
        "type": "sample",
        "time": BASE + ms * MS,
        "pid": 7,
        "tid": tid,
        "cpu": 0,
        "event": number,
        "period": period_ms * MS,
        "stack": stack,
        **more,
    }


lines = [
    {
        "type": "header",
        "format": "pmrec",
        "version": 1,
        "pmrec": "0",
        "created": "2024-05-06T07:08:09Z",
        "clock": "monotonic",
        "host": {"cpus": 2},
        "command": ["prog"],
        "events": [event(0, "cpu-clock", "ns"), event(1, "off-cpu", "ns")],
        "options": {"call_graph": "dwarf", "stack_bytes": 8, "ring_bytes": 8},
    },
    {"type": "module", "id": 0, "path": "/bin/prog", "kind": "file"},
    {"type": "thread", "pid": 7, "tid": 8, "comm": "a", "time": BASE + 600 * MS},
    {"type": "thread", "pid": 7, "tid": 9, "comm": "b", "time": BASE + 600 * MS},
]
for i, function in enumerate(("long_wait", "other_wait")):
    lines += [
        {"type": "frame", "id": i, "module": 0, "address": hex(16 * (i + 1)), "how": "ip"},
        {"type": "stack", "id": i, "parent": None, "frames": [i]},
        {"type": "symbol", "frame": i, "functions": [{"name": function}]},
    ]
samples = [
    sample(600, 9, 1, 100, 1),
    sample(700, 9, 0, 10, 1),
    sample(3000, 8, 1, 2000, 0),
    sample(3100, 8, 0, 10, 0),
    sample(9000, 9, 1, 6020, 1, fields={"still_blocked": 1}),
]
lines += samples
lines.append(
    {
        "type": "footer",
        "samples": len(samples),
        "lost": 0,
        "throttled": 0,
        "truncated": 0,
        "stops": {"root": len(samples)},
        "duration_ns": 8500 * MS,
        "cpu_ns": None,
        "exit": None,
        "events": [
            {
                "id": i,
                "samples": sum(s["event"] == i for s in samples),
                "period": sum(s["period"] for s in samples if s["event"] == i),
                "lost": 0,
            }
            for i in (0, 1)
        ],
    }
)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    for line in lines:
        file.write(json.dumps(line, separators=(",", ":")) + "\n")
