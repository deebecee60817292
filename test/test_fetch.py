# SPDX-License-Identifier: Apache-2.0
"""
test_fetch.py - hawser-fetch pulls images: from Debian's docker-registry and from one in Python

The registries that mean harm are in test_fetch_hostile.py.
"""
import pytest

from fetching import Failed, Image, Puller, Server, digest


@pytest.fixture
def server():
    s = Server()
    yield s
    s.close()


@pytest.fixture
def puller(tmp_path, server):
    return Puller(tmp_path, plain_http=[server.host])


def test_an_image_of_two_layers_is_fetched_and_unpacked(server, puller):
    image = Image()
    server.add(image)
    said = puller.pull(server.host + "/app:latest")
    assert said["manifest"] == image.manifest and said["config"] == image.config
    assert said["resolved"] == {"digest": digest(image.manifest), "host": server.host}
    assert puller.file(said, 0, "etc/name") == b"one" and puller.file(said, 1, "etc/more") == b"two"
    assert [said["layers"][i]["diff_id"] for i in (0, 1)] == image.diff_ids
