#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counts-like-perf.py PMSTAT COMMAND...: runs the command under pmstat and under perf stat, by
turns, and fails unless their counts agree: task-clock within 2 %, faults and context switches
within the spread of perf's own runs."""
import json
import statistics
import subprocess
import sys
import tempfile

RUNS = 5
EVENTS = ['page-faults', 'context-switches', 'task-clock']
pmstat, command = sys.argv[1], sys.argv[2:]
ours, theirs = {e: [] for e in EVENTS}, {e: [] for e in EVENTS}


def run(argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=60)


with tempfile.NamedTemporaryFile() as file:
    for _ in range(RUNS):
        run([pmstat, '--json', '-o', file.name, '-e', ','.join(EVENTS), '--', *command])
        with open(file.name, encoding='utf-8') as text:
            document = json.load(text)
        for event, count in zip(document['events'], document['runs'][0]['counts']):
            if event['name'] in ours:
                ours[event['name']].append(count['value'])
        run(['perf', 'stat', '-x', ',', '-o', file.name, '-e', ','.join(EVENTS), '--', *command])
        with open(file.name, encoding='utf-8') as text:
            for line in text:
                fields = line.split(',')
                if len(fields) > 2 and fields[2].split(':')[0] in theirs:
                    name = fields[2].split(':')[0]
                    # perf gives clocks in ms.
                    theirs[name].append(float(fields[0]) * (1e6 if name == 'task-clock' else 1))

for event in EVENTS:
    print(f'{event}: ours {ours[event]}, of perf {theirs[event]}')
    assert len(ours[event]) == len(theirs[event]) == RUNS, event
    mine = statistics.median(ours[event])
    low, high = min(theirs[event]), max(theirs[event])
    if event == 'task-clock':
        other = statistics.median(theirs[event])
        low, high = other * 0.98, other * 1.02
    elif event == 'page-faults':
        # Where the stack begins, and with it a page or two, is random.
        low, high = low - 2, high + 2
    else:
        # Preemption: what others do has no bound, but it meets both.
        low, high = low - (high - low), high + (high - low) + 2
    assert low <= mine <= high, f'{event}: {mine} is not between {low} and {high}'
