# SPDX-License-Identifier: Apache-2.0
"""
test_registry.py - hawser-cri and a docker-registry that requires authentication

What:  username and password over TLS with a private certificate authority; and tokens of a token server in
       Python, signed as docker-registry requires.
"""
import base64
import crypt
import json
import subprocess
import time
import urllib.parse

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from dockerregistry import docker_registry, make_layout, need_programs, push
from fetching import Server, basic, make_authority
from hawsercli import hawser

USER, PASSWORD = "ann", "of the registry"
CREDS = "%s:%s" % (USER, PASSWORD)


@pytest.fixture
def layout(tmp_path):
    need_programs()
    return make_layout(tmp_path)


@pytest.fixture
def start(tmp_path):
    """Starts hawser-cri with the given flags; returns a function that runs the command hawser with it."""
    daemons = []

    def start_daemon(*flags):
        (tmp_path / "daemon").mkdir()
        daemons.append(Daemon(tmp_path / "daemon", "--disk-reserve", "0", *flags).start())
        return lambda *words: hawser("--runtime", "unix:" + daemons[0].socket, *words)
    yield start_daemon
    for d in daemons:
        assert d.stop() == 0, d.log()


def check_pulls(run, name):
    """A pull succeeds with the correct password, and fails with a wrong password and without one."""
    status, _, errors = run("pull", name)
    assert status != 0 and name in errors and "401" in errors, errors
    status, _, errors = run("pull", "--creds", USER + ":wrong", name)
    assert status != 0 and "401" in errors and "wrong" not in errors, errors
    assert run("images", "--names")[1] == ""
    status, text, errors = run("pull", "--creds", CREDS, name)
    assert status == 0, errors
    assert text.startswith(name.rpartition(":")[0] + "@sha256:")
    assert run("images", "--names")[1] == name + "\n"
    # a pull without credentials fails even if the image is already in the store
    assert run("pull", name)[0] != 0


def test_a_pull_over_tls_requires_the_certificate_authority_and_the_password(layout, start, tmp_path):
    authority = make_authority(tmp_path / "authority")
    (tmp_path / "htpasswd").write_text("%s:%s\n" % (USER, crypt.crypt(
        PASSWORD, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=1 << 4))))
    with docker_registry(tmp_path, {"htpasswd": {"realm": "test", "path": str(tmp_path / "htpasswd")}},
                         {"certificate": str(authority / "server.crt"),
                          "key": str(authority / "server.key")}) as host:
        push(layout, host + "/busybox:one", "--dest-creds", CREDS)
        (tmp_path / "certs.d" / host).mkdir(parents=True)
        run = start("--certs-dir", tmp_path / "certs.d")
        status, _, errors = run("pull", "--creds", CREDS, host + "/busybox:one")
        assert status != 0 and "certificate" in errors, errors
        (tmp_path / "certs.d" / host / "ca.crt").write_bytes((authority / "ca.crt").read_bytes())
        check_pulls(run, host + "/busybox:one")


# ---- tokens --------------------------------------------------------------------------------------

def text64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_token(authority, scopes):
    """A JWT that grants the scopes (TYPE:NAME:ACTION,...)."""
    der = subprocess.run(["openssl", "x509", "-in", authority / "server.crt", "-outform", "DER"], check=True,
                         capture_output=True).stdout
    parts = [scope.split(":") for scope in scopes]
    now = int(time.time())
    head = {"alg": "RS256", "typ": "JWT", "x5c": [base64.b64encode(der).decode()]}
    claims = {"iss": "test", "sub": USER, "aud": "registry", "nbf": now - 60, "exp": now + 300, "access": [
        {"type": kind, "name": name, "actions": actions.split(",")} for kind, name, actions in parts]}
    signed = ".".join(text64(json.dumps(part).encode()) for part in (head, claims))
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", authority / "server.key"],
                               input=signed.encode(), check=True, capture_output=True).stdout
    return signed + "." + text64(signature)


@pytest.fixture
def tokens(tmp_path):
    s = Server()
    s.authority = make_authority(tmp_path / "authority")

    def before(handler):
        if handler.headers.get("Authorization") != basic(USER, PASSWORD):
            return s.respond(handler, 401, b'{"message":"unknown user"}')
        scopes = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query).get("scope", [])
        return s.respond(handler, 200, json.dumps({"token": make_token(s.authority, scopes)}).encode())
    s.before = before
    yield s
    s.close()


def test_a_pull_with_tokens_requires_the_password(layout, tokens, start, tmp_path):
    with docker_registry(tmp_path, {"token": {
            "realm": tokens.url + "/token", "service": "registry", "issuer": "test",
            "rootcertbundle": str(tokens.authority / "ca.crt")}}) as host:
        push(layout, host + "/busybox:one", "--dest-creds", CREDS)
        tokens.requests.clear()
        check_pulls(start("--plain-http", host), host + "/busybox:one")
        asked = {urllib.parse.unquote(path.partition("?")[2]) for _, path, _ in tokens.requests}
        query = "service=registry&scope=repository:busybox:pull"
        assert asked == {query, query + "&account=" + USER}
