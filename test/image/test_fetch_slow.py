# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_slow.py - hawser-fetch and registries that send slowly

A transfer must have an average speed after `slow_ms`, which is half a minute in the daemon: at least 1 KiB/s, and at
least so much that it ends within an hour.
"""
import errno
import os
import re
import threading

import pytest

from fetching import Image, Server, digest, to_json
from hostile import fails, other_machine, puller, remote  # noqa: F401, fixtures
from layers import END, member

HOUR = 3600


class SlowBlobs:
    """Makes a server send its blobs slowly, after the first `fast` bytes. `claim` is the size that it reports."""

    def __init__(self, server, bytes_per_second, fast=0, claim=None, what="/blobs/"):
        self.stop = threading.Event()
        self.rate, self.fast, self.claim, self.what = bytes_per_second, fast, claim, what
        self.server, server.before = server, self.respond

    def respond(self, handler):
        name = handler.path.split("/")[-1]
        if self.what not in handler.path:
            return False
        data = self.server.blobs[name] if name in self.server.blobs else self.server.manifests[name][1]
        if len(data) < 1000:  # the configuration
            return False
        first, last, total = 0, len(data) - 1, self.claim or len(data)
        if handler.headers.get("Range") and self.server.ranges:
            first, last = (int(n or last) for n in handler.headers["Range"].removeprefix("bytes=").split("-"))
            handler.send_response(206)
            handler.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, total))
            handler.send_header("Content-Length", str(last + 1 - first))
        else:
            handler.send_response(200)
            handler.send_header("Content-Length", str(total))
        handler.end_headers()
        at = first
        while at <= last and not self.stop.is_set():
            step = self.fast - at if at < self.fast else max(1, self.rate // 20)
            handler.wfile.write(data[at:min(at + step, last + 1)])
            handler.wfile.flush()
            at += step
            if at >= self.fast:
                self.stop.wait(0.05)  # the interval of the writes
        return True


@pytest.fixture
def slow(server):
    made = []

    def make(*args, at=server, **more):
        made.append(SlowBlobs(at, *args, **more))
        return made[-1]
    yield make
    for s in made:
        s.stop.set()


def image_of(size):
    return Image([member("f", data=os.urandom(size)) + END], packed=bytes, media="layer.v1.tar")


def test_a_layer_at_500_bytes_per_second_is_given_up(server, slow, puller):
    image = image_of(50_000)
    server.add(image)
    slow(500)
    text = fails(puller, server.host, errno.ETIMEDOUT, "layer %s: transfer too slow: " % digest(image.packed[0]), slow_ms=1000)
    assert "expected at least 1024 bytes per second" in text and len(server.requests_for(digest(image.packed[0]))) == 1


SIZE = 100_000_000


@pytest.fixture
def large(server):
    """An image on the server, with a layer that has SIZE bytes according to its manifest."""
    image = image_of(100_000)
    image.document["layers"][0]["size"] = SIZE
    image.manifest = to_json(image.document)
    server.add(image)
    return image


def test_a_layer_that_would_take_longer_than_an_hour_is_given_up(server, large, slow, puller):
    server.ranges = False
    slow(10_000, claim=SIZE)
    text = fails(puller, server.host, errno.ETIMEDOUT, "transfer too slow: ", slow_ms=1000, part=16 << 20)
    assert 0.9 * SIZE / HOUR < int(re.search(r"at least (\d+) bytes per second", text)[1]) <= SIZE / HOUR


def test_a_layer_that_becomes_slow_after_its_start_is_given_up(server, large, slow, puller):
    """The first part arrives at once. The next ones are fetched in parallel, and none of them is complete in time."""
    slow(1000, fast=20_000, claim=SIZE)
    fails(puller, server.host, errno.ETIMEDOUT, "transfer too slow: ", slow_ms=3000, part=20_000)
    assert len(server.requests_for(digest(large.packed[0]))) > 1


def test_a_manifest_at_500_bytes_per_second_is_given_up(server, slow, puller):
    image = image_of(1)
    image.manifest += b" " * 20_000
    server.add(image)
    slow(500, what="/manifests/")
    fails(puller, server.host, errno.ETIMEDOUT, "manifests/latest: transfer too slow: ", slow_ms=1000)


def test_a_layer_that_is_fast_enough_is_fetched(server, slow, puller):
    image = image_of(10_000)
    server.add(image)
    slow(6000)
    result = puller.pull(server.host + "/app:latest", slow_ms=500)
    assert len(puller.file(result, 0, "f")) == 10_000


def test_the_time_before_the_first_byte_does_not_count(server, slow, puller):
    """A mirror fetches a layer itself before it sends the first byte."""
    image = image_of(10_000)
    server.add(image)
    waited = threading.Event()
    server.before = lambda h: "/blobs/" in h.path and waited.wait(1.5) and False
    puller.pull(server.host + "/app:latest", slow_ms=500)


def test_the_time_that_a_registry_demands_to_wait_does_not_count(server, puller):
    image = image_of(100)
    server.add(image)
    name = digest(image.packed[0])
    answers = ["first half", "wait", "wait"]

    def respond(h):
        answer = answers.pop(0) if name in h.path and answers else None
        if answer == "wait":
            return server.respond(h, 429, headers={"Retry-After": "2"})
        if answer:
            h.send_response(200)
            h.send_header("Content-Length", str(len(image.packed[0])))
            h.end_headers()
            h.wfile.write(image.packed[0][:1000])
            h.close_connection = True
        return bool(answer)
    server.before = respond
    result = puller.pull(server.host + "/app:latest", slow_ms=1000, retries=4)
    assert len(puller.file(result, 0, "f")) == 100 and not answers


def test_a_layer_of_a_slow_mirror_is_fetched_from_the_registry(server, slow, puller):
    image, mirror = image_of(50_000), Server()
    server.add(image)
    mirror.add(image)
    slow(500, at=mirror)
    puller.pull(server.host + "/app:latest", slow_ms=1000, mirrors=[mirror.url])
    assert mirror.requests_for(digest(image.packed[0])) and server.requests_for(digest(image.packed[0]))
    mirror.close()
