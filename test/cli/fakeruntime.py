# SPDX-License-Identifier: Apache-2.0
"""
fakeruntime.py - a fake runtime for the command hawser, with a list of images
"""
import pytest

from hawsercli import Runtime, message

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
ID = "sha256:" + "0123456789abcdef" * 4
OTHER = "sha256:" + "fedcba9876543210" * 4
DIGEST = "example.com/app@" + OTHER
ESCAPE = "\x1b"


@pytest.fixture
def runtime(tmp_path):
    r = Runtime(tmp_path / "sock")
    yield r
    r.stop()


def fail(context, code, text):
    context.abort(getattr(grpc.StatusCode, code), text)


def image(image_id, tags=(), digests=(), size=1234567, more=()):
    return message((1, image_id), *((2, t) for t in tags), *((3, d) for d in digests), (4, size), *more)


def serve_list(runtime):
    all_images = [image(ID, ["zoo:2", "busybox:1"], [DIGEST], more=[(5, message((1, 1000)))]),
                  image(OTHER, [], [DIGEST], 999, [(6, "www-data"), (8, 1)]),
                  image("sha256:" + "ab" * 32, size=5 * 10**9)]
    runtime.methods["ListImages"] = lambda request, context: message(*((1, i) for i in all_images))
