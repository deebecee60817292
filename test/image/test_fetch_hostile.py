# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_hostile.py - hawser-fetch and broken or hostile registries

Each case fails with its own error, which names the image and the host, in bounded time and memory.
"""
import errno
import gzip
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import fetching
from fetching import (ARCHITECTURE, JOB, OCI, WAIT, Failed, Image, Puller, Server, digest, index_of, make_authority, tls_context,
                      to_json)
from layers import END, directory, hardlink, member, pax, symlink

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


# ---- responses of a server ----------------------------------------------------------------------

STATUSES = {400: errno.EINVAL, 401: errno.EKEYREJECTED, 403: errno.EACCES, 404: errno.ENODATA, 405: errno.EIO, 408: errno.ECOMM,
            410: errno.ENODATA, 429: errno.EBUSY, 451: errno.EACCES, 500: errno.ECOMM, 503: errno.ECOMM, 304: errno.EIO,
            204: errno.EBADMSG}


@pytest.mark.parametrize("status", STATUSES)
def test_each_http_error_status_is_reported_with_its_grpc_code(status, server, puller):
    server.before = lambda h: server.respond(h, status, headers={"Retry-After": "0"})
    fails(puller, server.host, STATUSES[status], "" if status == 204 else "HTTP status %d" % status)
    again = 2 if status in (408, 429, 500, 503) else 1
    assert len(server.requests) == again


def test_a_missing_layer_is_reported_as_not_found(server, puller):
    image = Image()
    server.add(image)
    del server.blobs[digest(image.packed[1])]
    fails(puller, server.host, errno.ENODATA, "layer %s: HTTP status 404 (not found)" % digest(image.packed[1]))


def test_a_layer_with_a_dangling_hard_link_is_reported_as_damaged(server, puller):
    server.add(Image([hardlink("h", "none") + END]))
    fails(puller, server.host, errno.EBADMSG, 'member "h": target "none" is not in the layer')


@pytest.mark.parametrize("what", ["/manifests/", "/blobs/"])
def test_an_http_error_with_an_endless_body_is_reported_at_once(what, server, puller):
    server.add(Image())
    sent = []

    def before(handler):
        if what not in handler.path:
            return False
        handler.send_response(404)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:  # until the client closes the connection
            sent.append(handler.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n"))
    server.before = before
    fails(puller, server.host, errno.ENODATA, "HTTP status 404")
    assert sent and len(sent) < 1000


BAD = {"a hard link to a directory": directory("d") + hardlink("h", "d"),
       "a file in a file": member("f") + member("f/g"),
       "a file through a loop of links": symlink("l", "l") + member("l/f"),
       "a name of 300 letters": pax(path="n" * 300) + member("f")}


@pytest.mark.parametrize("what", BAD)
def test_an_invalid_archive_is_reported_as_damaged(what, server, puller):
    server.add(Image([BAD[what] + END]))
    fails(puller, server.host, errno.EBADMSG, "layer")


@pytest.fixture
def fail_fork(tmp_path, monkeypatch):
    """fail_fork(WHEN): strace fails these fork() calls of hawser-fetch. (LeakSanitizer does not work under strace.)"""
    def write_script(when):
        script = tmp_path / "fetch"
        script.write_text("#!/bin/sh\nexport ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0\nexec strace -o /dev/null -e inject=clone,clone3,fork,vfork:error=EAGAIN:when=%s %s\n" % (
            when, fetching.FETCH))
        script.chmod(0o755)
        monkeypatch.setattr(fetching, "FETCH", str(script))
    return write_script


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_failed_fork_before_the_job_is_retried(server, puller, fail_fork):
    server.add(Image())
    fail_fork("1")
    puller.pull(server.host + "/app:latest")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("which", ["1..2", "2"])
def test_a_failed_fork_is_reported_as_resource_exhausted(which, server, puller, fail_fork):
    server.add(Image())
    fail_fork(which)
    with pytest.raises(Failed, match="pull %s/app:latest.*: fork: " % server.host) as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.code == errno.EAGAIN


def test_a_pull_fails_at_once_if_retry_after_demands_to_wait_for_a_day(server, puller):
    server.before = lambda h: server.respond(h, 429, headers={"Retry-After": "86400"})
    fails(puller, server.host, errno.EBUSY, "HTTP status 429", retries=4)
    assert len(server.requests) == 1


def test_a_port_without_a_listener_is_reported_as_unavailable(server, puller):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        host = "127.0.0.1:%d" % s.getsockname()[1]
        fails(puller, host, errno.ECOMM, "Failed to connect", plain_http=[host], retries=0)


def test_a_host_name_that_does_not_resolve_is_reported_as_unavailable(puller):
    fails(puller, "nowhere.invalid", errno.ECOMM, "resolve host", retries=0)


def raw(answer):
    """A server that sends just these bytes for each request and closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
    threading.Thread(target=serve, daemon=True).start()
    return listener, "127.0.0.1:%d" % listener.getsockname()[1]


