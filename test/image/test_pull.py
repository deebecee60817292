# SPDX-License-Identifier: Apache-2.0
"""
test_pull.py - pulls into the store: sharing, cancellation, credentials, failures of hawser-fetch
"""
import contextlib
import os
import pathlib
import random
import signal
import sqlite3
import stat
import subprocess
import threading

import pytest

from fetching import ARCHITECTURE, FETCH, OCI, WAIT, Image, Server, basic, digest, index_of
from layers import END, directory, member
from waiting import wait_until, wait_until_steady

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


def upper_chain_id(image):
    return digest((image.diff_ids[0] + " " + image.diff_ids[1]).encode()).removeprefix("sha256:")


def test_image_names_and_layers_are_stored(server, start):
    image = Image()
    server.add(image)
    daemon = start()
    assert daemon.pull(server.host + "/app") == ["ok", digest(image.config), digest(image.manifest)]
    name = server.host + "/app"
    assert daemon.images() == [[name + ":latest", name + "@" + digest(image.manifest), digest(image.config)]]
    assert daemon.layers() == sorted([image.diff_ids[0].removeprefix("sha256:"), upper_chain_id(image)])
    assert (daemon.root / "layers" / upper_chain_id(image) / "root/etc/more").read_bytes() == b"two"
    assert (daemon.root / "layers" / upper_chain_id(image) / "recipe").stat().st_size > 0


def test_an_image_pulled_by_digest_gets_no_tag(server, start):
    image = Image()
    server.add(image)
    daemon = start()
    name = "%s/app@%s" % (server.host, digest(image.manifest))
    assert daemon.pull("%s/app:old@%s" % (server.host, digest(image.manifest)))[0] == "ok"
    assert daemon.images() == [[name, digest(image.config)]]


def test_existing_layers_are_not_fetched_again(server, start):
    image = Image()
    server.add(image)
    daemon = start()
    daemon.pull(server.host + "/app")
    server.requests.clear()
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert [r[1] for r in server.requests] == ["/v2/app/manifests/latest"]


def test_existing_documents_are_not_fetched_again(server, start):
    image, other = Image(), Image([member("new") + END, member("newer") + END])
    daemon = start()

    def add(added):
        server.add(added)
        server.manifests["latest"] = (OCI + "index.v1+json", index_of((added, {"os": "linux", "architecture": ARCHITECTURE})))
    add(image)
    daemon.pull(server.host + "/app")
    server.requests.clear()
    assert daemon.pull(server.host + "/app")[:2] == ["ok", digest(image.config)]
    assert [r[1] for r in server.requests] == ["/v2/app/manifests/latest"]
    add(other)
    server.requests.clear()
    assert daemon.pull(server.host + "/app")[:2] == ["ok", digest(other.config)]
    assert [len(server.requests_for(digest(d))) for d in (other.manifest, other.config, *other.packed)] == 4 * [1]


def test_existing_documents_must_have_the_expected_size(server, start):
    image = Image()
    server.add(image)
    daemon = start()
    assert daemon.pull(server.host + "/app")[0] == "ok"
    size = len(image.config)
    wrong = image.manifest.replace(b'"size": %d' % size, b'"size": %d' % (size + 7))
    assert wrong != image.manifest
    server.manifests["latest"] = (OCI + "manifest.v1+json", wrong)
    answer = daemon.pull(server.host + "/app")
    assert answer[:2] == ["error", "74"] and "size mismatch: got %d bytes, want %d" % (size, size + 7) in answer[2]


def test_another_program_can_open_the_database(server, start):
    """SQLite removes the log when the last connection closes. The daemon's own connection must still be open."""
    server.add(Image())
    daemon = start()
    assert daemon.pull(server.host + "/app")[0] == "ok"
    with contextlib.closing(sqlite3.connect(daemon.root / "images.db")) as db:
        assert db.execute("SELECT count(*) FROM images").fetchone() == (1,)
    assert (daemon.root / "images.db-wal").exists()
    other = three_layers()
    server.add(other, tag="other")
    assert daemon.pull(server.host + "/app:other")[0] == "ok"
    daemon.kill()
    assert len(start().images()) == 2


def test_a_pull_asks_the_registry_even_if_the_image_exists(server, start):
    image = Image()
    server.add(image)
    daemon = start()
    name = "%s/app@%s" % (server.host, digest(image.manifest))
    assert daemon.pull(name)[0] == "ok"
    server.before = lambda h: server.respond(h, 401, headers={"WWW-Authenticate": 'Basic realm="here"'}) or True
    assert daemon.pull(name)[:2] == ["error", "129"]


def blob_of(daemon, diff_id):
    path = daemon.root / "layers" / diff_id.removeprefix("sha256:") / "blob"
    return path.read_bytes() if path.exists() else b""


def test_blobs_are_stored_with_keep_blobs(server, start):
    image = Image()
    server.add(image)
    daemon = start("--keep-blobs")
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert blob_of(daemon, image.diff_ids[0]) == image.packed[0] and blob_of(daemon, upper_chain_id(image)) == image.packed[1]
    assert len(server.requests_for(digest(image.packed[0]))) == 1


