#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the perf_event_attr of many specifications with `perf record -vv`.

event-attrs.py PRINT-ATTR GOLDEN          prints TAP
event-attrs.py --live PRINT-ATTR GOLDEN   the same, but runs perf again for all attrs
event-attrs.py --write GOLDEN             writes perf's present output

The PMUs come from a folder with the layout of sysfs, which perf takes from SYSFS_PATH and
print-attr from --devices. Because perf starts slowly, GOLDEN has the output of perf 6.1. If
perf 6.1 is installed, it is run again for some specifications, to check GOLDEN.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# PMU → type, files. The files of the core PMU are those of an Intel processor of 2019.
CPU = {
    'type': '4',
    'format/event': 'config:0-7', 'format/umask': 'config:8-15', 'format/edge': 'config:18',
    'format/any': 'config:21', 'format/inv': 'config:23', 'format/cmask': 'config:24-31',
    'format/in_tx': 'config:32', 'format/ldlat': 'config1:0-15',
    'format/offcore_rsp': 'config1:0-63', 'format/frontend': 'config1:0-23',
    'events/cpu-cycles': 'event=0x3c', 'events/instructions': 'event=0xc0',
    'events/mem-loads': 'event=0xcd,umask=0x1,ldlat=3',
    'events/mem-stores': 'event=0xd0,umask=0x82',
    'events/el-start': 'event=0xc8,umask=0x1', 'events/tx-abort': 'event=0xc9,umask=0x4',
    'events/el-cycles': 'event=0x3c,in_tx', 'events/by-word': 'config=0x1234,config1=0x5',
}
IMC = {
    'format/event': 'config:0-7,32-35', 'format/filter': 'config1:0,4,8-9',
    'format/mask': 'config2:0-63', 'cpumask': '0',
    'events/cas_count_read': 'event=0x304,filter=0x3', 'events/cas_count_read.scale': '6.1e-5',
    'events/cas_count_read.unit': 'MiB',
}
SOFTWARE = {'type': '1'}
TRACEPOINT = {'type': '2'}
BREAKPOINT = {'type': '5'}
PLAIN = {'cpu': CPU, 'uncore_imc_0': {'type': '20', **IMC}, 'uncore_imc_1': {'type': '21', **IMC},
         'software': SOFTWARE, 'tracepoint': TRACEPOINT, 'breakpoint': BREAKPOINT}
# Two kinds of cores, each with its own PMU.
CORE = {k: v for k, v in CPU.items() if k.startswith(('format/', 'events/'))}
HYBRID = {'cpu_core': {**CORE, 'type': '4', 'cpus': '0'},
          'cpu_atom': {**CORE, 'type': '10', 'cpus': '1'}}

OVER = 'what is typed takes the place of what the event\'s name stands for; perf joins the bits'
# Without G and H, our exclude_guest differs from perf's on purpose: addresses of guests are
# meaningless here, so the bit is set for all hardware; events of the kernel itself have no
# guests, so it is clear for them (PMUs without exclusion reject the bit). perf sets it by
# default, with u and with p, but not with k, h, I, D, e or P.
IN_THE_KERNEL = ('1', '2', '5')

