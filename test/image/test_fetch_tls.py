# SPDX-License-Identifier: Apache-2.0
"""
test_fetch_tls.py - hawser-fetch and registries with TLS; and Debian's docker-registry, with images that
                    skopeo pushed
"""
import errno
import os
import pathlib

import pytest

from dockerregistry import make_layout, push
from fetching import Failed, Image, Puller, Server, digest, make_authority, tls_context


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
    directory = tmp_path / "certs.d" / host
    directory.mkdir(parents=True)
    for source, name in files:
        (directory / name).write_bytes((authority / source).read_bytes())
        (directory / name).chmod(0o600)
    return str(tmp_path / "certs.d")


def test_a_certificate_authority_in_the_directory_of_the_registry_is_trusted(secure, authority, tmp_path):
    certs = certs_for(tmp_path, secure.host, authority, ("ca.crt", "ca.crt"))
    Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_the_name_of_the_certificate_directory_may_omit_the_port_of_the_registry(secure, authority, tmp_path):
    certs = certs_for(tmp_path, "127.0.0.1", authority, ("ca.crt", "ca.crt"))
    Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_a_certificate_of_an_unknown_authority_is_refused_at_once(secure, tmp_path):
    with pytest.raises(Failed, match="from %s: .*certificate" % secure.host) as failed:
        Puller(tmp_path).pull(secure.host + "/app:latest")
    assert failed.value.code == errno.EPROTO and not secure.requests


def test_a_certificate_for_another_host_is_refused(tmp_path):
    other = make_authority(tmp_path / "other", name="127.0.0.9")
    server = Server(tls=tls_context(other))
    certs = certs_for(tmp_path, server.host, other, ("ca.crt", "ca.crt"))
    with pytest.raises(Failed, match="does not match|no alternative certificate subject name") as failed:
        Puller(tmp_path, certs_dir=certs).pull(server.host + "/app:latest")
    server.close()
    assert failed.value.code == errno.EPROTO


def test_a_client_certificate_is_sent(authority, tmp_path):
    server = Server(tls=tls_context(authority, want_client=True))
    server.add(Image())
    certs = certs_for(tmp_path, server.host, authority, ("ca.crt", "ca.crt"), ("client.crt", "me.cert"), ("client.key", "me.key"))
    Puller(tmp_path, certs_dir=certs).pull(server.host + "/app:latest")
    server.close()


def test_the_error_names_a_client_certificate_without_its_key(secure, authority, tmp_path):
    certs = certs_for(tmp_path, secure.host, authority, ("client.crt", "me.cert"))
    with pytest.raises(Failed, match="certificates of %s: .*me.key" % secure.host) as failed:
        Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")
    assert failed.value.code == errno.ENOKEY


def test_invalid_certificates_of_other_hosts_are_ignored(secure, authority, tmp_path):
    certs = certs_for(tmp_path, secure.host, authority, ("ca.crt", "ca.crt"))
    certs_for(tmp_path, "other.example", authority, ("client.crt", "me.cert"))
    for name in "000.example", "dangling.example":
        (pathlib.Path(certs) / name).symlink_to("nowhere")
    Puller(tmp_path, certs_dir=certs).pull(secure.host + "/app:latest")


def test_plain_http_is_not_used_unless_it_is_allowed(server, tmp_path):
    with pytest.raises(Failed) as failed:
        Puller(tmp_path, retries=0).pull(server.host + "/app:latest")
    assert failed.value.code == errno.EPROTO and not server.requests


def test_a_proxy_from_the_environment_is_used(tmp_path, monkeypatch):
    proxy = Server()
    monkeypatch.setenv("http_proxy", proxy.url)
    proxy.add(Image())
    Puller(tmp_path, plain_http=["registry.example"]).pull("registry.example/app:latest")
    proxy.close()
    assert proxy.requests[0][1].startswith("http://registry.example/v2/app/manifests/latest")


# ---- Debian's registry -------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["oci", "v2s2"])
def test_an_image_pushed_by_skopeo_to_docker_registry_is_pulled(kind, registry, tmp_path):
    source = make_layout(tmp_path)
    push(source, "%s/busybox:one" % registry, "--format", kind)
    puller = Puller(tmp_path, plain_http=[registry])
    result = puller.pull(registry + "/busybox:one", part=300_000)
    assert puller.file(result, 0, "bin/busybox") == pathlib.Path("/bin/busybox").read_bytes()
    assert os.readlink(result["plan"][0]["root"] + "/bin/sh") == "busybox"
    assert result["resolved"]["digest"] == digest(result["manifest"])
    with pytest.raises(Failed, match=r"pull .*/busybox:two from .*: HTTP status 404 \(manifest unknown") as failed:
        puller.pull(registry + "/busybox:two")
    assert failed.value.code == errno.ENODATA