ANSWERS = {
    "nothing": b"",
    "zeros": b"\0" * 100,
    "another protocol": b"SSH-2.0-OpenSSH\r\n",
    "a status of letters": b"HTTP/1.1 abc\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "a truncated body": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    "a chunk of letters": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an endless header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 400000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_a_malformed_response_is_rejected(what, puller):
    listener, host = raw(ANSWERS[what])
    with pytest.raises(Failed) as failed:
        puller.pull(host + "/app:latest", plain_http=[host], retries=0)
    listener.close()
    assert failed.value.code in (errno.EIO, errno.ECOMM, errno.EPROTO, errno.EBADMSG) and "from " + host in str(failed.value)


def test_a_server_that_sends_single_bytes_times_out(server, puller):
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not handler.server_gone.wait(0.2):
            handler.wfile.write(b"x")
            handler.wfile.flush()
        return True
    gone = threading.Event()

    def before(handler):
        handler.server_gone = gone
        return drip(handler)
    server.before = before
    fails(puller, server.host, errno.ETIMEDOUT, "", idle_ms=1000)
    gone.set()


def test_a_stalled_layer_times_out(server, puller):
    image = Image()
    server.add(image)
    gone = threading.Event()

    def before(handler):
        if not handler.path.endswith(digest(image.packed[0])):
            return False
        server.respond(handler, 200, image.packed[0][:10], length=len(image.packed[0]))
        gone.wait(WAIT)
        return True
    server.before = before
    fails(puller, server.host, errno.ETIMEDOUT, "layer " + digest(image.packed[0]), idle_ms=1000)
    gone.set()


# ---- documents -----------------------------------------------------------------------------------

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


# ---- layers --------------------------------------------------------------------------------------

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


# ---- redirects -----------------------------------------------------------------------------------

def redirect(server, image, url, status=307):
    """Requests of blobs are redirected."""
    server.add(image)
    server.before = lambda h: "/blobs/" in h.path and server.respond(
        h, status, headers={"Location": url.format(name=h.path.split("/")[-1])})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_server_sends_no_authorization(status, server, remote, puller):
    image = Image()
    redirect(server, image, remote.url + "/store/blobs/{name}?sign=1", status)
    remote.add(image)
    blobs = server.before
    server.before = lambda h: (blobs(h) if h.headers.get("Authorization") else
                               server.respond(h, 401, headers={"WWW-Authenticate": 'Basic realm="x"'}))
    puller.pull(server.host + "/app:latest", username="me", password="word")
    assert len(remote.requests) == 3 and not any("Authorization" in r[2] for r in remote.requests)


def test_ranges_are_requested_from_the_target_of_the_first_redirect(server, remote, puller):
    image = Image([member("f", data=os.urandom(50_000)) + END], packed=bytes)
    redirect(server, image, remote.url + "/store/blobs/{name}")
    remote.add(image)
    puller.pull(server.host + "/app:latest", part=10_000, username="me", password="word")
    assert len(server.requests_for(digest(image.packed[0]))) == 1
    assert len(remote.requests_for(digest(image.packed[0]))) == 6


def test_the_target_of_a_redirect_gets_no_credentials(server, remote, puller):
    image = Image()
    redirect(server, image, remote.url + "/store/blobs/{name}")
    remote.before = lambda h: remote.respond(h, 401, headers={"WWW-Authenticate": 'Basic realm="x"'})
    fails(puller, server.host, errno.EKEYREJECTED, "HTTP status 401", username="me", password="word")
    assert not any("Authorization" in r[2] for r in remote.requests)


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/x/blobs/{name}", "http://localhost:{port}/x/blobs/{name}",
                                 "http://[::1]:{port}/x", "http://0.0.0.0:{port}/x/blobs/{name}",
                                 "http://[::ffff:127.0.0.1]:{port}/x", "http://here.example:{port}/x/blobs/{name}",
                                 "http://2130706433:{port}/x/blobs/{name}", "http://0177.1:{port}/x/blobs/{name}"])
def test_a_redirect_from_a_remote_server_to_loopback_is_refused(url, server, remote, puller, hosts):
    image = Image()
    hosts("127.0.0.1 here.example")
    server.add(image)
    redirect(remote, image, url.replace("{port}", server.host.split(":")[1]))
    fails(puller, remote.host, errno.EPERM, "refusing redirect to loopback address")
    assert not server.requests


@pytest.fixture
def proxy(monkeypatch):
    """A proxy on this machine that serves all hosts itself."""
    s = Server()
    monkeypatch.setenv("http_proxy", s.url)
    yield s
    s.close()


