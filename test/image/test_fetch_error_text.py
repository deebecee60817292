# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_error_text.py - what the errors of hawser-fetch say, and what they keep secret

The client that reads an error may be anybody who may create a pod. A registry that redirects a request must not show
that client what only this node can read.
"""
import base64
import errno

import pytest

from fetching import OCI, Image, digest, to_json
from hostile import fails, far_server, other_machine, puller, remote  # noqa: F401, fixtures

SECRET = "Sesam42"
TOKEN = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"


@pytest.fixture
def internal():
    """A server that the registry cannot reach."""
    s = far_server("10.99.0.2")
    yield s
    s.close()


def error(message):
    return to_json({"errors": [{"code": "X", "message": message}]})


def test_the_message_of_a_registry_is_part_of_the_error(server, puller):
    server.before = lambda h: server.respond(h, 404, error("no such tag"))
    fails(puller, server.host, errno.ENODATA, "HTTP status 404 (no such tag)")


@pytest.mark.parametrize("what", ["manifests", "blobs"])
def test_the_message_of_another_server_is_not_part_of_the_error(what, remote, internal, puller):
    remote.add(Image())
    remote.before = lambda h: what in h.path and remote.respond(h, 307, headers={"Location": internal.url + "/x"})
    internal.before = lambda h: internal.respond(h, 403, error(SECRET))
    assert SECRET not in fails(puller, remote.host, errno.EACCES, "HTTP status 403")
    assert internal.requests


DIGEST = digest(b"x")
DOCUMENTS = {
    "text": (errno.EBADMSG, SECRET.encode()),
    "text in JSON": (errno.EBADMSG, b'{"a": %s}' % SECRET.encode()),
    "a media type": (errno.EOPNOTSUPP, to_json({**Image().document, "mediaType": SECRET})),
    "a digest": (errno.EBADMSG, to_json({**Image().document, "config": {"digest": SECRET, "size": 1}})),
    "a platform": (errno.ENODATA, to_json({"schemaVersion": 2, "manifests": [
        {"digest": DIGEST, "size": 1, "platform": {"os": "linux", "architecture": SECRET}}]})),
    "the media type of a layer": (errno.EOPNOTSUPP, to_json({**Image().document, "layers": [
        {"digest": DIGEST, "size": 1, "mediaType": SECRET}]})),
}


@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_document_of_another_server_is_not_part_of_the_error(what, remote, internal, puller):
    code, body = DOCUMENTS[what]
    remote.before = lambda h: remote.respond(h, 307, headers={"Location": internal.url + "/x"})
    internal.before = lambda h: internal.respond(h, 200, body, {"Content-Type": "text/" + SECRET})
    assert SECRET not in fails(puller, remote.host, code, "manifests/latest: invalid document, received from another server")
    assert internal.requests


def test_a_document_of_the_registry_is_quoted_in_the_error(server, puller):
    server.before = lambda h: server.respond(h, 200, DOCUMENTS["a media type"][1])
    fails(puller, server.host, errno.EOPNOTSUPP, 'unsupported media type "%s"' % SECRET)


def ask_for_token(server, realm):
    server.before = lambda h: "/v2/" in h.path and not h.headers.get("Authorization") and server.respond(
        h, 401, headers={"WWW-Authenticate": 'Bearer realm="%s/token?key=%s"' % (realm.url, SECRET)})


def test_the_message_of_another_token_server_is_not_part_of_the_error(remote, internal, puller):
    ask_for_token(remote, internal)
    internal.before = lambda h: internal.respond(h, 401, error(SECRET))
    text = fails(puller, remote.host, errno.EKEYREJECTED, "token server %s/token: HTTP status 401" % internal.url)
    assert SECRET not in text


@pytest.mark.parametrize("body", [b'{"token": %s}', b'{"token": "%s', b'{"token": "%s" x}', b'%s', b'{"token": ["%s"]}',
                                  b'{"token": "%s\\x"}', b'{"token": "%s\\n"}', b'{"token": "%s\n"}', b'{"%s": 1}'])
def test_a_malformed_token_is_not_part_of_the_error(body, server, puller):
    ask_for_token(server, server)
    missing = server.before
    server.before = lambda h: ("/token" in h.path and server.respond(h, 200, body % TOKEN.encode())) or missing(h)
    assert TOKEN[:8] not in fails(puller, server.host, errno.EBADMSG, "token server ")


def test_a_token_in_the_message_of_a_registry_is_not_part_of_the_error(server, puller):
    server.before = lambda h: server.respond(h, 403, error("token %s has expired: manifest %s, repository %s" % (
        TOKEN, DIGEST, "a/" * 30)))
    fails(puller, server.host, errno.EACCES, "HTTP status 403 (token [...] has expired: manifest %s, repository %s)" % (
        DIGEST, "a/" * 30))


PASSWORD = "Sesam 42!"
CREDENTIALS = {
    "the password": ({"username": "me", "password": PASSWORD}, PASSWORD),
    "username and password": ({"username": "me", "password": PASSWORD},
                              base64.b64encode(("me:" + PASSWORD).encode()).decode()),
    "an identity token": ({"identity_token": SECRET}, SECRET),
    "a registry token": ({"registry_token": SECRET}, SECRET),
    "a short password": ({"username": "me", "password": "4Ab/"}, "4Ab/"),
}
LONG = "x " * 146  # what follows is cut off after a few characters


def refuse(server, *texts):
    """Refuses manifests; tokens are given to everybody."""
    server.before = lambda h: server.respond(h, 200, b'{"token": "abc"}') if "/token" in h.path else (
        h.headers.get("Authorization") and server.respond(h, 403, error("".join(texts))) or server.respond(
            h, 401, headers={"WWW-Authenticate": 'Bearer realm="%s/token"' % server.url}))


@pytest.mark.parametrize("what", CREDENTIALS)
def test_the_credentials_in_the_message_of_a_registry_are_not_part_of_the_error(what, server, puller):
    credentials, secret = CREDENTIALS[what]
    refuse(server, "wrong: ", secret, " or <", secret, ">")
    assert secret not in fails(puller, server.host, errno.EACCES, "HTTP status 403 (wrong: [...] or <[...]>)", **credentials)
    refuse(server, LONG, secret)
    assert secret[:3] not in fails(puller, server.host, errno.EACCES, "HTTP status 403 (x x ", **credentials)


@pytest.mark.parametrize("what", CREDENTIALS)
def test_the_credentials_in_the_message_of_a_token_server_are_not_part_of_the_error(what, server, puller):
    credentials, secret = CREDENTIALS[what]
    server.before = lambda h: server.respond(h, 401, error("wrong: " + secret), {
        "WWW-Authenticate": 'Bearer realm="%s/token"' % server.url})
    assert secret not in fails(puller, server.host, errno.EKEYREJECTED, "HTTP status 401 (wrong: [...])", **credentials)


def test_a_short_token_in_the_message_of_a_registry_is_not_part_of_the_error(server, puller):
    ask_for_token(server, server)
    missing = server.before
    server.before = lambda h: ("/token" in h.path and server.respond(h, 200, b'{"token": "Zq42"}')) or missing(h) or (
        server.respond(h, 403, error("token Zq42 has expired")))
    fails(puller, server.host, errno.EACCES, "HTTP status 403 (token [...] has expired)")


def test_a_password_in_a_document_of_the_registry_is_not_part_of_the_error(server, puller):
    server.before = lambda h: server.respond(h, 200, DOCUMENTS["a media type"][1])
    fails(puller, server.host, errno.EOPNOTSUPP, 'unsupported media type "[...]"', username="me", password=SECRET)


def test_a_password_of_a_mirror_is_not_part_of_the_error(server, puller, tmp_path):
    path = tmp_path / "auth.json"
    path.write_bytes(to_json({"auths": {server.host: {"username": "me", "password": PASSWORD}}}))
    server.before = lambda h: server.respond(h, 403, error("wrong: " + PASSWORD))
    text = fails(puller, server.host, errno.EACCES, "HTTP status 403 (wrong: [...]); mirror: ", mirrors=[server.url],
                 auth_file=str(path))
    assert PASSWORD not in text


def test_three_characters_of_a_message_are_not_taken_for_a_password(server, puller):
    server.before = lambda h: server.respond(h, 404, error("no such tag"))
    fails(puller, server.host, errno.ENODATA, "HTTP status 404 (no such tag)", username="me", password="tag")
