# SPDX-License-Identifier: Apache-2.0
"""
test/image/pulls.py - the program test/pull.c, which pulls into a store, and images and registries for it
"""
import os
import pathlib
import subprocess
import threading

import pytest

from fetching import FETCH, WAIT, Image, digest
from layers import END, directory, member
from waiting import wait_until

PULL = os.environ.get("HAWSER_BUILD", "build") + "/test/pull"


class Daemon:
    """The program test/pull.c with a store."""

    def __init__(self, root, *options, program=FETCH):
        self.root = pathlib.Path(root)
        self.killed = False
        self.process = subprocess.Popen([PULL, *options, str(root), str(program)], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def command(self, *words):
        self.send(*words)
        return self.process.stdout.readline().rstrip("\n")

    def join(self, number):
        return self.command("join", number).split(" ", 3)[1:]

    def pull(self, *words):
        self.send("pull", 0, *words)
        return self.join(0)

    def images(self):
        self.send("images")
        return [line.split() for line in iter(lambda: self.process.stdout.readline().rstrip("\n"), "end")]

    def close(self):
        """Return: the exit status"""
        self.process.stdin.close()
        return self.process.wait(WAIT)

    def kill(self):
        """Kill the process, as a crash would."""
        self.killed = True
        self.process.kill()
        self.process.wait(WAIT)

    def wait_for_layers(self, count):
        """Wait until the store has `count` layers."""
        wait_until(lambda: self.command("usage").split()[0] == str(count),
                   lambda: "the store has %s layers" % self.command("usage"))

    def leftovers(self):
        return sorted(os.listdir(self.root / "tmp")) + sorted(os.listdir(self.root / "gone"))

    def layers(self):
        return sorted(os.listdir(self.root / "layers"))


@pytest.fixture
def start(tmp_path, server):
    """start(...) returns a Daemon. At the end no process of hawser-fetch and no stage is left."""
    daemons = []

    def make(*options, **keys):
        daemons.append(Daemon(tmp_path / "store", "--plain-http", server.host, *options, **keys))
        return daemons[-1]
    yield make
    for daemon in daemons:
        if not daemon.killed:
            assert daemon.close() == 0
            assert daemon.leftovers() == []
    wait_until(lambda: pids() == [])  # a killed process needs a moment to disappear


def pids(*options):
    """Process IDs of hawser-fetch, the oldest first: supervisor, fetcher, unpackers."""
    found = subprocess.run(["pgrep", *options, "-x", "hawser-fetch"], stdout=subprocess.PIPE, check=False)
    return [int(pid) for pid in found.stdout.split()]


def three_layers():
    """Three layers with files in etc. Only the archive of the lowest layer has a member for etc itself."""
    return Image([directory("etc", mode=0o710) + member("etc/a", data=b"a") + END,
                  member("etc/b", data=b"b") + END, member("etc/c", data=b"c") + END])


class Gate:
    """Requests for layers wait until `open` is set; `waiting` is set when the first one waits."""

    def __init__(self, server, image, layers=slice(None)):
        self.open, self.waiting = threading.Event(), threading.Event()
        self.paths = [digest(p) for p in image.packed[layers]]
        server.before = self.hold

    def hold(self, handler):
        if handler.path.split("/")[-1] in self.paths:
            self.waiting.set()
            self.open.wait(WAIT)
        return False
