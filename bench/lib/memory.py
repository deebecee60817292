# SPDX-License-Identifier: Apache-2.0
"""The memory of processes, as the kernel counts it, in KiB

What:  resident() and private() of one process; peak() of a process and all its children together while
       a command runs.
Rules: together is proportional: what several share, such as a library's code, counts once. A child that
       runs the daemon's own program is one that waits for another, in the daemon's own memory
       (src/base/os/child.c), and does not count.
"""
import os
import pathlib
import re
import subprocess
import time

EVERY_S = 0.005


def rollup(pid):
    """{name: KiB} of /proc/PID/smaps_rollup; empty if the process has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return {}
    return {name: int(kib) for name, kib in re.findall(r"(?m)^(\w+): +(\d+) kB$", text)}


def resident(pid):
    return rollup(pid)["Rss"]


def private(pid):
    found = rollup(pid)
    return found["Private_Clean"] + found["Private_Dirty"]


def children(pid):
    try:
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []


def family(pid):
    return [pid, *(one for child in children(pid) for one in family(child))]


def program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def together(pid):
    others = (one for one in family(pid)[1:] if program(one) != program(pid))
    return sum(rollup(one).get("Pss", 0) for one in (pid, *others))


def peak(pid, command):
    """The most that the process and its children have together until the command has ended."""
    most = together(pid)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, together(pid))
            time.sleep(EVERY_S)
    assert process.returncode == 0, command
    return most
