#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counts-like-perf.py PMSTAT COMMAND...: runs the command under pmstat and under perf stat, by
turns, and fails unless their counts agree: task-clock within 2 %, faults and context switches
within the spread of perf's own runs.

The command takes the same CPU time each time. A busy machine, or the host that takes CPU time from
it, can only add to that: the least of all runs is compared, and more runs are made until both have
been left alone."""
import json
import statistics
import subprocess
import sys
import tempfile

RUNS = 5
RUNS_MAX = 40
EVENTS = ['page-faults', 'context-switches', 'task-clock']
pmstat, command = sys.argv[1], sys.argv[2:]
ours, theirs = {e: [] for e in EVENTS}, {e: [] for e in EVENTS}


def run(argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=300)


def count_with_pmstat(file):
    run([pmstat, '--json', '-o', file.name, '-e', ','.join(EVENTS), '--', *command])
    with open(file.name, encoding='utf-8') as text:
        document = json.load(text)
    for event, count in zip(document['events'], document['runs'][0]['counts']):
        if event['name'] in ours:
            ours[event['name']].append(count['value'])


def count_with_perf(file):
    run(['perf', 'stat', '-x', ',', '-o', file.name, '-e', ','.join(EVENTS), '--', *command])
    with open(file.name, encoding='utf-8') as text:
        for line in text:
            fields = line.split(',')
            if len(fields) > 2 and fields[2].split(':')[0] in theirs:
                name = fields[2].split(':')[0]
                # perf gives clocks in ms.
                theirs[name].append(float(fields[0]) * (1e6 if name == 'task-clock' else 1))


def difference(event):
    """What is wrong with the counts of the event; None: nothing."""
    mine = statistics.median(ours[event])
    low, high = min(theirs[event]), max(theirs[event])
    if event == 'task-clock':
        mine = min(ours[event])
        low, high = low * 0.98, low * 1.02
    elif event == 'page-faults':
        # Where the stack begins, and with it a page or two, is random.
        low, high = low - 2, high + 2
    else:
        # Preemption: what others do has no bound, but it meets both.
        low, high = low - (high - low), high + (high - low) + 2
    return None if low <= mine <= high else f'{event}: {mine} is not between {low} and {high}'


with tempfile.NamedTemporaryFile() as file:
    for number in range(1, RUNS_MAX + 1):
        count_with_pmstat(file)
        count_with_perf(file)
        if number >= RUNS and not any(map(difference, EVENTS)):
            break

for event in EVENTS:
    print(f'{event}: ours {ours[event]}, of perf {theirs[event]}')
    assert len(ours[event]) == len(theirs[event]) >= RUNS, event
wrong = list(filter(None, map(difference, EVENTS)))
assert not wrong, wrong
