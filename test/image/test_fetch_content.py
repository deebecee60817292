# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_content.py - hawser-fetch and hostile documents and layers
"""
import errno
import gzip
import os
import subprocess

import pytest

from fetching import ARCHITECTURE, OCI, Failed, Image, Puller, Server, digest, index_of, to_json
from hostile import fails, other_machine, puller, remote  # noqa: F401, fixtures
from layers import END, member


# ---- documents ---------------------------------------------------------------------------------

def test_a_manifest_of_100_mb_is_rejected(server, puller):
    def before(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(100 << 20))
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" " * (1 << 20))
        return True
    server.before = before
    fails(puller, server.host, errno.EFBIG, "response too large: more than 4194304 bytes")


MANIFESTS = {
    "not JSON": (b"<html>", errno.EBADMSG, "manifest: "),
    "empty": (b"", errno.EBADMSG, "manifest: "),
    "an array": (b"[]", errno.EBADMSG, "manifest: "),
    "neither": (b'{"schemaVersion":2}', errno.EBADMSG, "neither manifests nor config and layers"),
    "schema 1": (b'{"schemaVersion":1,"name":"app","fsLayers":[]}', errno.EOPNOTSUPP, "schema 1 is not supported"),
    "an artifact": (to_json({"schemaVersion": 2, "config": {"mediaType": "application/x", "digest": digest(b""), "size": 0},
                             "layers": []}), errno.EOPNOTSUPP, "artifact, not a container image"),
    "an empty index": (to_json({"schemaVersion": 2, "manifests": []}), errno.ENODATA, "no image for linux/" + ARCHITECTURE),
    "a malformed digest": (to_json({"schemaVersion": 2, "config": {"digest": "sha256:../../x", "size": 1}, "layers": []}), errno.EBADMSG, "config"),
    "a negative size": (to_json({"schemaVersion": 2, "config": {"digest": digest(b""), "size": -1}, "layers": []}), errno.EBADMSG, "size"),
}


def test_an_image_with_too_many_layers_is_rejected(server, puller):
    server.add(Image([END] * 501))
    fails(puller, server.host, errno.EFBIG, "too many layers to mount: got 501, want at most 500")
    assert len(server.requests) == 1


@pytest.mark.parametrize("what", MANIFESTS)
def test_an_invalid_manifest_is_rejected(what, server, puller):
    data, code, error = MANIFESTS[what]
    server.before = lambda h: server.respond(h, 200, data)
    fails(puller, server.host, code, error)


def test_the_error_for_an_index_without_the_platform_lists_the_available_platforms(server, puller):
    image = Image(architecture="s390x")
    server.add(image)
    server.manifests["latest"] = (OCI + "index.v1+json", index_of((image, {"os": "linux", "architecture": "s390x"})))
    fails(puller, server.host, errno.ENODATA, "available: linux/s390x")


def test_an_image_for_another_platform_is_rejected(server, puller):
    server.add(Image(architecture="s390x"))
    fails(puller, server.host, errno.ENODATA, "the image is for linux/s390x")


def test_deeply_nested_indexes_are_rejected(server, puller):
    def before(handler):
        name = handler.path.split("/")[-1]
        depth = before.names.index(name) if name in before.names else 0
        return server.respond(handler, 200, before.documents[depth])
    documents = [index_of()]
    for _ in range(10):
        documents.insert(0, to_json({"schemaVersion": 2, "manifests": [
            {"mediaType": OCI + "index.v1+json", "digest": digest(documents[0]), "size": len(documents[0])}]}))
    before.documents, before.names = documents, [digest(d) for d in documents]
    server.before = before
    fails(puller, server.host, errno.EBADMSG, "too many nested indexes: more than 3 levels")
    assert len(server.requests) == 4


def test_a_manifest_with_a_wrong_digest_is_rejected(server, puller):
    image = Image()
    server.add(image)
    name = "app@" + digest(image.manifest)
    server.manifests[digest(image.manifest)] = (OCI + "manifest.v1+json", image.manifest + b" ")
    fails(puller, server.host, errno.EBADMSG, "digest mismatch: got " + digest(image.manifest + b" "), name=name)


def test_a_configuration_with_a_wrong_digest_is_rejected(server, puller):
    image = Image()
    server.add(image)
    server.blobs[digest(image.config)] = image.config.replace(b"linux", b"minix")
    fails(puller, server.host, errno.EBADMSG, "digest mismatch: got ")


def test_a_configuration_of_a_wrong_size_is_rejected(server, puller):
    image = Image()
    server.add(image)
    server.blobs[digest(image.config)] = image.config + b" "
    fails(puller, server.host, errno.EBADMSG, "size mismatch: got %d bytes, want %d" % (len(image.config) + 1, len(image.config)))


@pytest.mark.parametrize("config, error", [(b"no JSON", "image configuration"), (b"[]", "image configuration"),
                                           (b'{"rootfs":{"diff_ids":["x"]}}', "diff_ids[0]"),
                                           (b'{"rootfs":{"diff_ids":[]}}', "lists 0 layers, the manifest 2")])
def test_an_invalid_configuration_is_rejected(config, error, server, puller):
    server.add(Image(config=config))
    fails(puller, server.host, errno.EBADMSG, error)


# ---- layers ------------------------------------------------------------------------------------

def replace_layer(server, image, data):
    """Replaces the first layer in the registry."""
    server.add(image)
    server.blobs[digest(image.packed[0])] = data


def test_a_layer_with_a_wrong_digest_is_rejected(server, puller):
    image = Image()
    other = bytearray(image.packed[0])
    other[4] ^= 1  # the time in gzip's header: the content is unchanged
    replace_layer(server, image, bytes(other))
    fails(puller, server.host, errno.EBADMSG, "layer %s: digest mismatch: got %s" % (digest(image.packed[0]), digest(bytes(other))))


@pytest.mark.parametrize("more", [-1, 1])
def test_a_layer_whose_content_length_differs_from_the_manifest_is_rejected(more, server, puller):
    image = Image()
    data = image.packed[0][:-1] if more < 0 else image.packed[0] + b"x"
    replace_layer(server, image, data)
    fails(puller, server.host, errno.EBADMSG, "size mismatch: got %d bytes, want %d" % (len(data), len(image.packed[0])))


def test_a_layer_sent_without_content_length_is_rejected_if_it_is_too_long(server, puller):
    image = Image()
    server.add(image)

    def before(handler):
        if not handler.path.endswith(digest(image.packed[0])):
            return False
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(image.packed[0] + b"more")
        handler.close_connection = True
        return True
    server.before = before
    fails(puller, server.host, errno.EBADMSG, "size mismatch: got more than %d bytes" % len(image.packed[0]))


def test_a_layer_whose_transfer_always_breaks_at_once_fails(server, puller):
    image = Image()
    server.add(image)

    def before(handler):
        if not handler.path.endswith(digest(image.packed[0])):
            return False
        server.respond(handler, 200, b"", length=len(image.packed[0]))
        raise ConnectionError
    server.before = before
    fails(puller, server.host, errno.ECOMM, "layer " + digest(image.packed[0]))
    assert len(server.requests_for(digest(image.packed[0]))) == 2


def test_a_layer_whose_transfer_breaks_after_each_byte_fails(server, puller):
    image = Image([member("f", data=os.urandom(5000)) + END], packed=bytes)
    server.add(image)

    def before(handler):
        if not handler.path.endswith(digest(image.packed[0])):
            return False
        first = int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        size = len(image.packed[0])
        server.respond(handler, 206 if first else 200, image.packed[0][first:first + 1],
                       {"Content-Range": "bytes %d-%d/%d" % (first, size - 1, size)}, length=size - first)
        raise ConnectionError
    server.before = before
    fails(puller, server.host, errno.ECOMM, "layer " + digest(image.packed[0]), retries=2)
    assert len(server.requests_for(digest(image.packed[0]))) == 3


def test_a_range_that_was_not_requested_is_rejected(server, puller):
    image = Image([member("f", data=os.urandom(5000)) + END], packed=bytes)
    server.add(image)
    real = Server.respond_with_blob
    server.respond_with_blob = lambda h, data: (real(server, h, data) if data == image.config else server.respond(
        h, 206, data[9:1009], {"Content-Range": "bytes 9-1008/%d" % len(data)}))
    fails(puller, server.host, errno.EBADMSG, "range mismatch: got bytes from 9, want from 0", part=1000)


PACKED = {"corrupt gzip": (lambda a: gzip.compress(a)[:40] + b"\xff" * 40, "corrupt gzip stream"),
          "truncated gzip": (lambda a: gzip.compress(a)[:-6], "truncated gzip stream"),
          "gzip with a wrong checksum": (lambda a: gzip.compress(a)[:-8] + b"\0" * 8, "corrupt gzip stream"),
          "gzip with trailing data": (lambda a: gzip.compress(a) + b"behind", "corrupt gzip stream"),
          "corrupt zstd": (lambda a: b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "corrupt zstd stream"),
          "zstd with a window of 2 GB": (lambda a: b"\x28\xb5\x2f\xfd\x00\xa8" + bytes(40), "corrupt zstd stream"),
          "not an archive": (lambda a: b"hello, this is no archive" * 100, "layer")}


@pytest.mark.parametrize("what", PACKED)
def test_a_layer_with_an_invalid_compressed_stream_is_rejected(what, server, puller):
    packed, error = PACKED[what]
    server.add(Image([member("f", data=b"x" * 5000) + END], packed=packed))
    fails(puller, server.host, errno.EBADMSG, error)


def test_a_layer_with_a_wrong_diff_id_is_rejected(server, puller):
    image = Image()
    config = image.config.replace(image.diff_ids[1].encode(), digest(b"").encode())
    server.add(Image(config=config))
    fails(puller, server.host, errno.EBADMSG, digest(b""))


def test_a_layer_larger_than_the_limit_is_rejected(server, puller):
    server.add(Image([member("bomb", data=bytes(20 << 20)) + END]))
    fails(puller, server.host, errno.EFBIG, "layer", bytes=1 << 20)


def test_a_layer_with_more_members_than_the_limit_is_rejected(server, puller):
    server.add(Image([b"".join(member("f%d" % i) for i in range(200)) + END]))
    fails(puller, server.host, errno.EFBIG, "layer", entries=100)


def test_a_stored_blob_does_not_use_the_disk_reserve(server, remote, puller, tmp_path):
    image = Image([member("f", data=os.urandom(3 << 20)) + END], packed=bytes)
    server.add(image)
    remote.add(image)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "small", small], check=True)
    puller.plan = lambda config, have: [dict(p, blob=str(small / "blob")) for p in Puller.plan(puller, config, have)]
    try:
        with pytest.raises(Failed, match="not enough disk space for .* 3145728 bytes reserved") as failed:
            puller.pull(server.host + "/app:latest", keep_blobs=True, reserve=3 << 20, mirrors=[remote.url])
        kept = (small / "blob").stat().st_size
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
    assert failed.value.code == errno.ENOSPC and 0 < kept <= 1 << 20 and not server.requests
