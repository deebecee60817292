# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_auth.py - hawser-fetch and registries with authentication
"""
import base64
import errno
import json
import urllib.parse

import pytest

from fetching import Failed, Image, Puller, Server, basic


@pytest.fixture(name="server")
def server_with_image(server):
    server.add(Image())
    return server


@pytest.fixture
def puller(tmp_path, server):
    return Puller(tmp_path, plain_http=[server.host], retries=0)


@pytest.fixture
def tokens():
    """A token server: gives the tokens "t1", "t2" and so on if `accept` returns True."""
    s = Server()
    s.count = 0
    s.accept = lambda authorization, form: True

    def before(handler):
        form = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
        s.forms = getattr(s, "forms", []) + [form]
        if not s.accept(handler.headers.get("Authorization"), form):
            return s.respond(handler, 401, b'{"message":"unknown user"}')
        s.count += 1
        return s.respond(handler, 200, json.dumps({"token": "t%d" % s.count}).encode())
    s.before = before
    yield s
    s.close()


def require_basic(server, user, password):
    server.before = lambda h: h.headers.get("Authorization") != basic(user, password) and server.respond(
        h, 401, headers={"WWW-Authenticate": 'Basic realm="registry"'})


def require_token(server, tokens, is_valid=lambda token: True, scope=',scope="repository:app:pull"'):
    challenge = 'Bearer realm="%s/token",service="the registry"%s' % (tokens.url, scope)

    def before(handler):
        kind, _, token = handler.headers.get("Authorization", "").partition(" ")
        if kind == "Bearer" and is_valid(token):
            return False
        return server.respond(handler, 401, headers={"WWW-Authenticate": challenge})
    server.before = before


# ---- Basic -------------------------------------------------------------------------------------

def test_username_and_password_are_sent_only_after_a_challenge(server, puller):
    require_basic(server, "me", "my:word")
    puller.pull(server.host + "/app:latest", username="me", password="my:word")
    assert "Authorization" not in server.requests[0][2]
    assert server.requests[1][2]["Authorization"] == basic("me", "my:word")


def test_a_wrong_password_is_sent_only_once(server, puller):
    require_basic(server, "me", "right")
    with pytest.raises(Failed) as failed:
        puller.pull(server.host + "/app:latest", username="me", password="wrong")
    assert failed.value.code == errno.EKEYREJECTED and "HTTP status 401" in str(failed.value) and server.host in str(failed.value)
    assert len(server.requests) == 2 and "wrong" not in str(failed.value)


def test_without_a_password_the_error_says_that_authentication_is_required(server, puller):
    require_basic(server, "me", "right")
    with pytest.raises(Failed, match="authentication required: HTTP status 401") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.code == errno.EKEYREJECTED


AUTH_KEYS = ["{host}", "http://{host}", "https://{host}/v2/", "{host}/app", "https://{host}/v1/"]


@pytest.mark.parametrize("key", AUTH_KEYS)
def test_every_form_of_key_in_an_auth_file_is_found(key, server, puller, tmp_path):
    require_basic(server, "me", "word")
    code = base64.b64encode(b"me:word").decode()
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"auths": {"other.example": {"auth": "eDp5"}, key.format(host=server.host): {"auth": code}}}))
    path.chmod(0o600)
    puller.pull(server.host + "/app:latest", auth_file=str(path))


def test_the_longer_of_two_matching_keys_in_an_auth_file_is_used(server, puller, tmp_path):
    require_basic(server, "me", "word")
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"auths": {server.host + "/app": {"username": "me", "password": "word"},
                                          server.host: {"auth": "eDp5"}}}))
    puller.pull(server.host + "/app:latest", auth_file=str(path))


@pytest.mark.parametrize("text", ["{", '{"auths":{"HOST":{"auth":"***"}}}', '{"auths":{"HOST":{"auth":"eHk="}}}'])
def test_the_error_names_a_malformed_auth_file(text, server, puller, tmp_path):
    path = tmp_path / "auth.json"
    path.write_text(text.replace("HOST", server.host))
    with pytest.raises(Failed, match="credentials for .* in " + str(path)) as failed:
        puller.pull(server.host + "/app:latest", auth_file=str(path))
    assert failed.value.code == errno.ENOKEY


def test_a_missing_auth_file_is_ignored(server, puller, tmp_path):
    puller.pull(server.host + "/app:latest", auth_file=str(tmp_path / "missing"))


# ---- tokens ------------------------------------------------------------------------------------

def test_one_token_is_used_for_a_whole_pull(server, tokens, puller):
    require_token(server, tokens)
    puller.pull(server.host + "/app:latest")
    query = urllib.parse.parse_qs(tokens.requests[0][1].partition("?")[2])
    assert query == {"service": ["the registry"], "scope": ["repository:app:pull"]}
    assert len(tokens.requests) == 1 and "Authorization" not in tokens.requests[0][2]
    assert server.requests[1][2]["Authorization"] == "Bearer t1"


def test_username_and_password_are_sent_only_to_the_token_server(server, tokens, puller):
    require_token(server, tokens)
    tokens.accept = lambda authorization, form: authorization == basic("me", "word")
    puller.pull(server.host + "/app:latest", username="me", password="word")
    assert "account=me" in tokens.requests[0][1]
    assert not any("Basic" in r[2].get("Authorization", "") for r in server.requests)


def test_a_challenge_without_a_scope_gets_a_default_scope(server, tokens, puller):
    require_token(server, tokens, scope="")
    puller.pull(server.host + "/app:latest")
    assert "scope=repository%3Aapp%3Apull" in tokens.requests[0][1]


def test_an_expired_token_is_renewed(server, tokens, puller):
    uses = {}

    def is_valid(token):
        uses[token] = uses.get(token, 0) + 1
        return uses[token] <= 2
    require_token(server, tokens, is_valid)
    puller.pull(server.host + "/app:latest", parallel=1)
    assert tokens.count == 2


def test_an_identity_token_is_exchanged_for_an_access_token(server, tokens, puller):
    require_token(server, tokens)
    tokens.accept = lambda authorization, form: urllib.parse.parse_qs(form) == {
        "grant_type": ["refresh_token"], "client_id": ["hawser"], "service": ["the registry"],
        "scope": ["repository:app:pull"], "refresh_token": ["a&b"]}
    puller.pull(server.host + "/app:latest", identity_token="a&b")


def redirect_form(tokens, status, url):
    """The token server redirects the POST request."""
    def before(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        return tokens.respond(handler, status, headers={"Location": url})
    return before


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_an_identity_token_is_not_redirected_to_another_server(status, server, tokens, puller):
    require_token(server, tokens)
    thief = Server()
    thief.before = lambda h: thief.respond(h, 200, b'{"token":"t1"}')
    tokens.before = redirect_form(tokens, status, thief.url + "/token")
    with pytest.raises(Failed, match="refusing redirect of credentials to another server: %s/token" % thief.url) as failed:
        puller.pull(server.host + "/app:latest", identity_token="secret")
    thief.close()
    assert failed.value.code == errno.EPERM and not thief.requests


def test_an_identity_token_follows_a_redirect_to_the_same_server(server, tokens, puller):
    require_token(server, tokens)
    give, move = tokens.before, redirect_form(tokens, 307, "/oauth")
    tokens.before = lambda h: give(h) if h.path == "/oauth" else move(h)
    puller.pull(server.host + "/app:latest", identity_token="secret")
    assert "refresh_token=secret" in tokens.forms[-1]


def test_a_registry_token_is_used_unchanged(server, tokens, puller):
    require_token(server, tokens, lambda token: token == "mine")
    puller.pull(server.host + "/app:latest", registry_token="mine")
    assert not tokens.requests


def test_a_registry_that_refuses_every_token_is_not_retried_forever(server, tokens, puller):
    require_token(server, tokens, lambda token: False)
    with pytest.raises(Failed, match="HTTP status 401") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.code == errno.EKEYREJECTED and len(server.requests) == 2 and len(tokens.requests) == 1


def test_the_error_names_a_token_server_that_refuses_the_request(server, tokens, puller):
    require_token(server, tokens)
    tokens.accept = lambda authorization, form: False
    with pytest.raises(Failed, match=r"token server http://.*/token: HTTP status 401$") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.code == errno.EKEYREJECTED


@pytest.mark.parametrize("answer", [b"", b"no JSON", b"{}", b'{"token":""}', b'{"token":"a\\r\\nX: y"}', b'{"token":7}'])
def test_an_invalid_response_of_a_token_server_is_rejected(answer, server, tokens, puller):
    require_token(server, tokens)
    tokens.before = lambda h: tokens.respond(h, 200, answer)
    with pytest.raises(Failed, match="token server") as failed:
        puller.pull(server.host + "/app:latest")
    assert failed.value.code == errno.EBADMSG and len(server.requests) == 1


@pytest.mark.parametrize("header, error", [
    ('Bearer realm="file:///etc/passwd"', "unsupported scheme in URL"),
    ('Bearer realm="nothing"', "nothing"),
    ('Bearer service="x"', "authentication required"),
    ('Negotiate', "authentication required"),
    ('Bearer realm="', "authentication required"),
    ('', "authentication required"),
])
def test_no_credentials_are_sent_for_an_unsupported_challenge(header, error, server, puller):
    server.before = lambda h: server.respond(h, 401, headers={"WWW-Authenticate": header})
    with pytest.raises(Failed, match=error):
        puller.pull(server.host + "/app:latest", username="me", password="word")
    assert not any("Authorization" in r[2] for r in server.requests)


def test_bearer_is_preferred_if_a_server_also_offers_basic(server, tokens, puller):
    require_token(server, tokens)
    before = server.before

    def both(handler):
        if handler.headers.get("Authorization"):
            return before(handler)
        return server.respond(handler, 401, headers={
            "WWW-Authenticate": 'Basic realm="x", Bearer realm="%s/token",service="s"' % tokens.url})
    server.before = both
    puller.pull(server.host + "/app:latest", username="me", password="word")
    assert tokens.requests and not any("Basic" in r[2].get("Authorization", "") for r in server.requests)
