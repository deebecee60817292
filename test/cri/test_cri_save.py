# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_save.py - hawser-cri saves images as an archive
"""
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import field
from criimages import NAME, daemon, file_of, image_with, leftovers, pull, spec  # noqa: F401, a fixture
from fetching import Image, digest
from layers import END, directory, member
from waiting import LONG


def save(d, *names):
    """Returns the archive."""
    with d.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Save")
        pieces = list(stream(b"".join(field(1, n) for n in names), timeout=LONG))
    return b"".join(data_of(p) for p in pieces)


def data_of(message):
    """The content of a message that has only a bytes field with number 1."""
    assert message[0] == 1 << 3 | 2
    at = 1
    while message[at] >= 0x80:
        at += 1
    return message[at + 1:]


def files_of(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


def test_two_images_are_saved_in_one_archive(daemon, server):
    large = os.urandom(3 << 20)
    first = image_with()
    second = Image([directory("etc") + member("etc/name", data=b"one") + END,
                    member("large", data=large) + END])
    server.add(first)
    server.add(second, "second")
    names = [server.host + NAME, server.host + "/app:second"]
    for name in names:
        assert pull(daemon, name)[0] == 0
    files = files_of(save(daemon, *names))
    for name, data in files.items():
        if name.startswith("blobs/"):
            assert name == "blobs/sha256/" + digest(data)[7:]
    blobs = {digest(data) for data in files.values()}
    assert {*first.diff_ids, *second.diff_ids} <= blobs
    assert {digest(first.config), digest(second.config)} <= blobs
    index = json.loads(files["index.json"])["manifests"]
    assert [m["annotations"]["io.containerd.image.name"] for m in index] == names
    assert [m["RepoTags"] for m in json.loads(files["manifest.json"])] == [[n] for n in names]
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")
@pytest.mark.parametrize("kind", ["oci-archive", "docker-archive"])
def test_skopeo_reads_a_saved_archive(daemon, server, tmp_path, kind):
    image = image_with()
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    (tmp_path / "saved.tar").write_bytes(save(daemon, server.host + NAME))
    subprocess.run(["skopeo", "--insecure-policy", "copy", "%s:%s" % (kind, tmp_path / "saved.tar"),
                    "dir:%s" % (tmp_path / "copy")], check=True, timeout=LONG,
                   stdout=subprocess.DEVNULL)
    manifest = json.loads((tmp_path / "copy/manifest.json").read_text())
    assert manifest["config"]["digest"] == digest(image.config)
    assert [m["digest"] for m in manifest["layers"]] == image.diff_ids


def test_a_missing_or_damaged_image_cannot_be_saved(daemon, server):
    server.add(image_with())
    assert pull(daemon, server.host + NAME)[0] == 0
    file_of(daemon, "etc/name").write_bytes(b"two")
    for names, code, text in (
            ([], grpc.StatusCode.INVALID_ARGUMENT, "missing image name"),
            (["missing"], grpc.StatusCode.NOT_FOUND, 'image "missing" not found'),
            ([server.host + NAME], grpc.StatusCode.DATA_LOSS, "etc/name")):
        with pytest.raises(grpc.RpcError) as caught:
            save(daemon, *names)
        assert caught.value.code() == code and text in caught.value.details()
    # a layer with duplicate members cannot be rebuilt from its files
    twice = Image([member("a", data=b"1") + member("a", data=b"2") + END])
    server.add(twice, "twice")
    assert pull(daemon, server.host + "/app:twice")[0] == 0
    (blob,) = (daemon.dir / "root/layers").glob("*/blob")  # stored because the layer cannot be rebuilt
    assert blob.read_bytes() in save(daemon, server.host + "/app:twice")
    blob.unlink()
    with pytest.raises(grpc.RpcError) as caught:
        save(daemon, server.host + "/app:twice")
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert "read the stored blob: No such file" in caught.value.details()


def test_cancelling_the_call_ends_the_save(daemon, server):
    image = Image([member("large", data=os.urandom(64 << 20)) + END], packed=lambda data: data,
                  media="layer.v1.tar")
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    with daemon.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Save")(
            field(1, server.host + NAME), timeout=LONG)
        next(stream)
        stream.cancel()
        # The end of the connection could overtake the cancellation.
        daemon.logged("call failed method=Save code=CANCELLED")
    assert daemon.call("RemoveImage", spec(server.host + NAME)) == (0, {})
    assert leftovers(daemon) == []