def test_the_blob_of_a_layer_that_cannot_be_rebuilt_is_stored(server, start):
    image = Image([member("f", data=b"old") + member("f", data=b"new") + END, member("g") + END])
    server.add(image)
    daemon = start()
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert blob_of(daemon, image.diff_ids[0]) == image.packed[0] and blob_of(daemon, upper_chain_id(image)) == b""


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


def test_forty_requests_cause_one_pull(server, start):
    image = Image()
    server.add(image)
    gate = Gate(server, image)
    daemon = start()
    for i in range(40):
        daemon.send("pull", i, server.host + "/app")
    assert gate.waiting.wait(WAIT)
    gate.open.set()
    assert {tuple(daemon.join(i)) for i in range(40)} == {("ok", digest(image.config), digest(image.manifest))}
    assert len(server.requests_for("/manifests/")) == 1


def test_a_pull_continues_while_one_request_is_left(server, start):
    image = Image()
    server.add(image)
    gate = Gate(server, image)
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    daemon.send("pull", 2, server.host + "/app")
    assert gate.waiting.wait(WAIT)
    daemon.send("cancel", 1)
    assert daemon.join(1)[:2] == ["error", "125"]
    gate.open.set()
    assert daemon.join(2)[0] == "ok"


def test_a_pull_is_cancelled_when_its_last_request_is_cancelled(server, start):
    image = Image()
    server.add(image)
    gate = Gate(server, image)
    daemon = start()
    for i in 1, 2:
        daemon.send("pull", i, server.host + "/app")
    assert gate.waiting.wait(WAIT)
    for i in 1, 2:
        daemon.send("cancel", i)
        assert daemon.join(i)[:2] == ["error", "125"]
    gate.open.set()
    assert daemon.images() == []


def test_requests_with_different_credentials_do_not_share_a_pull(server, start):
    image = Image()
    server.add(image)
    gate = Gate(server, image)

    def guard(handler):
        if handler.headers.get("Authorization") != basic("alice", "secret"):
            return server.respond(handler, 401, headers={"WWW-Authenticate": 'Basic realm="here"'})
        return gate.hold(handler)
    server.before = guard
    daemon = start()
    daemon.send("pull", 1, server.host + "/app", "alice", "secret")
    assert gate.waiting.wait(WAIT)
    for credentials in ("bob", "secret"), ("alice", "guess"), ():
        daemon.send("pull", 2, server.host + "/app", *credentials)
        answer = daemon.join(2)
        assert answer[:2] == ["error", "129"] and server.host in answer[2]
    gate.open.set()
    assert daemon.join(1)[0] == "ok"
    assert daemon.pull(server.host + "/app", "bob", "secret")[:2] == ["error", "129"]


def test_layers_of_an_interrupted_pull_are_used_by_the_next(server, start):
    image = Image()
    server.add(image)
    upper = server.blobs.pop(digest(image.packed[1]))
    server.before = lambda h: (server.respond(h, 503) if h.path.endswith(digest(upper)) else False)
    daemon = start()
    answer = daemon.pull(server.host + "/app")
    assert answer[:2] == ["error", "70"] and answer[2].startswith("pull ")
    assert daemon.images() == []
    server.before = lambda h: False
    server.blobs[digest(upper)] = upper
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert len(server.requests_for("/blobs/" + digest(image.packed[0]))) == 1


def test_layers_of_a_pull_with_a_missing_blob_are_used_by_the_next(server, start):
    image = Image()
    server.add(image)
    upper = server.blobs.pop(digest(image.packed[1]))
    gate = Gate(server, image, slice(1, 2))
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    daemon.wait_for_layers(1)
    gate.open.set()
    assert daemon.join(1)[:2] == ["error", "61"]
    server.blobs[digest(upper)] = upper
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert len(server.requests_for("/blobs/" + digest(image.packed[0]))) == 1


def three_layers():
    """Three layers with files in etc. Only the archive of the lowest layer has a member for etc itself."""
    return Image([directory("etc", mode=0o710) + member("etc/a", data=b"a") + END,
                  member("etc/b", data=b"b") + END, member("etc/c", data=b"c") + END])


def test_a_layer_is_stored_while_upper_layers_are_fetched(server, start):
    image = three_layers()
    server.add(image)
    gate = Gate(server, image, slice(2, 3))
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    daemon.wait_for_layers(2)
    assert daemon.images() == []
    gate.open.set()
    assert daemon.join(1)[0] == "ok"
    roots = [daemon.root / "layers" / name / "root" for name in daemon.layers()]
    assert sorted(str(f.relative_to(r)) for r in roots for f in r.glob("etc/*")) == ["etc/a", "etc/b", "etc/c"]
    assert [stat.S_IMODE((r / "etc").stat().st_mode) for r in roots] == 3 * [0o710]