def test_a_redirect_to_loopback_is_refused_behind_a_local_proxy(proxy, server, puller):
    redirect(proxy, Image(), server.url + "/x/blobs/{name}")
    fails(puller, "registry.example", errno.EPERM, "refusing redirect to loopback address", plain_http=["registry.example"])
    assert not proxy.requests_for(server.host)


def test_redirects_are_followed_behind_a_local_proxy(proxy, puller):
    image = Image([member("f", data=os.urandom(50_000)) + END], packed=bytes)
    redirect(proxy, image, "http://store.example/x/blobs/{name}")
    blobs = proxy.before
    proxy.before = lambda h: "store.example" not in h.path and blobs(h)
    puller.pull("registry.example/app:latest", plain_http=["registry.example"], part=10_000)
    assert len(proxy.requests_for("http://store.example/")) == 7


@pytest.fixture
def hosts():
    """Adds a line to /etc/hosts, which is a copy in the sandbox."""
    with open("/etc/hosts", encoding="utf-8") as file:
        before = file.read()

    def add(line):
        with open("/etc/hosts", "a", encoding="utf-8") as f:
            f.write(line + "\n")
    yield add
    with open("/etc/hosts", "w", encoding="utf-8") as file:
        file.write(before)


@pytest.mark.parametrize("url, error", [("file:///etc/passwd", "unsupported scheme in URL"),
                                        ("ftp://127.0.0.1/x", "unsupported scheme in URL"),
                                        ("gopher://127.0.0.1/x", "unsupported scheme in URL"),
                                        ("http://", "invalid URL")])
def test_a_redirect_to_an_invalid_url_is_refused(url, error, server, puller):
    redirect(server, Image(), url)
    fails(puller, server.host, errno.EPERM, error)


def test_a_redirect_from_https_to_http_is_refused(server, puller, tmp_path):
    authority = make_authority(tmp_path / "ca")
    secure = Server(tls=tls_context(authority))
    certs = tmp_path / "certs.d" / secure.host
    certs.mkdir(parents=True)
    (certs / "ca.crt").write_bytes((authority / "ca.crt").read_bytes())
    redirect(secure, Image(), server.url + "/blobs/{name}")
    fails(puller, secure.host, errno.EPERM, "refusing redirect from https to http", certs_dir=str(tmp_path / "certs.d"))
    secure.close()
    assert not server.requests


def test_a_loop_of_redirects_fails(server, puller):
    server.before = lambda h: server.respond(h, 302, headers={"Location": "/v2/again"})
    fails(puller, server.host, errno.EPERM, "too many redirects: more than 5")
    assert len(server.requests) == 6


def test_a_loopback_token_server_of_a_remote_registry_is_refused(server, remote, puller):
    remote.before = lambda h: remote.respond(
        h, 401, headers={"WWW-Authenticate": 'Bearer realm="%s/token"' % server.url})
    fails(puller, remote.host, errno.EPERM, "refusing redirect to loopback address", username="me", password="word")
    assert not server.requests


# ---- the daemon ----------------------------------------------------------------------------------

@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"reference":"a b"}', b'{"reference":"app","idle_ms":0}'])
def test_hawser_fetch_rejects_an_invalid_job(data, puller):
    left, right = socket.socketpair()
    left.settimeout(WAIT)
    process = subprocess.Popen([os.environ.get("HAWSER_BUILD", "build") + "/bin/hawser-fetch"], stdin=right, stderr=subprocess.PIPE)
    right.close()
    left.sendall(struct.pack("<IB", len(data), JOB) + data)
    assert process.wait(WAIT) in (1, 2)
    process.stderr.close()
    left.close()


@pytest.mark.parametrize("how", ["the daemon closes the socket", "the supervisor is killed"])
def test_all_processes_end_when(how, server, puller):
    image, asked, gone = Image(), threading.Event(), threading.Event()
    server.add(image)

    def before(handler):
        asked.set()
        gone.wait(WAIT)
        return False
    server.before = before
    sock, process = puller.start(server.host + "/app:latest")
    assert asked.wait(WAIT)
    found = subprocess.run(["pgrep", "-P", str(process.pid)], check=True, stdout=subprocess.PIPE)
    (fetcher,) = found.stdout.split()
    if how == "the supervisor is killed":
        process.kill()
    else:
        sock.close()
    assert process.wait(WAIT) == (-signal.SIGKILL if how == "the supervisor is killed" else 0)
    end = time.monotonic() + WAIT
    while os.path.exists("/proc/%d" % int(fetcher)):
        assert time.monotonic() < end
        time.sleep(0.02)
    sock.close()
    gone.set()
