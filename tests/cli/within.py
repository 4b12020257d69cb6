#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""within.py SECONDS MEGABYTES COMMAND...: runs it, with all that it starts and waits for; fails
when that took more CPU time in all, or one process more memory, and prints both."""
import resource
import subprocess
import sys

seconds, megabytes = float(sys.argv[1]), float(sys.argv[2])
code = subprocess.run(sys.argv[3:], check=False, timeout=200).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(f'{cpu:.2f} s of CPU time, {memory:.0f} MB', file=sys.stderr)
if cpu > seconds or memory > megabytes:
    sys.exit('within.py: too much')
sys.exit(code)
