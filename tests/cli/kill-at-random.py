#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill-at-random.py SEED COUNT PMREC PMREPORT PROGRAMS: kills (SIGKILL) COUNT recorders or their
targets at random moments, from before the start until after the end, and fails where a file
cannot be reported, or is cut and the report does not say so, or a process stays behind that is
stopped or does not end. An empty SEED is chosen anew; it is printed, and with it the way things
went."""
import collections
import ctypes
import os
import random
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 200  # seconds, for machines that are busy
seed = sys.argv[1] or str(random.SystemRandom().randrange(1 << 32))
count = int(sys.argv[2])
pmrec, pmreport, programs = sys.argv[3:6]
rng = random.Random(seed)
# Whatever loses its parent becomes a child of this process.
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
print("seed", seed, flush=True)


def children(of):
    """(pid, name, state) of each."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:].rsplit(")", 1)
        state, parent = rest.split()[:2]
        if int(parent) == of:
            found.append((int(pid), name, state))
    return found


def stopped():
    return [row for row in children(os.getpid()) if row[2] in "Tt"]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_for_all():
    """None, or what is wrong with those that are left, who are killed then."""
    end, twice, wrong = time.monotonic() + PATIENCE, 0, None
    while wrong is None:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] > 0:
                continue
        except ChildProcessError:
            return None
        twice = twice + 1 if stopped() else 0
        if twice > 100:
            wrong = f"stopped: {stopped()}"
        elif time.monotonic() > end:
            wrong = f"does not end: {children(os.getpid())}"
        time.sleep(0.02)
    for row in children(os.getpid()):
        kill(row[0])
    return wrong


def start(mode, name):
    """The recorder, and the target where that is another child of ours."""
    program = rng.choice([["split", "0.3"], ["storm", "churn", "600", "400"]])
    command = [os.path.join(programs, program[0])] + program[1:]
    hertz = "900" if mode == "ptrace" else "4000"
    options = [pmrec, "-e", "cpu-clock", "-F", hertz, "-o", name]
    if mode == "ptrace":
        options = [pmrec, "--engine", "ptrace", "-F", hertz, "-o", name]
    with open("err", "wb") as err:
        if mode != "attach":
            return subprocess.Popen(options + ["--"] + command, stderr=err,
                                    stdout=subprocess.DEVNULL), None
        target = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return subprocess.Popen(options + ["-p", str(target.pid)], stderr=err), target


def report(name):
    """What is wrong with the file."""
    if not os.path.exists(name):
        return "no file", None
    done = subprocess.run([pmreport, name], capture_output=True, check=False)
    text = (done.stdout + done.stderr).decode(errors="replace")
    # Killed between making the file and its first block.
    if os.path.getsize(name) == 0 and "the file is empty: nothing was recorded" in text:
        return "empty", None
    if done.returncode != 0:
        return "none", f"report exits {done.returncode}: {text}"
    cat = ["zstd", "-dcqf", name] if name.endswith(".zst") else ["cat", name]
    data = subprocess.run(cat, capture_output=True, check=False).stdout
    lines = data.split(b"\n")
    whole = lines[-1] == b"" and lines[-2].startswith(b'{"type":"footer"')
    if whole == ("is cut short" in text):
        return "none", f"{'whole' if whole else 'cut'}, but the report says: {text}"
    return "whole" if whole else "cut", None


def once(mode, name, victim):
    if os.path.exists(name):
        os.unlink(name)
    recorder, target = start(mode, name)
    time.sleep(rng.uniform(0, 1))
    if victim == "recorder":
        recorder.kill()
    elif target:
        target.kill()
    else:
        for pid, name_of, _ in children(recorder.pid):
            if name_of != "pmrec-names":
                kill(pid)
    status = recorder.wait(PATIENCE)
    if target:
        target.wait(PATIENCE)
    wrong = wait_for_all()
    state, unlike = report(name)
    wrong = wrong or unlike
    # 126: it was killed before its program began.
    if not wrong and victim == "target" and state != "whole" and status not in (125, 126):
        wrong = f"the target was killed, the recorder ended with {status}: {state}"
    if not wrong and status < 0 and victim == "target":
        wrong = f"the recorder crashed: {status}"
    return f"{mode} {os.path.splitext(name)[1]} {victim}: {state}", wrong


went, bad = collections.Counter(), 0
for number in range(count):
    # Each kind is met, however few there are.
    kind = ("perf", "ptrace", "attach")[number % 3]
    outcome, problem = once(kind, rng.choice(["k.json", "k.json.zst"]),
                            rng.choice(["recorder", "recorder", "target"]))
    went[outcome] += 1
    if problem:
        bad += 1
        print(f"{number}: {outcome}: {problem}")
        with open("err", encoding="utf-8", errors="replace") as text:
            print(text.read())
for outcome, times in sorted(went.items()):
    print(times, outcome)
sys.exit(1 if bad else 0)
