# SPDX-License-Identifier: Apache-2.0
"""
test_keep_blobs.py - stored blobs of layers, and how hawser save writes them

What:  with keep-blobs, or if a layer cannot be rebuilt from its files, the blob is stored and save
       writes it unchanged.
"""
import io
import json
import tarfile

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from fetching import Image, digest
from hawsercli import hawser
from layers import END, member


@pytest.fixture
def start(tmp_path, server):
    daemons = []

    def make(**more):
        daemons.append(Daemon(tmp_path, "--plain-http", server.host, "--disk-reserve", "0", **more).start())
        return daemons[0], lambda *words, **how: hawser("--runtime", "unix:" + daemons[0].socket, *words, **how)
    yield make
    assert daemons[0].stop() == 0, daemons[0].log()


def stored_blobs(daemon):
    return sorted(p.read_bytes() for p in (daemon.dir / "root/layers").glob("*/blob"))


def files_of(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as t:
        return {m.name: t.extractfile(m).read() for m in t}


def check_round_trip(run, server, image, blobs):
    """The saved archive has these blobs as layers, and loads as the same image."""
    name = server.host + "/app:latest"
    status, saved, errors = run("save", name, text=False)
    assert status == 0, errors
    files = files_of(saved)
    listed = json.loads(files["manifest.json"])[0]["Layers"]
    assert [files[f] for f in listed] == blobs
    assert listed == ["blobs/sha256/" + digest(b)[7:] for b in blobs]
    manifest = json.loads(files["blobs/sha256/" + json.loads(files["index.json"])["manifests"][0]["digest"][7:]])
    assert [(d["digest"], d["size"]) for d in manifest["layers"]] == [(digest(b), len(b)) for b in blobs]
    assert [d["mediaType"].endswith("+gzip") for d in manifest["layers"]] == [b[:2] == b"\x1f\x8b" for b in blobs]
    assert run("rmi", name)[0] == 0
    for format in ("oci", "docker"):
        status, text, errors = run("--json", "load", "--format", format, stdin=saved)
        assert status == 0, errors
        assert json.loads(text)["images"] == [{"id": digest(image.config), "names": [name]}]
        assert run("save", name, text=False)[1] == saved
        assert run("rmi", name)[0] == 0


def test_blobs_are_stored_with_keep_blobs(server, start):
    image = Image()
    server.add(image)
    daemon, run = start(config="keep-blobs: true\n")
    assert run("pull", server.host + "/app")[0] == 0
    assert stored_blobs(daemon) == sorted(image.packed)
    check_round_trip(run, server, image, image.packed)


def test_layers_are_rebuilt_without_keep_blobs(server, start):
    image = Image()
    server.add(image)
    daemon, run = start()
    assert run("pull", server.host + "/app")[0] == 0
    assert stored_blobs(daemon) == []
    files = files_of(run("save", server.host + "/app", text=False)[1])
    archives = [files["blobs/sha256/" + d[7:]] for d in image.diff_ids]
    assert [digest(a) for a in archives] == image.diff_ids
    check_round_trip(run, server, image, archives)


def test_the_blob_of_a_layer_that_cannot_be_rebuilt_is_saved_unchanged(server, start):
    plain = member("g") + END
    image = Image([member("f", data=b"old") + member("f", data=b"new") + END, plain])
    server.add(image)
    daemon, run = start()
    assert run("pull", server.host + "/app")[0] == 0
    assert stored_blobs(daemon) == [image.packed[0]]
    check_round_trip(run, server, image, [image.packed[0], plain])


def test_a_damaged_or_missing_blob_is_detected_and_repaired(server, start, tmp_path):
    image = Image()
    server.add(image)
    daemon, run = start(config="keep-blobs: true\n")
    assert run("pull", server.host + "/app")[0] == 0
    for path in (daemon.dir / "root/layers").glob("*/blob"):
        path.write_bytes(bytes(path.stat().st_size))
    status, text, _ = run("image", "verify")
    assert status == 1 and text.count("stored blob: ") == 2 and "digest mismatch" in text
    status, _, errors = run("save", "-o", tmp_path / "out.tar", server.host + "/app")
    assert status == 1 and "digest mismatch" in errors and not (tmp_path / "out.tar").exists()
    for path in (daemon.dir / "root/layers").glob("*/blob"):
        path.unlink()
    status, _, errors = run("save", "-o", tmp_path / "out.tar", server.host + "/app")
    assert status == 1 and "read the stored blob: No such file" in errors
    assert "code=INTERNAL" in daemon.log().splitlines()[-1]
    assert run("image", "verify", "--repair")[0] == 0
    assert stored_blobs(daemon) == sorted(image.packed)


def test_verify_checks_the_blob_of_a_layer_that_cannot_be_rebuilt(server, start):
    image = Image([member("f", data=b"old") + member("f", data=b"new") + END, member("g") + END])
    server.add(image)
    daemon, run = start()
    assert run("pull", server.host + "/app")[0] == 0
    assert "0 damaged, 0 repaired, 1 not checked" in run("image", "verify")[1]
    (blob,) = (daemon.dir / "root/layers").glob("*/blob")
    blob.write_bytes(bytes(blob.stat().st_size))
    status, text, _ = run("image", "verify")
    assert status == 1 and "stored blob: " in text
