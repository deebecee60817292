# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_slots.py - hawser-cri and calls that wait for a registry: they leave room for others
"""
import contextlib
import re

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from criimages import NAME, image_with, pull, spec
from fetching import Server, StalledImage
from hawsercli import hawser
from waiting import LONG, wait_until

PULL = "/runtime.v1.ImageService/PullImage"


@pytest.fixture
def other():
    s = Server()
    s.add(image_with())
    yield s
    s.close()


@contextlib.contextmanager
def running(tmp_path, server, other, config):
    d = Daemon(tmp_path, "--plain-http", server.host, "--plain-http", other.host, "--disk-reserve", "0", "--drain-timeout", "0",
               "--auth-file", tmp_path / "auth.json", config=config).start()
    with d.dial() as channel:
        yield d, channel
    assert d.stop() == 0, d.log()


def start_pulls(channel, server, n, same=False):
    """Pulls that wait for the server. They have different names, so each is a pull of its own, unless `same` is set."""
    stalled = StalledImage(server)
    for i in range(n):
        server.add(stalled.image, "t%d" % i)
    call = channel.unary_unary(PULL)
    return stalled, [call.future(spec("%s/app:t%d" % (server.host, 0 if same else i)), timeout=LONG) for i in range(n)]


def command(d, *words):
    done = hawser("--runtime", "unix:" + d.socket, *words)
    assert done[0] == 0, done
    return done


def long_calls(d):
    _, text, _ = command(d, "info")
    return int(re.search(r"long calls\s+(\d+), at most", text)[1])


@pytest.mark.parametrize("same", [False, True])
def test_pulls_from_one_registry_leave_room_for_pulls_from_others(tmp_path, server, other, same):
    with running(tmp_path, server, other, "long-calls: 40\npulls-per-registry: 3\n") as (d, channel):
        stalled, calls = start_pulls(channel, server, 3, same)
        wait_until(lambda: long_calls(d) == 3)
        status, text = pull(d, server.host + "/app:latest")
        assert status == 1 and text.startswith("RESOURCE_EXHAUSTED")
        assert "too many pulls from %s: limit 3 (pulls-per-registry)" % server.host in text
        assert pull(d, other.host + NAME)[0] == 0
        stalled.go_on.set()
        assert all(c.result(LONG) for c in calls)
        assert pull(d, server.host + "/app:latest")[0] == 0


def test_the_default_is_a_quarter_of_the_long_calls(tmp_path, server, other):
    with running(tmp_path, server, other, "long-calls: 16\n") as (d, channel):
        stalled, _ = start_pulls(channel, server, 4)
        wait_until(lambda: long_calls(d) == 4)
        assert "limit 4 (pulls-per-registry)" in pull(d, server.host + "/app:latest")[1]
        assert pull(d, other.host + NAME)[0] == 0
        stalled.go_on.set()


def test_a_reload_changes_the_limit(tmp_path, server, other):
    with running(tmp_path, server, other, "pulls-per-registry: 1\n") as (d, channel):
        stalled, _ = start_pulls(channel, server, 1)
        wait_until(lambda: long_calls(d) == 1)
        assert "limit 1 " in pull(d, server.host + "/app:latest")[1]
        d.config.write_text("pulls-per-registry: 2\n")
        d.signal(1)
        d.logged("configuration reloaded")
        stalled.go_on.set()
        assert pull(d, server.host + "/app:latest")[0] == 0


def test_waiting_pulls_leave_room_for_every_other_kind_of_call(tmp_path, server, other):
    """Pulls use all slots that they can get; of the others, each kind of call has its own."""
    with running(tmp_path, server, other, "long-calls: 64\npulls-per-registry: 64\n") as (d, channel):
        assert pull(d, other.host + NAME)[0] == 0
        stalled, calls = start_pulls(channel, server, 64)
        wait_until(lambda: sum(c.done() for c in calls) + long_calls(d) == 64)
        refused = [c for c in calls if c.done()]
        assert refused and all("no thread for another long call" in c.exception().details() for c in refused)
        archive = tmp_path / "archive.tar"
        for words in (["pull", other.host + NAME], ["save", "-o", archive, other.host + NAME], ["load", archive],
                      ["image", "verify"], ["image", "recover"], ["images"], ["rmi", other.host + NAME]):
            command(d, *words)
        stalled.go_on.set()
