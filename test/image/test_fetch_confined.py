# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_confined.py - what the processes of a pull hold while they run: secrets, rights, limits

The registry stops in the middle of a layer, so all processes of the pull wait while they are examined.
"""
import contextlib
import pathlib
import subprocess
import threading

import pytest

from fetching import CONFIG, PLAN, Image, Puller
from layers import END, SANITIZED, member
from waiting import LONG

SECRET = "correct-horse-battery-staple"


class Stalled:
    """A pull whose only layer is half fetched: the pids of the supervisor, the fetcher and the unpacker."""

    def __init__(self, server, puller, **job):
        image = Image([member("f", data=b"x" * 100_000) + END], packed=bytes, media="layer.v1.tar")
        server.add(image)
        self.reached, self.go_on = threading.Event(), threading.Event()
        server.before = lambda handler: self.stall(handler, image)
        self.socket, self.process = puller.start(server.host + "/app:latest", **job)
        while (message := puller.receive(self.socket))[0] != CONFIG:
            assert message[0] is not None
        puller.send(self.socket, PLAN, {"layers": puller.plan(message[1], {})})
        assert self.reached.wait(LONG)
        self.supervisor = self.process.pid
        self.fetcher, self.unpacker = (
            int(pid) for pid in subprocess.run(["pgrep", "-P", str(self.supervisor)], check=True,
                                               stdout=subprocess.PIPE).stdout.split())

    def stall(self, handler, image):
        if "/blobs/" not in handler.path or not handler.path.endswith(image.document["layers"][0]["digest"]):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(image.packed[0])))
        handler.end_headers()
        handler.wfile.write(image.packed[0][:50_000])
        handler.wfile.flush()
        self.reached.set()
        self.go_on.wait(LONG)
        handler.close_connection = True
        return True

    def close(self):
        self.go_on.set()
        self.socket.close()
        assert self.process.wait(LONG) in (0, 1)


@pytest.fixture
def stalled(server, tmp_path):
    """Starts a pull that stalls."""
    puller = Puller(tmp_path, plain_http=[server.host])
    with contextlib.ExitStack() as stack:
        def start(**job):
            return stack.enter_context(contextlib.closing(Stalled(server, puller, **job)))
        yield start


def memory_of(pid):
    """All writable memory of a process."""
    with open("/proc/%d/maps" % pid, encoding="ascii") as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            if " rw" in line and "[v" not in line:
                start, end = (int(n, 16) for n in line.split()[0].split("-"))
                memory.seek(start)
                yield memory.read(end - start)


def has_in_memory(pid, text):
    return any(text.encode() in part for part in memory_of(pid))


@pytest.mark.skipif(SANITIZED, reason="ASan quarantines freed memory, and its shadow memory is too large to read")
@pytest.mark.parametrize("key", ["password", "identity_token", "registry_token"])
def test_only_the_fetcher_has_credentials_in_its_memory(key, stalled):
    pull = stalled(username="somebody", **{key: SECRET})
    assert has_in_memory(pull.fetcher, SECRET)  # this test finds a secret where there is one
    assert not has_in_memory(pull.supervisor, SECRET)
    assert not has_in_memory(pull.unpacker, SECRET)
