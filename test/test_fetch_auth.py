# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_auth.py - hawser-fetch and registries that want to know who asks, or are asked by TLS

Also here: Debian's docker-registry, with images that skopeo pushed.
"""
import base64
import json
import os
import pathlib
import urllib.parse

import pytest

from dockerregistry import docker_registry, make_layout, need_programs, push
from fetching import Failed, Image, Puller, Server, basic, digest, make_authority, tls_context


@pytest.fixture
def server():
    s = Server()
    s.add(Image())
    yield s
    s.close()


@pytest.fixture
def tokens():
    """A token server: it gives the token "t1", then "t2" and so on to whom `accept` takes."""
    s = Server()
    s.count = 0
    s.accept = lambda authorization, form: True

    def before(handler):
        form = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
        s.forms = getattr(s, "forms", []) + [form]
        if not s.accept(handler.headers.get("Authorization"), form):
            return s.answer(handler, 401, b'{"message":"who is that?"}')
        s.count += 1
        return s.answer(handler, 200, json.dumps({"token": "t%d" % s.count}).encode())
    s.before = before
    yield s
    s.close()


@pytest.fixture
def puller(tmp_path, server):
    return Puller(tmp_path, plain_http=[server.host], retries=0)


def wants_basic(server, user, password):
    server.before = lambda h: h.headers.get("Authorization") != basic(user, password) and server.answer(
        h, 401, headers={"WWW-Authenticate": 'Basic realm="registry"'})


def wants_token(server, tokens, good=lambda token: True, scope=',scope="repository:app:pull"'):
    challenge = 'Bearer realm="%s/token",service="the registry"%s' % (tokens.url, scope)

    def before(handler):
        kind, _, token = handler.headers.get("Authorization", "").partition(" ")
        if kind == "Bearer" and good(token):
            return False
        return server.answer(handler, 401, headers={"WWW-Authenticate": challenge})
    server.before = before


# ---- Basic -------------------------------------------------------------------------------------

def test_name_and_password_are_sent_when_they_are_wanted(server, puller):
    wants_basic(server, "me", "my:word")
    puller.pull(server.host + "/app:latest", username="me", password="my:word")
    assert "Authorization" not in server.requests[0][2]
    assert server.requests[1][2]["Authorization"] == basic("me", "my:word")


def test_a_wrong_password_is_sent_once(server, puller):
    wants_basic(server, "me", "right")
    with pytest.raises(Failed) as failed:
        puller.pull(server.host + "/app:latest", username="me", password="wrong")
    assert failed.value.wire == 16 and "HTTP status 401" in str(failed.value) and server.host in str(failed.value)
    assert len(server.requests) == 2 and "wrong" not in str(failed.value)


def test_without_a_password_the_error_says_what_is_missing(server, puller):
    wants_basic(server, "me", "right")
    with pytest.raises(Failed, match="authentication required: HTTP status 401") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.wire == 16


AUTH_KEYS = ["{host}", "http://{host}", "https://{host}/v2/", "{host}/app", "https://{host}/v1/"]


@pytest.mark.parametrize("key", AUTH_KEYS)
def test_an_auth_file_with_the_key(key, server, puller, tmp_path):
    wants_basic(server, "me", "word")
    code = base64.b64encode(b"me:word").decode()
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"auths": {"other.example": {"auth": "eDp5"}, key.format(host=server.host): {"auth": code}}}))
    path.chmod(0o600)
    puller.pull(server.host + "/app:latest", auth_file=str(path))


def test_of_two_keys_in_an_auth_file_the_longer_counts(server, puller, tmp_path):
    wants_basic(server, "me", "word")
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"auths": {server.host + "/app": {"username": "me", "password": "word"},
                                          server.host: {"auth": "eDp5"}}}))
    puller.pull(server.host + "/app:latest", auth_file=str(path))


@pytest.mark.parametrize("text", ["{", '{"auths":{"HOST":{"auth":"***"}}}', '{"auths":{"HOST":{"auth":"eHk="}}}'])
def test_a_broken_auth_file_is_named(text, server, puller, tmp_path):
    path = tmp_path / "auth.json"
    path.write_text(text.replace("HOST", server.host))
    with pytest.raises(Failed, match="credentials for .* in " + str(path)):
        puller.pull(server.host + "/app:latest", auth_file=str(path))


def test_an_auth_file_that_is_not_there_has_nothing(server, puller, tmp_path):
    puller.pull(server.host + "/app:latest", auth_file=str(tmp_path / "missing"))


# ---- tokens ------------------------------------------------------------------------------------

def test_a_token_is_asked_for_once(server, tokens, puller):
    wants_token(server, tokens)
    puller.pull(server.host + "/app:latest")
    query = urllib.parse.parse_qs(tokens.requests[0][1].partition("?")[2])
    assert query == {"service": ["the registry"], "scope": ["repository:app:pull"]}
    assert len(tokens.requests) == 1 and "Authorization" not in tokens.requests[0][2]
    assert server.requests[1][2]["Authorization"] == "Bearer t1"


def test_the_token_server_gets_name_and_password_and_the_registry_does_not(server, tokens, puller):
    wants_token(server, tokens)
    tokens.accept = lambda authorization, form: authorization == basic("me", "word")
    puller.pull(server.host + "/app:latest", username="me", password="word")
    assert "account=me" in tokens.requests[0][1]
    assert not any("Basic" in r[2].get("Authorization", "") for r in server.requests)


def test_a_challenge_without_a_scope(server, tokens, puller):
    wants_token(server, tokens, scope="")
    puller.pull(server.host + "/app:latest")
    assert "scope=repository%3Aapp%3Apull" in tokens.requests[0][1]


def test_a_token_that_has_expired_is_renewed(server, tokens, puller):
    uses = {}

    def good(token):
        uses[token] = uses.get(token, 0) + 1
        return uses[token] <= 2
    wants_token(server, tokens, good)
    puller.pull(server.host + "/app:latest", parallel=1)
    assert tokens.count == 2


def test_an_identity_token_is_changed_for_another(server, tokens, puller):
    wants_token(server, tokens)
    tokens.accept = lambda authorization, form: urllib.parse.parse_qs(form) == {
        "grant_type": ["refresh_token"], "client_id": ["hawser"], "service": ["the registry"],
        "scope": ["repository:app:pull"], "refresh_token": ["a&b"]}
    puller.pull(server.host + "/app:latest", identity_token="a&b")


def sends_on(tokens, status, url):
    """The token server says to go elsewhere, with the form that it was sent."""
    def before(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        return tokens.answer(handler, status, headers={"Location": url})
    return before


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_an_identity_token_is_not_sent_on_to_another_server(status, server, tokens, puller):
    wants_token(server, tokens)
    thief = Server()
    thief.before = lambda h: thief.answer(h, 200, b'{"token":"t1"}')
    tokens.before = sends_on(tokens, status, thief.url + "/token")
    with pytest.raises(Failed, match="refusing redirect of credentials to another server: %s/token" % thief.url) as failed:
        puller.pull(server.host + "/app:latest", identity_token="secret")
    thief.close()
    assert failed.value.wire == 9 and not thief.requests


def test_an_identity_token_may_go_elsewhere_on_its_own_server(server, tokens, puller):
    wants_token(server, tokens)
    give, move = tokens.before, sends_on(tokens, 307, "/oauth")
    tokens.before = lambda h: give(h) if h.path == "/oauth" else move(h)
    puller.pull(server.host + "/app:latest", identity_token="secret")
    assert "refresh_token=secret" in tokens.forms[-1]


def test_a_registry_token_is_used_as_it_is(server, tokens, puller):
    wants_token(server, tokens, lambda token: token == "mine")
    puller.pull(server.host + "/app:latest", registry_token="mine")
    assert not tokens.requests


def test_registries_that_refuse_every_token_are_not_asked_for_ever(server, tokens, puller):
    wants_token(server, tokens, lambda token: False)
    with pytest.raises(Failed, match="HTTP status 401") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.wire == 16 and len(server.requests) == 2 and len(tokens.requests) == 1


def test_token_servers_that_refuse_are_named(server, tokens, puller):
    wants_token(server, tokens)
    tokens.accept = lambda authorization, form: False
    with pytest.raises(Failed, match=r"token server http://.*/token: HTTP status 401 \(who is that\?\)") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.wire == 16


@pytest.mark.parametrize("answer", [b"", b"no JSON", b"{}", b'{"token":""}', b'{"token":"a\\r\\nX: y"}', b'{"token":7}'])
def test_a_token_server_that_answers(answer, server, tokens, puller):
    wants_token(server, tokens)
    tokens.before = lambda h: tokens.answer(h, 200, answer)
    with pytest.raises(Failed, match="token server") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.wire == 15 and len(server.requests) == 1


@pytest.mark.parametrize("header, error", [
    ('Bearer realm="file:///etc/passwd"', "unsupported scheme in URL"),
    ('Bearer realm="nothing"', "nothing"),
    ('Bearer service="x"', "authentication required"),
    ('Negotiate', "authentication required"),
    ('Bearer realm="', "authentication required"),
    ('', "authentication required"),
])
def test_a_challenge_that_leads_nowhere(header, error, server, puller):
    server.before = lambda h: server.answer(h, 401, headers={"WWW-Authenticate": header})
    with pytest.raises(Failed, match=error):
        puller.pull(server.host + "/app:latest", username="me", password="word")
    assert not any("Authorization" in r[2] for r in server.requests)


def test_of_several_challenges_the_one_with_a_token_is_answered(server, tokens, puller):
    wants_token(server, tokens)
    before = server.before

    def both(handler):
        if handler.headers.get("Authorization"):
            return before(handler)
        return server.answer(handler, 401, headers={
            "WWW-Authenticate": 'Basic realm="x", Bearer realm="%s/token",service="s"' % tokens.url})
    server.before = both
    puller.pull(server.host + "/app:latest", username="me", password="word")
    assert tokens.requests and not any("Basic" in r[2].get("Authorization", "") for r in server.requests)


# ---- TLS ---------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def secure(authority):
    s = Server(tls=tls_context(authority))
    s.add(Image())
    yield s
    s.close()


def certs_for(tmp_path, host, authority, *files):
    folder = tmp_path / "certs.d" / host
    folder.mkdir(parents=True)
    for source, name in files:
        (folder / name).write_bytes((authority / source).read_bytes())
        (folder / name).chmod(0o600)
    return str(tmp_path / "certs.d")


def test_a_certificate_of_an_authority_in_the_hosts_folder(secure, authority, tmp_path):
    certs = certs_for(tmp_path, secure.host, authority, ("ca.crt", "ca.crt"))
    Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_a_folder_of_the_host_without_its_port(secure, authority, tmp_path):
    certs = certs_for(tmp_path, "127.0.0.1", authority, ("ca.crt", "ca.crt"))
    Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_a_certificate_of_nobody_we_know_is_refused_at_once(secure, tmp_path):
    with pytest.raises(Failed, match="from %s: .*certificate" % secure.host) as failed:
        Puller(tmp_path).pull(secure.host + "/app:latest")
    assert failed.value.wire == 14 and not secure.requests


def test_a_certificate_for_another_host_is_refused(tmp_path):
    other = make_authority(tmp_path / "other", name="127.0.0.9")
    server = Server(tls=tls_context(other))
    certs = certs_for(tmp_path, server.host, other, ("ca.crt", "ca.crt"))
    with pytest.raises(Failed, match="does not match|no alternative certificate subject name") as failed:
        Puller(tmp_path, certs_dir=certs).pull(server.host + "/app:latest")
    server.close()
    assert failed.value.wire == 14


def test_our_own_certificate_is_shown(authority, tmp_path):
    server = Server(tls=tls_context(authority, want_client=True))
    server.add(Image())
    certs = certs_for(tmp_path, server.host, authority, ("ca.crt", "ca.crt"), ("client.crt", "me.cert"), ("client.key", "me.key"))
    Puller(tmp_path, certs_dir=certs).pull(server.host + "/app:latest")
    server.close()


def test_a_certificate_without_its_key_is_named(secure, authority, tmp_path):
    certs = certs_for(tmp_path, secure.host, authority, ("client.crt", "me.cert"))
    with pytest.raises(Failed, match="certificates of %s: .*me.key" % secure.host):
        Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_what_is_wrong_with_certificates_of_others_is_no_matter(secure, authority, tmp_path):
    certs = certs_for(tmp_path, secure.host, authority, ("ca.crt", "ca.crt"))
    certs_for(tmp_path, "other.example", authority, ("client.crt", "me.cert"))
    for name in "000.example", "gone.example":
        (pathlib.Path(certs) / name).symlink_to("nowhere")
    Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_plain_http_is_not_spoken_unless_it_is_allowed(server, tmp_path):
    with pytest.raises(Failed) as failed:
        Puller(tmp_path, retries=0).pull(server.host + "/app:latest")
    assert failed.value.wire == 14 and not server.requests


def test_a_proxy_from_the_environment_is_used(server, puller, monkeypatch):
    proxy = Server()
    monkeypatch.setenv("http_proxy", proxy.url)
    proxy.add(Image())
    puller.pull("registry.example/app:latest", plain_http=["registry.example"])
    proxy.close()
    assert proxy.requests[0][1].startswith("http://registry.example/v2/app/manifests/latest")


# ---- Debian's registry -------------------------------------------------------------------------

@pytest.fixture
def registry(tmp_path):
    need_programs()
    with docker_registry(tmp_path) as host:
        yield host


@pytest.mark.parametrize("kind", ["oci", "v2s2"])
def test_an_image_that_skopeo_pushed_to_docker_registry(kind, registry, tmp_path):
    source = make_layout(tmp_path)
    push(source, "%s/busybox:one" % registry, "--format", kind)
    puller = Puller(tmp_path, plain_http=[registry])
    said = puller.pull(registry + "/busybox:one", part=300_000)
    assert puller.file(said, 0, "bin/busybox") == pathlib.Path("/bin/busybox").read_bytes()
    assert os.readlink(said["plan"][0]["root"] + "/bin/sh") == "busybox"
    assert said["resolved"]["digest"] == digest(said["manifest"])
    with pytest.raises(Failed, match=r"pull .*/busybox:two from .*: HTTP status 404 \(manifest unknown") as failed:
        puller.pull(registry + "/busybox:two")
    assert failed.value.wire == 5
