# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_confined.py - what the processes of a pull hold while they run: secrets, rights, limits

The registry stops in the middle of a layer, so all processes of the pull wait while they are examined. A build with
a sanitizer differs in all of this.
"""
import contextlib
import pathlib
import socket
import subprocess
import threading

import pytest

from fetching import (CONFIG, PLAN, Image, Puller, Server, StalledImage, children_of, make_authority, status_of,
                      tls_context)
from waiting import LONG

SECRET = "correct-horse-battery-staple"


class Stalled:
    """A pull whose only layer is half fetched: the pids of the supervisor, the fetcher and the unpacker."""

    def __init__(self, server, puller, **job):
        self.image = StalledImage(server)
        self.socket, self.process = puller.start(self.image.name, **job)
        while (message := puller.receive(self.socket))[0] != CONFIG:
            assert message[0] is not None
        puller.send(self.socket, PLAN, {"layers": puller.plan(message[1], {})})
        self.image.wait()
        self.supervisor = self.process.pid
        self.fetcher, self.unpacker = children_of(self.supervisor)

    def close(self):
        self.image.go_on.set()
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


@pytest.mark.parametrize("key", ["password", "identity_token", "registry_token"])
def test_only_the_fetcher_has_credentials_in_its_memory(key, stalled):
    pull = stalled(username="user", **{key: SECRET})
    assert has_in_memory(pull.fetcher, SECRET)  # this test finds a secret where there is one
    assert not has_in_memory(pull.supervisor, SECRET)
    assert not has_in_memory(pull.unpacker, SECRET)


@pytest.mark.parametrize("name", ["supervisor", "fetcher", "unpacker"])
def test_every_process_of_a_pull_has_a_seccomp_filter(name, stalled):
    status = status_of(getattr(stalled(), name))
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


# ---- what the fetcher still has to reach -------------------------------------------------------

class NameServer:
    """Answers every DNS question for an IPv4 address with 127.0.0.1."""

    ADDRESS = "127.0.0.2"  # the C library uses 127.0.0.1 if it cannot read resolv.conf

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.ADDRESS, 53))
        self.asked = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                query, client = self.socket.recvfrom(512)
                end = query.index(b"\0", 12) + 5
                is_ipv4 = query[end - 4:end - 2] == b"\0\1"
                self.asked.append(query[13:end - 5])
                answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_ipv4 else b""
                self.socket.sendto(query[:2] + b"\x81\x80\0\1\0" + bytes([is_ipv4]) + b"\0\0\0\0" +
                                   query[12:end] + answer, client)


def test_a_registry_is_found_by_name(server, tmp_path):
    names = NameServer()
    pathlib.Path("/etc/resolv.conf").write_text("nameserver %s\n" % NameServer.ADDRESS)
    server.add(Image())
    host = "registry.example:%s" % server.host.rpartition(":")[2]
    result = Puller(tmp_path, plain_http=[host]).pull(host + "/app:latest")
    names.socket.close()
    assert result["resolved"]["host"] == host and any(b"registry" in name for name in names.asked)


def test_a_certificate_authority_of_the_system_is_trusted(tmp_path):
    authority = make_authority(tmp_path / "ca")
    name = subprocess.run(["openssl", "x509", "-noout", "-hash", "-in", authority / "ca.crt"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    pathlib.Path("/etc/ssl/certs/%s.0" % name).write_bytes((authority / "ca.crt").read_bytes())
    with contextlib.closing(Server(tls=tls_context(authority))) as server:
        server.add(Image())
        assert Puller(tmp_path).pull(server.host + "/app:latest")["resolved"]["host"] == server.host
