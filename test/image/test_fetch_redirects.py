# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_redirects.py - hawser-fetch and redirects to other hosts
"""
import errno
import os

import pytest

import hostile
from fetching import Image, Server, digest, make_authority, tls_context
from hostile import fails, far_server, other_machine, puller, remote  # noqa: F401, fixtures
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


@pytest.fixture
def servers(server):
    """Servers that a remote server must not lead to, and one that it may lead to."""
    made = {"loopback": server, "node": Server(address=hostile.NODE), "node2": Server(address=hostile.NODE_SECONDARY),
            "node6": Server(address=hostile.NODE6), "link": far_server(hostile.LINK_LOCAL),
            "link6": far_server("::"), "remote": far_server(hostile.REMOTE)}
    yield made
    for s in made.values():
        s.close()


HERE, MINE, LINK = "loopback address", "address of this machine", "link-local address"
REFUSED = {"http://127.0.0.1:{loopback}": HERE, "http://127.1.2.3:{loopback}": HERE, "http://localhost:{loopback}": HERE,
           "http://[::1]:{loopback}": HERE, "http://0.0.0.0:{loopback}": HERE, "http://[::]:{loopback}": HERE,
           "http://[::ffff:127.0.0.1]:{loopback}": HERE, "http://[::ffff:7f00:1]:{loopback}": HERE,
           "http://[::127.0.0.1]:{loopback}": HERE, "http://here.example:{loopback}": HERE,
           "http://2130706433:{loopback}": HERE, "http://0177.1:{loopback}": HERE, "http://0x7f.1:{loopback}": HERE,
           "http://10.99.0.1:{node}": MINE, "http://10.99.0.3:{node2}": MINE, "http://mine.example:{node}": MINE,
           "http://[::ffff:10.99.0.1]:{node}": MINE, "http://[fd99::1]:{node6}": MINE, "http://mine6.example:{node6}": MINE,
           "http://[2002:a63:1::1]:{node}": MINE, "http://169.254.169.254:{link}": LINK,
           "http://link.example:{link}": LINK, "http://[::ffff:169.254.169.254]:{link}": LINK,
           "http://2852039166:{link}": LINK, "http://[fe80::99%25near]:{link6}": LINK,
           "http://[fd00:ec2::254]:{link6}": LINK, "http://link6.example:{link6}": LINK,
           "http://[64:ff9b::a9fe:a9fe]:{link6}": LINK, "http://nat64.example:{link6}": LINK}
NAMES = """
127.0.0.1 here.example
10.99.0.1 mine.example
fd99::1 mine6.example
169.254.169.254 link.example
fd00:ec2::254 link6.example
64:ff9b::a9fe:a9fe nat64.example"""


def with_ports(url, servers):
    for name, server in servers.items():
        url = url.replace("{%s}" % name, str(server.port))
    return url


@pytest.mark.parametrize("url", REFUSED)
def test_a_redirect_from_a_remote_server_to_a_near_address_is_refused(url, remote, servers, puller, hosts):
    image = Image()
    hosts(NAMES)
    for server in servers.values():
        server.add(image)
    redirect(remote, image, with_ports(url, servers) + "/x/blobs/{name}?sign=secret")
    text = fails(puller, remote.host, errno.EPERM, "refusing redirect to %s: http://" % REFUSED[url])
    assert "secret" not in text and not any(server.connections for server in servers.values())


@pytest.mark.parametrize("url", REFUSED)
def test_a_near_token_server_of_a_remote_registry_is_refused(url, remote, servers, puller, hosts):
    hosts(NAMES)
    remote.before = lambda h: remote.respond(h, 401, headers={
        "WWW-Authenticate": 'Bearer realm="%s/token"' % with_ports(url, servers)})
    fails(puller, remote.host, errno.EPERM, "refusing redirect to %s: " % REFUSED[url], username="me", password="word")
    assert not any(server.connections for server in servers.values())


@pytest.mark.parametrize("name, kind", [("10.99.0.1", "node"), ("10.99.0.3", "node2"), ("mine.example", "node"),
                                        ("169.254.169.254", "link"), ("link.example", "link"), ("localhost", "loopback")])
def test_a_registry_at_a_near_address_may_redirect_to_its_own_kind_of_address(name, kind, servers, puller, hosts):
    hosts(NAMES)
    registry = servers[kind]
    host = f"{name}:{registry.port}"
    image = Image()
    registry.add(image)
    redirect(registry, image, "http://" + host + "/again/blobs/{name}")
    blobs = registry.before
    registry.before = lambda h: "again" not in h.path and blobs(h)
    puller.pull(host + "/app:latest", plain_http=[host])
    assert len(registry.requests_for("/again/")) == 3


@pytest.mark.parametrize("kind", ["node", "node6", "link", "remote"])
def test_a_registry_on_loopback_may_redirect_to_any_address(kind, server, servers, puller):
    image = Image()
    redirect(server, image, servers[kind].url + "/x/blobs/{name}")
    servers[kind].add(image)
    puller.pull(server.host + "/app:latest")
    assert len(servers[kind].requests) == 3


@pytest.mark.parametrize("kind, error", [("loopback", HERE), ("link", LINK)])
def test_a_registry_at_an_address_of_the_node_may_not_redirect_to_another_near_address(kind, error, servers, puller):
    # it may be a port that is forwarded to another machine
    redirect(servers["node"], Image(), servers[kind].url + "/x/blobs/{name}")
    host = servers["node"].host
    fails(puller, host, errno.EPERM, "refusing redirect to " + error, plain_http=[host])
    assert not servers[kind].requests


def test_a_redirect_by_way_of_a_remote_server_is_refused_too(server, remote, puller):
    image = Image()
    redirect(server, image, remote.url + "/x/blobs/{name}")
    redirect(remote, image, server.url + "/y/blobs/{name}")
    fails(puller, server.host, errno.EPERM, "refusing redirect to loopback address")
    assert not server.requests_for("/y/")


@pytest.mark.parametrize("name, kind", [("here.example", "loopback"), ("mine.example", "node")])
def test_an_open_connection_to_a_near_address_is_not_used_for_a_redirect(name, kind, servers, remote, puller, hosts):
    """A mirror at this address has been asked first, and its connection is still open."""
    hosts(NAMES)
    mirror = "http://%s:%d" % (name, servers[kind].port)
    remote.before = lambda h: remote.respond(h, 307, headers={"Location": mirror + "/secret/manifests/1"})
    fails(puller, remote.host, errno.EPERM, "refusing redirect to ", mirrors=[mirror])
    assert len(servers[kind].requests) == 1 and not servers[kind].requests_for("secret")


@pytest.fixture(params=["127.0.0.1", hostile.NODE, hostile.LINK_LOCAL])
def proxy(request, monkeypatch):
    """A proxy at a near address that serves all hosts itself."""
    s = (far_server if request.param == hostile.LINK_LOCAL else Server)(address=request.param)
    monkeypatch.setenv("HTTP_PROXY", s.url)
    yield s
    s.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost", "http://10.99.0.1:1", "http://[fd99::1]:1",
                                 "http://169.254.169.254:1"])
def test_a_redirect_to_a_near_address_is_refused_behind_a_proxy(url, proxy, puller):
    redirect(proxy, Image(), url + "/x/blobs/{name}")
    fails(puller, "registry.example", errno.EPERM, "refusing redirect to ", plain_http=["registry.example"])
    assert not proxy.requests_for("/x/")


def test_a_near_token_server_is_refused_behind_a_proxy(proxy, puller):
    proxy.before = lambda h: proxy.respond(h, 401, headers={
        "WWW-Authenticate": 'Bearer realm="http://169.254.169.254:1/token"'})
    fails(puller, "registry.example", errno.EPERM, "refusing redirect to link-local address",
          plain_http=["registry.example"])
    assert not proxy.requests_for("token")


def test_redirects_are_followed_behind_a_proxy(proxy, puller):
    image = Image([member("f", data=os.urandom(50_000)) + END], packed=bytes)
    redirect(proxy, image, "http://store.example/x/blobs/{name}")
    blobs = proxy.before
    proxy.before = lambda h: "store.example" not in h.path and blobs(h)
    puller.pull("registry.example/app:latest", plain_http=["registry.example"], part=10_000)
    assert len(proxy.requests_for("http://store.example/")) == 7


def test_a_redirect_to_a_server_behind_a_proxy_is_followed(proxy, remote, puller, monkeypatch):
    """The registry itself is not asked through the proxy."""
    image = Image()
    monkeypatch.setenv("NO_PROXY", "other.example, " + hostile.REMOTE)
    redirect(remote, image, "http://store.example/x/blobs/{name}")
    proxy.add(image)
    puller.pull(remote.host + "/app:latest")
    assert len(proxy.requests_for("http://store.example/")) == len(proxy.requests) == 3


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


@pytest.fixture
def secure(tmp_path):
    """A server with TLS, and what a job needs to trust it."""
    authority = make_authority(tmp_path / "ca")
    s = Server(tls=tls_context(authority))
    certs = tmp_path / "certs.d" / s.host
    certs.mkdir(parents=True)
    (certs / "ca.crt").write_bytes((authority / "ca.crt").read_bytes())
    yield s, {"certs_dir": str(tmp_path / "certs.d")}
    s.close()


def test_a_redirect_from_https_to_http_is_refused(server, puller, secure):
    registry, trust = secure
    redirect(registry, Image(), server.url + "/blobs/{name}")
    fails(puller, registry.host, errno.EPERM, "refusing redirect from https to http", **trust)
    assert not server.connections


def test_a_token_server_without_tls_is_refused_for_a_registry_with_tls(server, puller, secure):
    registry, trust = secure
    registry.before = lambda h: registry.respond(h, 401, headers={
        "WWW-Authenticate": 'Bearer realm="%s/token"' % server.url})
    fails(puller, registry.host, errno.EPERM, "refusing redirect from https to http", username="me", password="word", **trust)
    assert not server.connections


def test_a_loop_of_redirects_fails(server, puller):
    server.before = lambda h: server.respond(h, 302, headers={"Location": "/v2/again"})
    fails(puller, server.host, errno.EPERM, "too many redirects: more than 5")
    assert len(server.requests) == 6
