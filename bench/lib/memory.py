# SPDX-License-Identifier: Apache-2.0
"""Memory of processes in KiB, from /proc

What:  resident(), private() and proportional() (PSS) return the memory of one process, of_others() that of many.
       peak() returns the largest total of a process and its descendants while a command runs.
Rules: in a total of several processes, memory that they share, such as a library's code, counts once
       (PSS). A child that runs the daemon's own program does not count: it shares the daemon's memory
       and only waits for the program that it has started (src/base/os/child.c).
"""
import os
import pathlib
import re
import subprocess
import time

EVERY_S = 0.005


def rollup(pid):
    """{name: KiB} from /proc/PID/smaps_rollup; empty if the process has exited"""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return {}
    return {name: int(kib) for name, kib in re.findall(r"(?m)^(\w+): +(\d+) kB$", text)}


def resident(pid):
    return rollup(pid)["Rss"]


def private(pid):
    found = rollup(pid)
    return found.get("Private_Clean", 0) + found.get("Private_Dirty", 0)


def proportional(pid):
    return rollup(pid).get("Pss", 0)


def of_others(known, measure=private):
    """The memory of all processes of the sandbox, except those known and this one."""
    pids = {int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")}
    return sum(measure(pid) for pid in pids - set(known) - {os.getpid()})


def children(pid):
    try:
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []


def descendants(pid):
    return [one for child in children(pid) for one in (child, *descendants(child))]


def program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def total(pid):
    others = (one for one in descendants(pid) if program(one) != program(pid))
    return sum(proportional(one) for one in (pid, *others))


def peak(pid, command):
    """The largest total of the process and its descendants while the command runs."""
    most = total(pid)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, total(pid))
            time.sleep(EVERY_S)
    assert process.returncode == 0, command
    return most
