#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill-pmdiff.py random COUNT SECONDS COMMAND...: ends pmdiff COUNT times, by SIGINT, SIGTERM or
SIGKILL, at random moments of so many seconds, and fails where a process, a folder, a worktree or
a branch stays behind. The seed is printed; PMDIFF_SEED sets it.

kill-pmdiff.py everybody COMMAND...: kills all of its processes at once, as a machine does that
loses its power, and fails where nothing stays behind: the next run is to find that.

The repository is in the working directory, and what TMPDIR names is empty."""
import os
import random
import signal
import subprocess
import sys
import time

PATIENCE = 200  # seconds, for machines that are busy
tmp = os.environ["TMPDIR"]


def processes(mark):
    """Those that have our mark in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass  # somebody else's, or gone
    return found


def send(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass  # it has ended


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def state():
    """What must be as it was."""
    return (git("worktree", "list"), git("for-each-ref"), git("status", "--porcelain"),
            os.path.exists(".git/worktrees"), os.listdir(tmp))


def start(command, number):
    mark = f"PMDIFF_TEST_MARK={os.getpid()}.{number}"
    environment = dict(os.environ, **dict([mark.split("=")]))
    # SIGINT is ignored in what shells run in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return mark, subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def await_end(mark, before):
    """None, or what is left."""
    end = time.monotonic() + PATIENCE
    while True:
        left = processes(mark)
        if not left and state() == before:
            return None
        if time.monotonic() > end:
            return left, state()
        time.sleep(0.02)


def at_random(count, seconds, command):
    seed = os.environ.get("PMDIFF_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print("seed", seed, flush=True)
    rng = random.Random(seed)
    before = state()
    for number in range(count):
        after = rng.random() * seconds
        how = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        mark, process = start(command, number)
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
        status = process.wait()
        print(f"{how.name} after {after:.2f} s: status {status}", flush=True)
        if status < 0 and status != -how:
            sys.exit("it ended in another way")
        left = await_end(mark, before)
        if left:
            for pid in left[0]:
                send(pid, signal.SIGKILL)
            sys.exit(f"left behind: {left}")


def everybody(command):
    before = state()
    mark, process = start(command, 0)
    end = time.monotonic() + PATIENCE
    # Until a worktree is there. Nobody must see another die.
    while not os.path.exists(".git/worktrees") and time.monotonic() < end:
        time.sleep(0.02)
    # Those that come while others are stopped, too; and some end by themselves meanwhile.
    stopped = set()
    while new := set(processes(mark)) - stopped:
        for pid in new:
            send(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        send(pid, signal.SIGKILL)
    process.wait()
    while processes(mark) and time.monotonic() < end:
        time.sleep(0.02)
    if state() == before:
        sys.exit("nothing was left")


if sys.argv[1] == "random":
    at_random(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
else:
    everybody(sys.argv[2:])
