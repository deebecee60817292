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


class Call:
    """One system call that was really made, and did not fail."""

    def __init__(self, name, args):
        self.name = name
        self.args = args
        data = name in ("write", "pwrite64")  # what is quoted is no name then
        self.paths = [FD.match(args)[2]] if data else [path for _, path in FD.findall(args)]
        self.names = [] if data else re.findall(r'"([^"]*)"', args)

    def path(self, i=0):
        """Of the i-th descriptor, with the name that follows it, if one does."""
        path = self.paths[i] if len(self.paths) > i else ""
        return "%s/%s" % (path, self.names[i]) if len(self.names) > i else path

    def changes(self):
        return self.name in CHANGES and (self.name != "openat" or "O_CREAT" in self.args)

    def shows(self, root):
        """Does it rename something into layers/?"""
        return self.name in ("renameat", "renameat2") and self.paths[1] == "%s/layers" % root

    def makes(self, root):
        """Does it change a file of a layer? Of any but the store's own: a confined process has
        its own names for those."""
        path = self.path()
        other = ["%s/%s" % (root, name) for name in ("layers", "gone", "images.db", "lock")]
        return (self.changes() and not self.shows(root) and path.startswith("/")
                and not any(path.startswith(p) for p in ("/dev/", *other)))


def whole_lines(text):
    """Each call in one line, where it ended: strace cuts them when processes run side by side."""
    begun = {}
    for line in text.splitlines():
        pid, _, rest = line.partition(" ")
        if rest.endswith(" <unfinished ...>"):
            begun[pid] = rest[:-len(" <unfinished ...>")]
        elif " resumed>" in rest:
            yield begun.pop(pid) + rest.partition(" resumed>")[2]
        else:
            yield rest


def parse(text):
    """The calls of a trace, in order; without those that failed or were only pretended."""
    found = [CALL.match(line.strip()) for line in whole_lines(text)]
    return [Call(m[1], m[2]) for m in found if m and int(m[3]) >= 0 and "INJECTED" not in m[4]]


def trace(root, program, *command, inject=None, commands=""):
    """The system calls of a program, as text."""
    out = root.parent / "trace"
    args = ["strace", "-f", "-y", "-s", "256", "-o", str(out),
            "-e", "trace=" + ",".join(sorted({*CHANGES, *SYNCS}))]
    if inject:
        args += ["-e", "inject=%s:retval=0:when=%d" % inject]
    done = subprocess.run([*args, program, *command], text=True, check=False, input=commands,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
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
    wrong = []
    for i in shown(calls, root):
        last = max(k for k in range(i) if calls[k].makes(root))
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
    assert len(shown(parse(text), root)) == 2
    assert complaints(text, root) == []


def test_a_pull_that_does_not_wait_for_the_disk_is_noticed(root, registry):
    text = pull(root, registry.host, inject=("syncfs", 1))
    assert complaints(text, root) == 2 * ["a layer is shown before it is on disk"]
