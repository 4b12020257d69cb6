# SPDX-License-Identifier: MIT
"""Writes a recording with every kind of detail, for what lists it: fields of a tracepoint,
branches, blocked time, a process id that was used twice. The values are for others to compute."""
import json

EVENTS = [
    {"id": 0, "name": "cpu-clock", "requested": "cpu-clock", "actual": "cpu-clock",
     "modifiers": "", "unit": "ns", "freq": 100},
    {"id": 1, "name": "block:done", "requested": "block:done", "actual": "block:done",
     "modifiers": "", "unit": "events", "period": 1, "filter": "bytes > -9"},
    {"id": 2, "name": "off-cpu", "requested": "off-cpu", "actual": "off-cpu",
     "modifiers": "", "unit": "ns", "period": 1},
    {"id": 3, "name": "page-faults", "requested": "page-faults", "actual": "page-faults",
     "modifiers": "", "unit": "events", "period": 1, "group": 0},
]
MODULES = ["/bin/prog", "[kernel.kallsyms]"]
# name, module, line
FUNCTIONS = [("main", 0, 3), ("read_all", 0, 17), ("do_wait", 1, None), ("schedule", 1, None),
             ("loop", 0, 20), ("loop", 0, 22)]
MS = 1000000


def lines():
    yield {"type": "header", "format": "pmrec", "version": 1, "pmrec": "0.1.0",
           "created": "2024-05-06T07:08:09Z", "clock": "monotonic", "host": {"cpus": 2},
           "command": ["prog"], "events": EVENTS,
           "options": {"call_graph": "dwarf", "stack_bytes": 8, "ring_bytes": 8}}
    for i, path in enumerate(MODULES):
        yield {"type": "module", "id": i, "path": path, "kind": "kernel" if i else "file"}
    for pid, tid, comm in (10, 10, "sh"), (10, 11, "work er"), (0, 0, "swapper"):
        yield {"type": "thread", "pid": pid, "tid": tid, "comm": comm, "time": 1}
    for i, (name, module, line) in enumerate(FUNCTIONS):
        yield {"type": "frame", "id": i, "module": module, "address": hex(16 + i), "how": "ip"}
        place = {"file": "prog.c", "line": line} if line else {}
        yield {"type": "symbol", "frame": i, "functions": [{"name": name, **place}]}
    # 0 main, 1 main read_all, 2 and so on to schedule; 4 schedule alone
    yield {"type": "stack", "id": 0, "parent": None, "frames": [0, 1, 2, 3]}
    yield {"type": "stack", "id": 4, "parent": None, "frames": [3]}

    def sample(ms, tid, event, period, stack, **more):
        return {"type": "sample", "time": ms * MS, "pid": 10 if tid else 0, "tid": tid,
                "cpu": tid % 2, "event": event, "period": period, "stack": stack, **more}

    for ms in range(10, 810, 10):
        yield sample(ms, 10, 0, 10 * MS, 1,
                     branches=[4, 5, 1, 3, 5, 4, 2, 5, 5, 4, 2, None] if ms < 100 else [])
    yield {"type": "thread", "pid": 10, "tid": 10, "comm": "prog", "time": 810 * MS}
    for ms in range(810, 1010, 10):
        yield sample(ms, 10, 0, 10 * MS, 0)
        yield sample(ms, 11, 0, 10 * MS, 1)
    for ms in range(10, 1010, 10):
        yield sample(ms, 0, 0, 10 * MS, 4)
    for i, size in enumerate([7, -3, 0, 1, 1024, 1023, 2**63 - 1, "0xffffffffffffffff", 4, 4]):
        who = "even" if i % 2 == 0 else "odd"
        yield sample(100 + i, 10 + i % 2, 1, 1, 1, fields={"bytes": size, "who": who})
    yield sample(120, 10, 1, 1, 1, fields={"bytes": "none", "who": "odd"})
    yield sample(121, 10, 1, 1, 1)
    yield sample(700, 11, 2, 600 * MS, 3)
    yield sample(705, 11, 2, 5 * MS, 3)
    yield sample(300, 10, 3, 1, 1)
    yield {"type": "footer", "samples": 235, "lost": 0, "throttled": 0, "truncated": 0,
           "stops": {}, "duration_ns": 1000 * MS, "cpu_ns": 1200 * MS, "exit": {"code": 0},
           "events": [{"id": e["id"], "samples": 0, "period": 0, "lost": 0} for e in EVENTS]}


for line in lines():
    print(json.dumps(line))
