# SPDX-License-Identifier: Apache-2.0
"""
hostile.py - fixtures and assertions for hawser-fetch and hostile servers
"""
import subprocess

import pytest

from fetching import Failed, Puller, Server

REMOTE = "10.99.0.1"  # an address of this machine that is not a loopback address


@pytest.fixture(scope="module", autouse=True)
def remote_address():
    subprocess.run(["ip", "address", "add", REMOTE + "/32", "dev", "lo"], check=True)
    yield
    subprocess.run(["ip", "address", "del", REMOTE + "/32", "dev", "lo"], check=True)


@pytest.fixture
def remote():
    s = Server(address=REMOTE)
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
