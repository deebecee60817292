# SPDX-License-Identifier: Apache-2.0
"""
test_store.py - the image store writes to disk in the right order

What:  a kill never shows a missing sync, so this reads the order from a trace of the system
       calls: whatever a rename shows was written to disk before, and what was answered is on disk.
How:   strace of test/store, and of a whole pull with test/pull; complaints() knows the rules. That
       it would notice a missing sync is shown by taking each away: strace's injection answers a
       call without making it.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from fetching import FETCH, Image, Server

PULL = os.environ.get("HAWSER_BUILD", "build") + "/test/pull"
STORE = os.environ.get("HAWSER_BUILD", "build") + "/test/store"
CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)(.*)")
FD = re.compile(r"(-?\d+|AT_FDCWD)<([^>]*)>")
ANSWER = re.compile(r"done$|0 ok ", re.M)
ANSWERED = re.compile(r', "(done|0 ok )')
SYNCS = ("syncfs", "fsync", "fdatasync")
PUT = ("put", "new", "one", "two", "three")
CHANGES = ("write", "pwrite64", "openat", "mkdirat", "renameat", "renameat2", "fchmod", "fchown",
           "ftruncate", "unlinkat", "linkat", "symlinkat", "fsetxattr", "utimensat")

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="no strace")


FORKS = ("fork", "vfork", "clone", "clone3")


class Call:
    """One system call that was really made, and did not fail."""

    def __init__(self, pid, name, args, result):
        self.pid = pid
        self.name = name
        self.args = args
        self.result = result
        data = name in ("write", "pwrite64")  # what is quoted is no name then
        self.paths = [FD.match(args)[2]] if data else [path for _, path in FD.findall(args)]
        self.names = [] if data else re.findall(r'"([^"]*)"', args)

    def path(self, i=0):
        """Of the i-th descriptor, with the name that follows it, if one does."""
        path = self.paths[i] if len(self.paths) > i else ""
        return os.path.join(path, self.names[i]) if len(self.names) > i else path

    def changes(self):
        return self.name in CHANGES and (self.name != "openat" or "O_CREAT" in self.args)

    def shows(self, root):
        """Does it rename something into layers/?"""
        return self.name in ("renameat", "renameat2") and self.paths[1] == "%s/layers" % root

    def stage(self, root):
        """The folder in tmp/ in which it changes something."""
        path = self.path()
        inside = path.startswith("%s/tmp/" % root) and self.changes()
        return path[len("%s/tmp/" % root):].split("/")[0] if inside else None


def whole_lines(text):
    """Each call of a process in one line: strace cuts them when processes run side by side. A sync
    is where it began, since it is good for what was there then; others are where they ended."""
    begun, lines = {}, []
    for line in text.splitlines():
        pid, rest = line.split(maxsplit=1)
        if rest.endswith(" <unfinished ...>"):
            begun[pid] = len(lines)
            lines.append((pid, rest[:-len(" <unfinished ...>")]))
        elif " resumed>" in rest:
            at = begun.pop(pid)
            whole = (pid, lines[at][1] + rest.partition(" resumed>")[2])
            lines[at] = whole if whole[1].startswith(SYNCS) else (pid, "")
            lines.append((pid, "") if lines[at] is whole else whole)
        else:
            lines.append((pid, rest))
    return lines


def parse(text):
    """The calls of a trace, in order; without those that failed or were only pretended."""
    found = [(pid, CALL.match(line)) for pid, line in whole_lines(text)]
    return [Call(pid, m[1], m[2], m[3]) for pid, m in found
            if m and int(m[3]) >= 0 and "INJECTED" not in m[4]]


def unpackers(calls, root):
    """Which process unpacks into which stage: it is started when the recipe has been made. It is
    confined, and has its own names for files."""
    last, found = {}, {}
    for call in calls:
        if call.path().endswith("/recipe") and call.stage(root):
            last[call.pid] = call.stage(root)
        elif call.name in FORKS and call.pid in last:
            found[call.result] = last[call.pid]
    return found


def makers(calls, root):
    """For each call the stage in which it changes something, or None."""
    pids = unpackers(calls, root)
    return [pids.get(c.pid) if c.pid in pids and c.changes() and c.path().startswith("/") else c.stage(root)
            for c in calls]


def trace(root, program, *command, inject=None, commands=""):
    """The system calls of a program, as text."""
    out = root.parent / "trace"
    args = ["strace", "-f", "-y", "-s", "256", "-o", str(out),
            "-e", "trace=" + ",".join(sorted({*CHANGES, *SYNCS, *FORKS}))]
    if inject:
        args += ["-e", "inject=%s:retval=0:when=%s" % inject]
    # whoever is traced cannot look for leaks
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    done = subprocess.run([*args, program, *command], text=True, check=False, input=commands,
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if "ptrace" in done.stdout and done.returncode:
        pytest.skip("ptrace is not permitted")
    assert done.returncode == 0 and ANSWER.match(done.stdout), done.stdout
    return out.read_text()


def put(root, inject=None):
    return trace(root, STORE, str(root), *PUT, inject=inject)


def answer(calls):
    """Where the program says that it is done."""
    return next(i for i, c in enumerate(calls) if c.name == "write" and ANSWERED.search(c.args))


def shown(calls, root):
    """The indexes of the renames into layers/."""
    return [i for i, call in enumerate(calls) if call.shows(root)]


def complaints(text, root):
    """What is wrong with the order of a trace."""
    calls = parse(text)
    end = answer(calls)
    log = "%s/images.db-wal" % root
    stages = makers(calls, root)
    wrong = []
    for i in shown(calls, root):
        last = max(k for k in range(i) if stages[k] == calls[i].names[0])
        if not any(c.name == "syncfs" for c in calls[last:i]):
            wrong.append("a layer is shown before it is on disk")
        row = next(k for k in range(i, end) if calls[k].path() == log and calls[k].changes())
        if not any(c.name == "fsync" and c.paths == ["%s/layers" % root] for c in calls[i:row]):
            wrong.append("a row is written before the folder of the layers is on disk")
    rows = [k for k in range(end) if calls[k].path() == log and calls[k].changes()]
    if not any(c.name in SYNCS and c.paths == [log] for c in calls[max(rows):end]):
        wrong.append("the answer comes before the rows are on disk")
    return wrong


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    """A store that has an image already, so that what is seen is not its making."""
    root = tmp_path / "root"
    subprocess.run([STORE, str(root), "put", "old", "one"], check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(os.path.realpath(root))


@pytest.fixture(name="registry")
def fixture_registry():
    server = Server()
    server.add(Image())
    yield server
    server.close()


def test_layers_are_on_disk_before_they_are_shown(root):
    text = put(root)
    assert len(shown(parse(text), root)) == 2
    assert complaints(text, root) == []


def test_the_rows_of_a_removal_are_on_disk_before_the_answer_and_before_the_files_go(root):
    subprocess.run([STORE, str(root), *PUT], check=True, stdout=subprocess.DEVNULL)
    text = trace(root, STORE, str(root), "remove", "new")
    calls = parse(text)
    log = "%s/images.db-wal" % root
    assert complaints(text, root) == []
    moved = [i for i, c in enumerate(calls)
             if c.name == "renameat" and c.paths[1] == "%s/gone" % root]
    assert len(moved) == 2
    before = calls[:moved[0]]
    last = max(i for i, c in enumerate(before) if c.path() == log and c.changes())
    assert any(c.name in SYNCS and c.paths == [log] for c in before[last:])


def syncs_of(calls, root):
    """(call, its number among its kind, what is synced) of each sync before the answer."""
    counts = {}
    end = answer(calls)
    for call in calls[:end]:
        if call.name not in SYNCS:
            continue
        counts[call.name] = counts.get(call.name, 0) + 1
        yield call.name, counts[call.name], os.path.relpath(call.paths[0], root).split("/")[0]


def test_a_sync_that_is_taken_away_is_noticed(root, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    syncs = list(syncs_of(parse(put(root)), root))
    assert {what for _, _, what in syncs} >= {"tmp", "layers", "images.db-wal"}
    noticed = set()
    for name, number, what in syncs:
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(copy, again)
        if complaints(put(again, inject=(name, number)), again):
            noticed.add(what)
        else:  # SQLite's own order is its own affair, but for the last one
            assert what not in ("tmp", "layers"), "%s %d was not missed" % (name, number)
    assert noticed == {"tmp", "layers", "images.db-wal"}


def pull(root, host, inject=None):
    return trace(root, PULL, "--plain-http", host, str(root), FETCH, inject=inject,
                 commands="pull 0 %s/image\njoin 0\n" % host)


def test_a_pull_is_on_disk_before_it_is_shown(root, registry):
    text = pull(root, registry.host)
    calls = parse(text)
    assert len(shown(calls, root)) == 2
    assert sorted(unpackers(calls, root).values()) == sorted(calls[i].names[0] for i in shown(calls, root))
    assert complaints(text, root) == []


def test_a_pull_that_does_not_wait_for_the_disk_is_noticed(root, registry):
    text = pull(root, registry.host, inject=("syncfs", "1+"))
    assert complaints(text, root) == 2 * ["a layer is shown before it is on disk"]
