# SPDX-License-Identifier: Apache-2.0
"""
test_pull_processes.py - the processes of a pull: standby processes, crashes, a hawser-fetch that misbehaves
"""
import os
import signal

import pytest

from fetching import FETCH, WAIT, Image, digest
from layers import END, directory
from pulls import Gate, pids, start, three_layers  # noqa: F401, a fixture
from waiting import wait_until, wait_until_steady


def script(path, text):
    path.write_text("#!/usr/bin/python3\n"
                    "import os, socket, struct, sys, json, hashlib\n"
                    "s = socket.socket(fileno=0)\n"
                    "def send(kind, data): s.sendall(struct.pack('<IB', len(data), kind) + data)\n" + text)
    path.chmod(0o755)
    return path


BAD = {
    "exits at once": ("sys.exit(3)", "hawser-fetch exited unexpectedly: exit status 3"),
    "is killed": ("os.kill(os.getpid(), 9)", "hawser-fetch exited unexpectedly: signal: killed"),
    "sends garbage": ("s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')", "unknown message type 47"),
    "sends a huge message": ("s.sendall(struct.pack('<IB', 0xffffffff, 4))", "message too large: got 4294967295 bytes, want at most 4194304"),
    "sends a truncated message": ("s.sendall(struct.pack('<IB', 100, 4) + b'x'); s.shutdown(1)", "truncated message: got 1 of 100 bytes"),
    "sends DONE too early": ("send(10, b'')", "unexpected message of type 10"),
    "sends an invalid digest": ("send(4, b'{\"digest\":\"sha256:1\",\"host\":\"h\"}')", 'resolved to an invalid SHA-256 digest: "sha256:1"'),
    "sends a digest with control characters": ("send(4, b'{\"digest\":\"\\\\u001b[1m\",\"host\":\"h\"}')",
                                               'resolved to an invalid SHA-256 digest: " [1m"'),
    "sends an unexpected document": ("send(4, json.dumps({'digest': 'sha256:' + 64 * 'a', 'host': 'h'}).encode()); send(5, b'{}')",
                               "unexpected document sha256:"),
    "closes its socket and does not exit": (
        "import signal; send(4, json.dumps({'digest': 'sha256:' + 64 * 'a', 'host': 'h'}).encode()); "
        "os.close(0); os.close(1); signal.pause()", "hawser-fetch exited unexpectedly: signal: killed"),
    "exits in the middle of a message": (
        "send(4, json.dumps({'digest': 'sha256:' + 64 * 'a', 'host': 'h'}).encode()); "
        "s.sendall(struct.pack('<IB', 100, 5) + b'x'); sys.exit(0)", "truncated message: got 1 of 100 bytes"),
    "sends a malformed error": ("send(11, b'[]')", "malformed FAILED message"),
    "sends an error with control characters": ("send(11, json.dumps({'code': 2, 'message': 'a\\nb\\x1b[1m'}).encode())",
                                      "a b [1m"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_pull_fails_if_hawser_fetch_misbehaves(what, server, start, tmp_path):
    text, error = BAD[what]
    daemon = start(program=script(tmp_path / "fetch", text))
    answer = daemon.pull(server.host + "/app")
    assert answer[0] == "error" and error in answer[2]
    assert daemon.images() == [] and daemon.layers() == []


@pytest.mark.parametrize("sent", ["", "s.sendall(b'x')", "s.sendall(struct.pack('<IB', 100, 4) + b'x')"],
                         ids=["before a message", "in a header", "in a message"])
def test_hawser_fetch_that_hangs_is_killed(sent, server, start, tmp_path):
    daemon = start("--idle", "200", program=script(tmp_path / "fetch", sent + "\nimport signal; signal.pause()"))
    answer = daemon.pull(server.host + "/app")
    assert answer[:2] == ["error", "110"] and "hawser-fetch stalled: no message for 1 s" in answer[2]
    assert daemon.images() == [] and daemon.layers() == []


def test_a_pull_of_a_present_image_ends_with_its_documents(server, start, tmp_path):
    """It does not wait until hawser-fetch, which hangs, reports that there are no layers to fetch."""
    image = Image()
    server.add(image)
    daemon = start()
    first = daemon.pull(server.host + "/app")
    assert first[0] == "ok" and daemon.close() == 0
    text = "send(4, json.dumps({'digest': %r, 'host': 'h'}).encode()); send(5, %r); send(6, %r)\nimport signal; signal.pause()" % (
        digest(image.manifest), image.manifest, image.config)
    daemon = start("--idle", "200", program=script(tmp_path / "fetch", text))
    assert daemon.pull(server.host + "/app") == first


def test_a_pull_fails_if_hawser_fetch_cannot_be_started(server, start, tmp_path):
    answer = start(program=tmp_path / "missing").pull(server.host + "/app")
    assert answer[:2] == ["error", "2"] and "No such file" in answer[2]


def wait_for_pids(count):
    """Wait until there are `count` processes that stay: those of a finished pull need a moment to exit."""
    wait_until(lambda: len(wait_until_steady(pids)) == count)
    return pids()


def wait_for_standby():
    """Wait until only the two processes of a standby hawser-fetch are left: a supervisor and its child, the fetcher,
    which still runs as root. Two processes that are not related are the supervisors of two jobs."""
    found = []

    def is_standby():
        found[:] = pids()
        return len(found) == 2 and pids("-u", "0") == found and pids("-P", str(found[0])) == found[1:]
    wait_until(is_standby)
    return found


def test_a_standby_hawser_fetch_is_used_by_the_next_pull(server, start):
    image = Image()
    server.add(image)
    daemon = start()
    daemon.pull(server.host + "/app")
    waiting = wait_for_standby()
    other = three_layers()
    server.add(other)
    gate = Gate(server, other)
    daemon.send("pull", 1, server.host + "/app")
    assert gate.waiting.wait(WAIT)
    assert pids()[:2] == waiting
    gate.open.set()
    assert daemon.join(1)[0] == "ok"
    assert set(wait_for_standby()).isdisjoint(waiting)


@pytest.mark.parametrize("which, left", [(0, 0), (1, 1)])
def test_a_standby_process_that_was_killed_is_replaced(which, left, server, start):
    server.add(Image())
    daemon = start()
    daemon.pull(server.host + "/app")
    os.kill(wait_for_standby()[which], signal.SIGKILL)
    wait_for_pids(left)
    assert daemon.pull(server.host + "/app")[0] == "ok"


@pytest.mark.parametrize("reads", [0, 1, 100])
def test_a_standby_process_that_exits_when_it_gets_a_job_is_replaced(reads, server, start, tmp_path):
    """The second process reads `reads` bytes of its job and exits."""
    server.add(Image())
    program = tmp_path / "fetch"
    program.write_text("""#!/bin/sh
echo >>%(log)s
[ $(wc -l <%(log)s) != 2 ] || exec %(python)s -c 'import socket, select
s = socket.socket(fileno=0)
open("%(ready)s", "w")
select.select([s], [], [])
%(reads)d and s.recv(%(reads)d)'
exec %(fetch)s
""" % {"log": tmp_path / "log", "ready": tmp_path / "ready", "python": "/usr/bin/python3", "reads": reads, "fetch": os.path.abspath(FETCH)})
    program.chmod(0o755)
    daemon = start(program=program)
    assert daemon.pull(server.host + "/app")[0] == "ok"
    wait_until((tmp_path / "ready").exists)
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert len((tmp_path / "log").read_text()) >= 3


def test_a_standby_process_exits_when_the_daemon_is_killed(server, start):
    server.add(Image())
    daemon = start()
    daemon.pull(server.host + "/app")
    wait_for_pids(2)
    daemon.kill()
    wait_for_pids(0)


@pytest.mark.parametrize("part, count", [("/manifests/", 2), ("/blobs/", 2), ("layers", 3)])
def test_all_processes_end_when_the_daemon_is_killed_during_a_pull(part, count, server, start):
    """While the registry does not respond to a request: for the manifest, the configuration, a layer."""
    image = Image([directory("etc") + END])
    server.add(image)
    gate = Gate(server, image)
    if part != "layers":
        server.before = lambda h: part in h.path and (gate.waiting.set(), gate.open.wait(WAIT), False)[2]
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    assert gate.waiting.wait(WAIT)
    wait_for_pids(count)
    daemon.kill()
    wait_for_pids(0)
    gate.open.set()


@pytest.mark.parametrize("which, error", [(0, "hawser-fetch exited unexpectedly: signal: killed"),
                                          (1, "fetcher exited unexpectedly"),
                                          (2, "unpacker exited unexpectedly")])
def test_a_pull_fails_if_one_of_its_processes_is_killed(which, error, server, start):
    image = Image()
    server.add(image)
    gate = Gate(server, image)
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    assert gate.waiting.wait(WAIT)
    os.kill(pids()[which], signal.SIGKILL)
    answer = daemon.join(1)
    gate.open.set()
    assert answer[0] == "error" and error in answer[2]
    assert daemon.images() == [] and daemon.layers() == []
