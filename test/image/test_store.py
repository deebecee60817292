# SPDX-License-Identifier: Apache-2.0
"""
test_store.py - the image store syncs to disk in the right order

What:  killing a process does not reveal a missing sync, so the tests check the order in a trace of
       the system calls: a layer is synced before it is renamed into place, and so are the files
       of an image, its row is synced before they are renamed, and all changes are on disk before success is reported.
How:   strace of test/store, and of a whole pull with test/pull; find_violations() has the rules. To
       prove that it detects a missing sync, strace suppresses each sync in turn: the call returns
       success without being executed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from fetching import FETCH, Image
from layers import END, member

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

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


FORKS = ("fork", "vfork", "clone", "clone3")


class Call:
    """A system call that was executed and succeeded."""

    def __init__(self, pid, name, args, result):
        self.pid = pid
        self.name = name
        self.args = args
        self.result = result
        data = name in ("write", "pwrite64")  # then the quoted text is not a file name
        self.paths = [FD.match(args)[2]] if data else [path for _, path in FD.findall(args)]
        self.names = [] if data else re.findall(r'"([^"]*)"', args)

    def path(self, i=0):
        """Path of the i-th descriptor, joined with the name that follows it, if any."""
        path = self.paths[i] if len(self.paths) > i else ""
        return os.path.join(path, self.names[i]) if len(self.names) > i else path

    def changes(self):
        return self.name in CHANGES and (self.name != "openat" or "O_CREAT" in self.args)

    def published(self, root):
        """If this is a rename from a stage into layers/ or images/: the stage and the directory."""
        if self.name not in ("renameat", "renameat2") or not self.path().startswith("%s/tmp/" % root):
            return None
        directory = os.path.relpath(self.paths[1], root)
        return (self.stage(root), directory) if directory in ("layers", "images") else None

    def stage(self, root):
        """The directory in tmp/ in which the call changes something, or None."""
        path = self.path()
        inside = path.startswith("%s/tmp/" % root) and self.changes()
        return path[len("%s/tmp/" % root):].split("/")[0] if inside else None


def join_lines(text):
    """Join calls that strace split because processes ran in parallel. A sync is placed where it began,
    because it covers the writes up to then; other calls are placed where they ended."""
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
    """The calls of a trace, in order, without those that failed or were suppressed."""
    found = [(pid, CALL.match(line)) for pid, line in join_lines(text)]
    return [Call(pid, m[1], m[2], m[3]) for pid, m in found
            if m and int(m[3]) >= 0 and "INJECTED" not in m[4]]


def unpackers(calls, root):
    """Map process IDs of unpackers to stages: an unpacker is started after its recipe was created. It is
    confined, so its paths are different."""
    last, found = {}, {}
    for call in calls:
        if call.path().endswith("/recipe") and call.stage(root):
            last[call.pid] = call.stage(root)
        elif call.name in FORKS and call.pid in last:
            found[call.result] = last[call.pid]
    return found


def stages_of(calls, root):
    """For each call the stage in which it changes something, or None."""
    pids = unpackers(calls, root)
    return [pids.get(c.pid) if c.pid in pids and c.changes() and c.path().startswith("/") else c.stage(root)
            for c in calls]


def trace(root, program, *command, inject=None, commands=""):
    """Run a program with strace. Return: the trace"""
    out = root.parent / "trace"
    args = ["strace", "-f", "-y", "-s", "256", "-o", str(out),
            "-e", "trace=" + ",".join(sorted({*CHANGES, *SYNCS, *FORKS}))]
    if inject:
        args += ["-e", "inject=%s:retval=0:when=%s" % inject]
    # the leak detector does not work under ptrace
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    done = subprocess.run([*args, program, *command], text=True, check=False, input=commands,
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if "ptrace" in done.stdout and done.returncode:
        pytest.skip("ptrace is not permitted")
    assert done.returncode == 0 and ANSWER.match(done.stdout), done.stdout
    return out.read_text()


def put(root, inject=None):
    return trace(root, STORE, str(root), *PUT, inject=inject)


def index_of_answer(calls):
    """The index of the call that reports success."""
    return next(i for i, c in enumerate(calls) if c.name == "write" and ANSWERED.search(c.args))


def renames(calls, root, directory="layers"):
    """The indexes of the renames into layers/ or images/."""
    return [i for i, call in enumerate(calls) if (call.published(root) or ("", ""))[1] == directory]


def unsynced(calls, root, stage):
    """The files in a stage of an image, and their directory, that were not synced."""
    inside = "%s/tmp/%s/root" % (root, stage)
    written = {c.path() for c in calls if c.name == "openat" and c.changes() and c.path().startswith(inside)}
    return {inside, *written} - {c.paths[0] for c in calls if c.name == "fsync"}


def find_violations(text, root):
    """Violations of the order of syncs in a trace."""
    calls = parse(text)
    end = index_of_answer(calls)
    log = "%s/images.db-wal" % root
    stages = stages_of(calls, root)
    wrong = []
    for i in renames(calls, root):
        stage, _ = calls[i].published(root)
        last = max(k for k in range(i) if stages[k] == stage)
        if not any(c.name == "syncfs" for c in calls[last:i]):
            wrong.append("layer renamed before it was synced")
        row = next(k for k in range(i, end) if calls[k].path() == log and calls[k].changes())
        if not any(c.name == "fsync" and c.paths == ["%s/layers" % root] for c in calls[i:row]):
            wrong.append("row written before layers/ was synced")
    for i in renames(calls, root, "images"):
        stage, _ = calls[i].published(root)
        last = max(k for k in range(i) if stages[k] == stage)
        if not any(c.name == "syncfs" for c in calls[last:i]) and unsynced(calls[:i], root, stage):
            wrong.append("files of an image renamed before they were synced")
        row = max(k for k in range(i) if calls[k].path() == log and calls[k].changes())
        if not any(c.name in SYNCS and c.paths == [log] for c in calls[row:i]):
            wrong.append("files of an image renamed before its row was synced")
        if not any(c.name == "fsync" and c.paths == ["%s/images" % root] for c in calls[i:end]):
            wrong.append("success reported before images/ was synced")
    rows = [k for k in range(end) if calls[k].path() == log and calls[k].changes()]
    if not any(c.name in SYNCS and c.paths == [log] for c in calls[max(rows):end]):
        wrong.append("success reported before the rows were synced")
    return wrong


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    """A store that exists and contains an image, so that traces do not include its creation."""
    root = tmp_path / "root"
    subprocess.run([STORE, str(root), "put", "old", "one"], check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(os.path.realpath(root))


@pytest.fixture(name="registry")
def fixture_registry(server):
    server.add(Image())
    return server


def test_layers_are_synced_before_they_are_renamed(root):
    text = put(root)
    assert len(renames(parse(text), root)) == 2 and len(renames(parse(text), root, "images")) == 1
    assert find_violations(text, root) == []


def test_a_removal_moves_the_files_of_the_image_then_syncs_the_database_then_moves_layers(root):
    subprocess.run([STORE, str(root), *PUT], check=True, stdout=subprocess.DEVNULL)
    text = trace(root, STORE, str(root), "remove", "new")
    calls = parse(text)
    log = "%s/images.db-wal" % root
    assert find_violations(text, root) == []
    files, *layers = [i for i, c in enumerate(calls)
                      if c.name == "renameat" and c.paths[1] == "%s/gone" % root]
    assert [os.path.relpath(calls[i].paths[0], root) for i in (files, *layers)] == ["images", "layers", "layers"]
    rows = [i for i in range(layers[0]) if calls[i].path() == log and calls[i].changes()]
    assert any(c.name in SYNCS and c.paths == [log] for c in calls[rows[-1]:layers[0]])
    first = next(i for i in rows if i > files)
    assert any(c.name == "fsync" and c.paths == ["%s/images" % root] for c in calls[files:first])


def syncs_of(calls, root):
    """For each sync before success is reported: its name, its number among calls of this name, what it syncs."""
    counts = {}
    end = index_of_answer(calls)
    for call in calls[:end]:
        if call.name not in SYNCS:
            continue
        counts[call.name] = counts.get(call.name, 0) + 1
        yield call.name, counts[call.name], os.path.relpath(call.paths[0], root).split("/")[0]


def test_a_suppressed_sync_is_detected(root, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    syncs = list(syncs_of(parse(put(root)), root))
    checked = {"tmp", "layers", "images", "images.db-wal"}
    assert {what for _, _, what in syncs} >= checked
    detected = set()
    for name, number, what in syncs:
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(copy, again)
        if find_violations(put(again, inject=(name, number)), again):
            detected.add(what)
        else:  # only the last of SQLite's own syncs is checked
            assert what not in ("tmp", "layers", "images"), "suppressed %s %d was not detected" % (name, number)
    assert detected == checked


def pull(root, host, inject=None):
    return trace(root, PULL, "--plain-http", host, str(root), FETCH, inject=inject,
                 commands="pull 0 %s/image\njoin 0\n" % host)


def test_a_pull_syncs_layers_before_they_are_renamed(root, registry):
    text = pull(root, registry.host)
    calls = parse(text)
    assert len(renames(calls, root)) == 2
    assert sorted(unpackers(calls, root).values()) == sorted(calls[i].names[0] for i in renames(calls, root))
    assert find_violations(text, root) == []


def test_a_pull_without_syncfs_is_detected(root, registry):
    text = pull(root, registry.host, inject=("syncfs", "1+"))
    assert find_violations(text, root) == (2 * ["layer renamed before it was synced"]
                                           + ["files of an image renamed before they were synced"])


def syncs_of_pulls(root, host, *tags):
    """Pull several tags, one after the other. Return: for each the syncs: calls and what they sync"""
    commands = "".join("pull %d %s/image:%s\njoin %d\n" % (i, host, tag, i) for i, tag in enumerate(tags))
    calls = parse(trace(root, PULL, "--plain-http", host, str(root), FETCH, commands=commands))
    ends = [i for i, c in enumerate(calls) if c.name == "write" and re.search(r', "\d ok ', c.args)]
    assert len(ends) == len(tags)
    return [[(c.name, os.path.relpath(c.paths[0], root).split("/")[0]) for c in calls[start:end] if c.name in SYNCS]
            for start, end in zip([0, *ends], ends)]


def test_a_pull_syncs_no_more_than_is_needed(root, registry):
    layers = [member(name, data=name.encode()) + END for name in ("lower", "upper")]
    document = {**json.loads(Image(layers).config), "author": "me"}
    registry.add(Image(layers), "new")
    registry.add(Image(layers), "name")
    other = Image(layers, config=json.dumps(document).encode())
    registry.add(other, "config")
    # after the first pull the log of the database exists
    _, new, name, config, again = syncs_of_pulls(root, registry.host, "latest", "new", "name", "config", "new")
    rows = ("fdatasync", "images.db-wal")
    assert new == [("syncfs", "tmp"), ("fsync", "layers"), rows, ("fsync", "images")]
    assert name == [rows, ("fsync", "images"), ("fsync", "images")]  # the file with the names, and its directory
    # without new layers, nothing is synced that other programs write: three files, their directory, images/
    assert config == [("fsync", "tmp")] * 4 + [rows, ("fsync", "images")]
    assert again == []
    # a name moves: the files of the image that loses it need not be synced
    registry.add(other, "more")
    registry.add(other, "name")
    _, moved = syncs_of_pulls(root, registry.host, "more", "name")
    assert moved == name
