# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_hostile.py - hawser-fetch and broken or hostile registries

Each case fails with its own error, which names the image and the host, in bounded time and memory.
"""
import errno
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading

import pytest

import fetching
from fetching import JOB, WAIT, Failed, Image, digest
from hostile import fails, other_machine, puller, remote  # noqa: F401, fixtures
from layers import END, directory, hardlink, member, pax, symlink
from waiting import wait_until


# ---- responses of a server ---------------------------------------------------------------------

STATUSES = {400: errno.EINVAL, 401: errno.EKEYREJECTED, 403: errno.EACCES, 404: errno.ENODATA, 405: errno.EIO, 408: errno.ECOMM,
            410: errno.ENODATA, 429: errno.EUSERS, 451: errno.EACCES, 500: errno.ECOMM, 503: errno.ECOMM, 304: errno.EIO,
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
    fails(puller, server.host, errno.EUSERS, "HTTP status 429", retries=4)
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


# ---- the daemon --------------------------------------------------------------------------------

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
    wait_until(lambda: not os.path.exists("/proc/%d" % int(fetcher)))
    sock.close()
    gone.set()
