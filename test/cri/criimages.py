# SPDX-License-Identifier: Apache-2.0
"""
test/cri/criimages.py - a hawser-cri daemon that pulls from the registry of fetching.py, and the images in its store
"""
import pytest

from cridaemon import Daemon, field, fields_of
from fetching import ARCHITECTURE, Image, to_json
from waiting import LONG

NAME = "/app:latest"


def image_with(user="", label="x"):
    """An image whose ID depends on the label."""
    plain = Image()
    return Image(config=to_json({"os": "linux", "architecture": ARCHITECTURE,
                                 "config": {"User": user, "Labels": {"l": label}},
                                 "rootfs": {"type": "layers", "diff_ids": plain.diff_ids}}))


@pytest.fixture
def daemon(tmp_path, server):
    d = Daemon(tmp_path, "--plain-http", server.host, "--auth-file", tmp_path / "auth.json",
               "--disk-reserve", "0", "--drain-timeout", "1").start()
    yield d
    if d.process:
        assert d.stop() == 0, d.log()


def spec(name):
    return field(1, field(1, name))


def pull(d, name, more=b""):
    return d.call("PullImage", spec(name) + more)


def images(d):
    """Returns {id: fields} of all listed images."""
    fields = d.call("ListImages")[1]
    found = {}
    for key, value in fields.items():
        _, number, rest = key.split(".", 2)
        found.setdefault(number, {})[rest] = value
    return {i["id"]: i for i in found.values()}


def leftovers(d):
    return [f for name in ("tmp", "gone") for f in (d.dir / "root" / name).iterdir()]


def file_of(d, path):
    (found,) = [f / "root" / path for f in (d.dir / "root/layers").iterdir()
                if (f / "root" / path).exists()]
    return found


# ---- verification --------------------------------------------------------------------------------

def verify(d, *names, repair=False, results=None):
    """Returns [(diff ID, state, damaged)] in the order of the responses; `results` has them also after an error."""
    request = b"".join(field(1, n) for n in names) + (b"\x10\x01" if repair else b"")
    results = [] if results is None else results
    with d.dial() as channel:
        for m in map(fields_of, channel.unary_stream("/hawser.v1.Images/Verify")(request, timeout=LONG)):
            results.append((m.get(2, ""), m.get(3, 0), m.get(6, "")))
    return results


GOOD, DAMAGED, REPAIRED, NOT_CHECKED = range(4)