def test_complete_layers_survive_a_kill_of_the_daemon(server, start):
    image = three_layers()
    server.add(image)
    gate = Gate(server, image, slice(2, 3))
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    daemon.wait_for_layers(2)
    daemon.kill()
    gate.open.set()
    daemon = start()
    assert daemon.images() == [] and len(daemon.layers()) == 2
    assert daemon.pull(server.host + "/app")[0] == "ok"
    assert [len(server.requests_for("/blobs/" + digest(p))) for p in image.packed] == [1, 1, 2]


def test_layers_of_a_running_pull_stay_when_an_image_is_removed(server, start):
    image, other = three_layers(), Image()
    server.add(image)
    gate = Gate(server, image, slice(2, 3))
    daemon = start()
    server.add(other, tag="other")
    assert daemon.pull(server.host + "/app:other")[0] == "ok"
    daemon.send("pull", 1, server.host + "/app")
    daemon.wait_for_layers(4)
    assert daemon.command("remove", 0, server.host + "/app:other") == "removed"
    assert len(daemon.layers()) == 2
    gate.open.set()
    assert daemon.join(1)[0] == "ok"


class Silence:
    """The registry does not respond to requests for a path that ends with `end`."""

    def __init__(self, server, end):
        self.over = threading.Event()
        server.before = lambda h: h.path.endswith(end) and (self.over.wait(WAIT), setattr(h, "close_connection", True))


@pytest.mark.parametrize("what", ["/manifests/latest", "config", "layer"])
def test_a_registry_that_does_not_respond_times_out(what, server, start):
    image = Image()
    server.add(image)
    silence = Silence(server, {"config": digest(image.config), "layer": digest(image.packed[1])}.get(what, what))
    daemon = start("--idle", "1000")
    answer = daemon.pull(server.host + "/app")
    silence.over.set()
    assert answer[:2] == ["error", "110"] and server.host in answer[2]
    assert daemon.images() == []


def test_after_a_timeout_the_next_registry_is_tried(server, start):
    image = Image()
    server.add(image)
    mirror = Server()
    silence = Silence(mirror, "/manifests/latest")
    daemon = start("--idle", "1000", "--plain-http", mirror.host, "--mirror", "%s=http://%s" % (server.host, mirror.host))
    assert daemon.pull(server.host + "/app")[0] == "ok"
    silence.over.set()
    mirror.close()


def test_a_malformed_reference_is_refused(server, start):
    answer = start().pull(server.host + "/Not:a:name")
    assert answer[:2] == ["error", "22"]


def test_a_pull_to_a_full_disk_fails_and_leaves_nothing(server, start, tmp_path):
    image = Image([member("f", data=random.Random(1).randbytes(6 << 20)) + END])
    server.add(image)
    (tmp_path / "store").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path / "store")], check=True)
    daemon = start()
    answer = daemon.pull(server.host + "/app")
    assert answer[:2] == ["error", "28"] and "not enough disk space for" in answer[2] and server.host in answer[2]
    assert daemon.images() == [] and daemon.layers() == []


def test_on_a_full_disk_layers_of_failed_pulls_are_removed(server, start, tmp_path):
    noise = random.Random(1)
    left = Image([member("f", data=noise.randbytes(8 << 20)) + END, member("g") + END])
    large = Image([member("f", data=noise.randbytes(18 << 20)) + END])
    server.add(left)
    server.add(large, tag="large")
    del server.blobs[digest(left.packed[1])]
    gate = Gate(server, left, slice(1, 2))
    (tmp_path / "store").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(tmp_path / "store")], check=True)
    daemon = start()
    daemon.send("pull", 1, server.host + "/app")
    daemon.wait_for_layers(1)
    gate.open.set()
    assert daemon.join(1)[0] == "error" and len(daemon.layers()) == 1
    assert daemon.pull(server.host + "/app:large")[:2] == ["error", "28"]
    assert daemon.layers() == []
    assert daemon.pull(server.host + "/app:large")[0] == "ok"


# ---- failures of hawser-fetch ------------------------------------------------------------------

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


def test_a_pull_fails_if_hawser_fetch_cannot_be_started(server, start, tmp_path):
    answer = start(program=tmp_path / "missing").pull(server.host + "/app")
    assert answer[:2] == ["error", "2"] and "No such file" in answer[2]


def pids(*options):
    """Process IDs of hawser-fetch, the oldest first: supervisor, fetcher, unpackers."""
    found = subprocess.run(["pgrep", *options, "-x", "hawser-fetch"], stdout=subprocess.PIPE, check=False)
    return [int(pid) for pid in found.stdout.split()]


def wait_for_pids(count):
    """Wait until there are `count` processes that stay: those of a finished pull need a moment to exit."""
    wait_until(lambda: len(wait_until_steady(pids)) == count)
    return pids()


def wait_for_standby():
    """Wait until only the two processes of a standby hawser-fetch are left; its fetcher still runs as root."""
    found = []

    def is_standby():
        found[:] = pids()
        return len(found) == 2 and pids("-u", "0") == found
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
