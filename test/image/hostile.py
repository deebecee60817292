# SPDX-License-Identifier: Apache-2.0
"""
hostile.py - another machine, and fixtures and assertions for hawser-fetch and hostile servers

What:  the other machine is the network namespace "far". A thread that has entered it creates the server's socket,
       which then stays there.
"""
import ctypes
import os
import subprocess
import threading

import pytest

from fetching import Failed, Puller, Server

NODE, NODE_SECONDARY, NODE6 = "10.99.0.1", "10.99.0.3", "fd99::1"  # addresses of this machine
REMOTE = "10.99.0.2"
LINK_LOCAL, METADATA6, NAT64 = "169.254.169.254", "fd00:ec2::254", "64:ff9b::a9fe:a9fe"  # also of the other machine
CLONE_NEWNET = 0x40000000


def run(commands):
    for command in commands.strip().splitlines():
        subprocess.run(command.split(), check=True)


@pytest.fixture(scope="module", autouse=True)
def other_machine():
    run(f"""
        ip netns add far
        ip link add near type veth peer name near netns far
        ip address add {NODE}/24 dev near
        ip address add {NODE_SECONDARY}/24 dev near
        ip address add {NODE6}/64 dev near nodad
        ip link set near up
        ip -n far address add {REMOTE}/24 dev near
        ip -n far address add fd99::2/64 dev near nodad
        ip -n far address add {LINK_LOCAL}/32 dev near
        ip -n far address add {METADATA6}/128 dev near nodad
        ip -n far address add {NAT64}/128 dev near nodad
        ip -n far address add fe80::99/64 dev near nodad
        ip -n far link set near up
        ip -n far link set lo up
        ip route add {LINK_LOCAL}/32 dev near
        ip route add {METADATA6}/128 via fd99::2
        ip route add {NAT64}/128 via fd99::2""")
    yield
    run("ip netns del far")


def far_server(address):
    """A server on the other machine."""
    made = []

    def create():
        with open("/run/netns/far", "rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        made.append(Server(address=address))
    thread = threading.Thread(target=create)
    thread.start()
    thread.join()
    return made[0]


@pytest.fixture
def remote():
    s = far_server(REMOTE)
    yield s
    s.close()


@pytest.fixture
def puller(tmp_path, server, remote):
    return Puller(tmp_path, plain_http=[server.host, remote.host], retries=1)


def fails(puller, host, code, error, name="app:latest", **job):
    """The error text of a pull that must fail with this errno; it names the image and the host."""
    with pytest.raises(Failed) as failed:
        puller.pull(host + "/" + name, **job)
    text = str(failed.value)
    assert text.startswith("pull %s/%s from %s: " % (host, name, host)) and "\n" not in text
    assert error in text and failed.value.code == code
    return text