# (specification, fields that differ on purpose → the reason)
SPECS = [(s, {}) for s in '''
cycles
cpu-cycles
cycles:u
cycles:k
cycles:uk
cycles:ku
cycles:h
cycles:uh
cycles:ukh
cycles:G
cycles:H
cycles:GH
cycles:uG
cycles:kH
cycles:I
cycles:uI
cycles:p
cycles:pp
cycles:ppp
cycles:upp
cycles:Gp
cycles:D
cycles:uD
cycles:e
cycles:kppH
instructions
instructions:u
cache-references
cache-misses:u
branches
branch-instructions:k
branch-misses:pp
bus-cycles
stalled-cycles-frontend
idle-cycles-backend
ref-cycles
L1-dcache-loads
L1-dcache-load-misses:u
L1-dcache-stores
L1-icache-load-misses
LLC-loads
LLC-store-misses:pp
dTLB-load-misses
iTLB-loads
branch-loads
node-prefetches
r1a8
r1A8:u
rC0:kp
r53010e
cycles/period=12345/
cycles/freq=999/
cycles/freq=999/u
cycles/name=mine/u
cycles/config1=0x10,config2=0x20/
instructions/period=100000,name=a-b/k
LLC-loads/freq=50/
r1a8/period=7/pp
0:1
4:0x3c:u
3:65538
cpu/cpu-cycles/
cpu/instructions/u
cpu/event=0x3c/
cpu/event=0x3c,umask=0x1/pp
cpu/event=0xc0,umask=0x0,inv,cmask=0x10/
cpu/event=0x3c,edge=1,any/k
cpu/event=0xb7,umask=1,offcore_rsp=0x3f803c0001/
cpu/event=0xc6,umask=1,frontend=0x12/pp
cpu/event=cpu-cycles/
cpu/cpu-cycles,cmask=2/
cpu/CPU-CYCLES/
cpu/el-cycles/
cpu/by-word/
cpu/r1a8/
cpu/config=0x1a8/
cpu/config=0x1a8,config1=0x7,config2=0x9/
cpu/config=0xff00,event=0x12/
cpu/event=0x3c,period=1000003/
cpu/event=0x3c,freq=123,name=x/u
cpu/event=0x3c,in_tx=1/
mem-loads
mem-loads:pp
mem-stores:upp
tx-abort
cpu/mem-loads/pp
uncore_imc_0/event=0xfff,filter=0xb,mask=5/
uncore_imc_1/cas_count_read/
imc_0/event=0x1/
uncore_imc/cas_count_read/
{cycles,instructions}
{cycles,instructions}:u
{cycles:k,instructions}:p
{cycles,instructions}:D
{cycles,cache-misses}:S
'''.strip().splitlines()]
SPECS += [(s, {}) for s in '''
cycles:P
cycles:uP
mem-loads:P
cpu-clock
cpu-clock:u
task-clock:k
page-faults
minor-faults:u
major-faults
context-switches
cs:k
cpu-migrations
alignment-faults
emulation-faults
cpu-clock/freq=99/
cs/period=3/
cpu-clock,cs:k
{cpu-clock,page-faults}
{cpu-clock,page-faults}:u
{cpu-clock,page-faults}:S
cpu-clock:p
software/config=1/
mem:0x1000
mem:0x1000:w
mem:0x1000/8
mem:0x1000/1:rw
mem:0x1000/2:w:u
mem:0x1000:x
mem:0x7ffff000:rw:k
mem:0x1000:uH
sched:sched_switch
sched:sched_switch:u
sched:sched_process_exec:k
syscalls:sys_enter_openat
'''.strip().splitlines()]
SPECS += [('cpu/mem-loads,ldlat=30/pp', {'config1': OVER})]
HYBRID_SPECS = [(s, {}) for s in '''
cpu_core/event=0x3c/
cpu_atom/event=0x3c,umask=1/u
cpu_atom/cpu-cycles/
cpu_core/mem-loads/pp
cpu_core/r1a8/
'''.strip().splitlines()]

# For how many specifications perf is run again.
LIVE = 10
# The version of perf that wrote the golden file.
VERSION = '6.1'

# print-attr's names → perf's names.
FIELDS = {
    'type': 'type', 'config': 'config', 'config1': '{ bp_addr, config1 }',
    'config2': '{ bp_len, config2 }', 'rate': '{ sample_period, sample_freq }', 'freq': 'freq',
    'exclude_user': 'exclude_user', 'exclude_kernel': 'exclude_kernel',
    'exclude_hv': 'exclude_hv', 'exclude_idle': 'exclude_idle', 'exclude_host': 'exclude_host',
    'exclude_guest': 'exclude_guest', 'precise_ip': 'precise_ip', 'pinned': 'pinned',
    'exclusive': 'exclusive', 'disabled': 'disabled', 'bp_type': 'bp_type',
    'bp_addr': '{ bp_addr, config1 }', 'bp_len': '{ bp_len, config2 }',
}


