#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hostile-recordings.py KIND: a recording on standard output that pmrec would not write.

deep: one stack of 200,000 frames. bushy: 24 stacks of 16,000 frames each. long: samples on each
of the last 10,000 frames of a stack of 16,000, with names of 100 bytes. notes: 100,000 notes.
names: functions with names of a million bytes on a stack of 10,000 frames.
"""
import json
import sys

HEADER = {
    'type': 'header', 'format': 'pmrec', 'version': 1, 'pmrec': '0',
    'created': '2024-05-06T07:08:09Z', 'clock': 'monotonic',
    'host': {'hostname': None, 'kernel': None, 'arch': None, 'cpus': None},
    'command': ['hostile'],
    'events': [{'id': 0, 'name': 'cpu-clock', 'requested': 'cpu-clock', 'actual': 'cpu-clock',
                'modifiers': '', 'unit': 'ns', 'freq': 1000}],
    'options': {'call_graph': 'dwarf', 'stack_bytes': 8, 'ring_bytes': 8},
}
RUN = 500000  # a line holds a million values at most
stacks = samples = 0


def put(line):
    print(json.dumps(line, separators=(',', ':')))


def frames(names):
    for i, name in enumerate(names):
        put({'type': 'frame', 'id': i, 'module': None, 'address': hex(4096 + i), 'how': 'ip'})
        put({'type': 'symbol', 'frame': i, 'functions': [{'name': name, 'file': None}]})


def chain(first, rest, length):
    """The id of the innermost of so many frames."""
    global stacks
    parent = None
    while length > 0:
        run = min(length, RUN)
        put({'type': 'stack', 'id': stacks, 'parent': parent,
             'frames': [first if parent is None else rest] + [rest] * (run - 1)})
        stacks += run
        parent = stacks - 1
        length -= run
    return parent


def sample(stack):
    global samples
    samples += 1
    put({'type': 'sample', 'time': samples, 'pid': 7, 'tid': 7, 'cpu': 0, 'event': 0,
         'period': 1000, 'stack': stack})


def main(kind):
    put(HEADER)
    put({'type': 'thread', 'pid': 7, 'tid': 7, 'comm': 'hostile', 'time': 0})
    if kind == 'deep':
        frames(['outer', 'inner'])
        sample(chain(0, 1, 200000))
    elif kind == 'bushy':
        frames(['f%d' % i for i in range(25)])
        for i in range(24):
            sample(chain(i, 24, 16000))
    elif kind == 'long':
        frames(['outer', 'n' * 100])
        last = chain(0, 1, 16000)
        for i in range(10000):
            sample(last - i)
    elif kind == 'names':
        frames(['outer', '<' * 1000000])
        sample(chain(0, 1, 10000))
    elif kind == 'notes':
        frames(['f'])
        sample(chain(0, 0, 1))
        for i in range(100000):
            put({'type': 'note', 'text': 'note %d' % i})
    put({'type': 'footer', 'samples': samples, 'lost': 0, 'throttled': 0, 'truncated': 0,
         'stops': {'root': samples}, 'duration_ns': 1000000, 'cpu_ns': None,
         'exit': {'code': 0},
         'events': [{'id': 0, 'samples': samples, 'period': 1000 * samples, 'lost': 0}]})


main(sys.argv[1])
