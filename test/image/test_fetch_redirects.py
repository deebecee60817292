# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_redirects.py - hawser-fetch and redirects to other hosts
"""
import errno
import os

import pytest

from fetching import Image, Server, digest, make_authority, tls_context
from hostile import fails, puller, remote, remote_address  # noqa: F401, fixtures
from layers import END, member


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