def make_tree(folder, pmus):
    for pmu, files in pmus.items():
        for name, text in files.items():
            path = os.path.join(folder, 'bus/event_source/devices', pmu, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as file:
                file.write(text + '\n')


def perf_attrs(sysfs, spec):
    """The attrs that perf tries to open: one dictionary per event, up to the first failure."""
    env = dict(os.environ, SYSFS_PATH=sysfs, LC_ALL='C')
    run = subprocess.run(['perf', 'record', '-vv', '--no-bpf-event', '--no-buildid', '-o',
                          '/dev/null', '-e', spec, 'true'], env=env, text=True,
                         capture_output=True, errors='replace')
    attrs, current = [], None
    for line in run.stderr.splitlines():
        if line == 'perf_event_attr:':
            current = {}
            attrs.append(current)
        elif current is not None and line.startswith('  '):
            key, value = re.match(r'  (\{.*?\}|\S+)\s+(.*)', line).groups()
            current[key] = value.strip()
        else:
            current = None
            # Then come further attempts with other attrs.
            if 'failed, error' in line:
                break
    return attrs


def our_attrs(print_attr, sysfs, spec):
    run = subprocess.run([print_attr, '--devices',
                          os.path.join(sysfs, 'bus/event_source/devices'), spec],
                         text=True, capture_output=True)
    lines = run.stdout.splitlines()
    return [dict(part.split('=') for part in line.split()) for line in lines], run.stderr


def tracepoint_id(spec):
    """The id on this kernel, as text; None if tracefs cannot be read."""
    system, name = spec.split(':')[:2]
    for tracefs in ('/sys/kernel/tracing', '/sys/kernel/debug/tracing'):
        try:
            with open(f'{tracefs}/events/{system}/{name}/id') as file:
                return file.read().strip()
        except OSError:
            pass
    return None


def number(text):
    return int(text, 0)


def says_guests(spec):
    """Whether one of its modifiers is G or H."""
    return re.search(r'[:/}][a-zI]*[GH]+[a-zGH]*$', spec) is not None


def guest_rule(spec, ours):
    if says_guests(spec):
        return []
    return [f'exclude_guest: {our["exclude_guest"]} of type {our["type"]}' for our in ours
            if (our['exclude_guest'] == '1') == (our['type'] in IN_THE_KERNEL)]


def compare(print_attr, sysfs, spec, intended, theirs):
    """Descriptions of the differences."""
    ours, refusal = our_attrs(print_attr, sysfs, spec)
    if not theirs:
        return ['perf gives no attr']
    if not ours:
        return ['refused: ' + refusal]
    wrong = guest_rule(spec, ours)
    if 'imc' in spec:  # perf uses the PMUs in the order of the folder
        ours = [our for our in ours if our['type'] == theirs[0]['type']]
    for our, their in zip(ours, theirs):
        sample_type = their.get('sample_type', '').split('|')
        pairs = {name: (number(our[name]), number(their.get(FIELDS[name], '0')))
                 for name in our if name in FIELDS}
        if not says_guests(spec):
            del pairs['exclude_guest']
        if our['type'] == '5':
            del pairs['config1'], pairs['config2']
        pairs['read'] = (number(our['read']), int('READ' in sample_type))
        read_format = their.get('read_format', '').split('|')
        pairs['group'] = (number(our['group']), int('GROUP' in read_format))
        for name, (a, b) in pairs.items():
            if name in intended:
                if a == b:
                    wrong.append(f'{name} should differ ({intended[name]})')
            elif a != b:
                wrong.append(f'{name}: {a:#x}, perf has {b:#x}')
    return wrong


def ask_perf(folder, jobs):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda job: perf_attrs(os.path.join(folder, job[0]), job[1]), jobs))


def write(golden, folder, jobs):
    with open(golden, 'w') as file:
        for (tree, spec, _), attrs in zip(jobs, ask_perf(folder, jobs)):
            wanted = [{key: value for key, value in attr.items()
                       if key in set(FIELDS.values()) | {'sample_type', 'read_format'}}
                      for attr in attrs]
            file.write(json.dumps([tree, spec, wanted]) + '\n')


def read(golden):
    with open(golden) as file:
        return {(tree, spec): attrs for tree, spec, attrs in map(json.loads, file)}


def report(number, name, wrong, intended):
    print(f'{"not " if wrong else ""}ok {number} - {name}')
    for line in wrong:
        print('# ' + line)
    for field, reason in intended.items():
        print(f'# {field} differs on purpose: {reason}')


def same_perf():
    return shutil.which('perf') is not None and subprocess.run(
        ['perf', '--version'], text=True, capture_output=True).stdout.startswith(
            f'perf version {VERSION}.')


def still_true(known, fresh):
    """Values that perf prints now and that differ from the golden file."""
    return [f'{key}: {new.get(key)} now' for old, new in zip(known, fresh) for key in old
            if key in FIELDS.values() and old[key] != new.get(key)
            # Each build of the kernel numbers tracepoints differently.
            and not (key == 'config' and old.get('type') == '2')]


def main():
    live = '--live' in sys.argv
    args = [arg for arg in sys.argv[1:] if not arg.startswith('--')]
    jobs = [('plain', *entry) for entry in SPECS]
    jobs += [('hybrid', *entry) for entry in HYBRID_SPECS]
    with tempfile.TemporaryDirectory() as folder:
        make_tree(os.path.join(folder, 'plain'), PLAIN)
        make_tree(os.path.join(folder, 'hybrid'), HYBRID)
        if '--write' in sys.argv:
            return write(args[0], folder, jobs)
        print_attr, known = args[0], read(args[1])
        again = jobs if live else jobs[::len(jobs) // LIVE]
        print(f'1..{len(jobs) + 1}')
        for i, (tree, spec, intended) in enumerate(jobs, 1):
            theirs = known.get((tree, spec), [])
            for attr in theirs:
                if attr.get('type') == '2':
                    attr['config'] = tracepoint_id(spec) or attr['config']
            report(i, spec, compare(print_attr, os.path.join(folder, tree), spec, intended,
                                    theirs), intended)
        name = f'perf still says so of {len(again)}'
        if not same_perf():
            print(f'ok {len(jobs) + 1} - {name} # SKIP no perf {VERSION}, other versions differ')
            return 0
        fresh = ask_perf(folder, again)
        report(len(jobs) + 1, name, [f'{spec}: {line}' for (tree, spec, _), now
                                     in zip(again, fresh)
                                     for line in still_true(known[tree, spec], now)], {})
    return 0


if __name__ == '__main__':
    sys.exit(main())
