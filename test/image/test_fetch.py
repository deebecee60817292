# SPDX-License-Identifier: Apache-2.0
"""
test_fetch.py - hawser-fetch pulls images from a registry in Python

Hostile registries are in test_fetch_hostile.py.
"""
import gzip
import os
import pathlib
import random
import stat
import subprocess

import pytest

from fetching import ARCHITECTURE, OCI, Failed, Image, Puller, Server, digest, index_of
from layers import END, directory, member


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


@pytest.fixture
def puller(tmp_path, server):
    return Puller(tmp_path, plain_http=[server.host])


def test_an_image_of_two_layers_is_fetched_and_unpacked(server, puller):
    image = Image()
    server.add(image)
    result = puller.pull(server.host + "/app:latest")
    assert result["manifest"] == image.manifest and result["config"] == image.config
    assert result["resolved"] == {"digest": digest(image.manifest), "host": server.host}
    assert puller.file(result, 0, "etc/name") == b"one" and puller.file(result, 1, "etc/more") == b"two"
    assert [result["layers"][i]["diff_id"] for i in (0, 1)] == image.diff_ids


def test_an_image_without_layers_is_pulled(server, puller):
    image = Image(archives=[])
    server.add(image)
    assert puller.pull(server.host + "/app:latest")["layers"] == {}


PACKED = {"gzip": (gzip.compress, "layer.v1.tar+gzip"),
          "zstd": (zstd, "layer.v1.tar+zstd"),
          "plain": (bytes, "layer.v1.tar"),
          "two gzip members": (lambda a: gzip.compress(a[:700]) + gzip.compress(a[700:]), "layer.v1.tar+gzip"),
          "two zstd frames": (lambda a: zstd(a[:700]) + zstd(a[700:]), "layer.v1.tar+zstd"),
          "zstd after a skippable frame": (lambda a: b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + zstd(a), "layer.v1.tar+zstd"),
          "gzip with the media type of zstd": (gzip.compress, "layer.v1.tar+zstd")}


@pytest.mark.parametrize("how", PACKED)
def test_a_layer_in_any_supported_compression_is_unpacked(how, server, puller):
    packed, media = PACKED[how]
    image = Image([member("f", data=bytes(range(256)) * 64) + END], packed=packed, media=media)
    server.add(image)
    result = puller.pull(server.host + "/app:latest")
    assert puller.file(result, 0, "f") == bytes(range(256)) * 64


def test_the_manifest_for_the_platform_is_selected_from_an_index(server, puller):
    image, other = Image(), Image(architecture="s390x")
    for i in image, other:
        server.add(i)
    index = index_of((other, {"os": "linux", "architecture": "s390x"}),
                     (image, {"os": "linux", "architecture": ARCHITECTURE}))
    server.manifests["latest"] = (OCI + "index.v1+json", index)
    result = puller.pull(server.host + "/app:latest")
    assert result["resolved"]["digest"] == digest(index) and result["manifest"] == image.manifest


def test_an_image_is_pulled_by_digest(server, puller):
    image = Image()
    server.add(image)
    result = puller.pull("%s/app@%s" % (server.host, digest(image.manifest)))
    assert result["resolved"]["digest"] == digest(image.manifest)


def test_directories_inherit_attributes_from_an_existing_layer_that_is_not_fetched(server, puller, tmp_path):
    lower = directory("d", mode=0o700, uid=7) + END
    image = Image([lower, member("d/f", data=b"x") + END])
    server.add(image)
    root = tmp_path / "lower"
    (root / "d").mkdir(parents=True)
    os.chmod(root / "d", 0o710)
    result = puller.pull(server.host + "/app:latest", have={image.diff_ids[0]: str(root)})
    assert list(result["layers"]) == [1] and not server.requests_for(digest(image.packed[0]))
    assert stat.S_IMODE(os.stat(result["plan"][1]["root"] + "/d").st_mode) == 0o710


def test_directories_inherit_attributes_from_layers_of_the_same_pull(server, puller):
    image = Image([directory("d", mode=0o700, uid=7) + END, member("d/f", data=b"x") + END])
    server.add(image)
    result = puller.pull(server.host + "/app:latest")
    st = os.stat(result["plan"][1]["root"] + "/d")
    assert (stat.S_IMODE(st.st_mode), st.st_uid) == (0o700, 7)


@pytest.mark.parametrize("name", [b"caf\xe9", "caf\u00e9".encode(), b"100%41", b'"\\\n'])
def test_directories_with_any_bytes_in_their_names_inherit_attributes(name, server, puller):
    server.add(Image([directory(name, mode=0o710, uid=7) + END, member(name + b"/file", data=b"x") + END]))
    result = puller.pull(server.host + "/app:latest")
    above = os.stat(result["plan"][1]["root"].encode() + b"/" + name)
    assert (above.st_uid, stat.S_IMODE(above.st_mode)) == (7, 0o710)


def test_implied_directories_are_not_sent_to_the_daemon(server, puller):
    server.add(Image([member("a/file") + END, member("b/file") + END]))
    layers = puller.pull(server.host + "/app:latest")["layers"]
    assert [layers[i]["inodes"] for i in range(2)] == [2, 2] and not layers[0]["implied"] and not layers[1]["implied"]


def test_thirty_layers_are_reported_in_order(server, puller):
    image = Image([member("f%d" % i, data=b"x" * i) + END for i in range(30)])
    server.add(image)
    result = puller.pull(server.host + "/app:latest")
    assert list(result["layers"]) == list(range(30))


def test_the_fetcher_has_no_privileges(server, puller):
    image, seen = Image(), {}

    def record_processes(handler):
        for pid in subprocess.run(["pgrep", "-x", "hawser-fetch"], stdout=subprocess.PIPE, check=True).stdout.split():
            text = pathlib.Path("/proc/%d/status" % int(pid)).read_text()
            seen[int(pid)] = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        return False
    server.before = record_processes
    server.add(image)
    puller.pull(server.host + "/app:latest", uid=54321)
    ours = [s for s in seen.values() if s["Uid"].split() == ["54321"] * 4]
    assert len(ours) == 1
    assert (ours[0]["CapPrm"], ours[0]["CapEff"], ours[0]["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    assert ours[0]["Gid"].split() == ["54321"] * 4 and ours[0]["Groups"].strip() == ""


# ---- large layers and broken connections --------------------------------------------------------

NOISE = random.Random(1).randbytes(3_000_000)


def noisy_image():
    return Image([member("noise", data=NOISE) + END], packed=bytes, media="layer.v1.tar")


def test_a_large_layer_is_fetched_in_ranges(server, puller):
    image = noisy_image()
    server.add(image)
    result = puller.pull(server.host + "/app:latest", part=500_000)
    ranges = [r[2].get("Range") for r in server.requests_for(digest(image.packed[0]))]
    assert len(ranges) == 7 and sorted(ranges)[0] == "bytes=0-499999" and "bytes=3000000-3001855" in ranges
    assert puller.file(result, 0, "noise") == NOISE
    assert result["progress"][-1]["bytes"] == result["progress"][-1]["size"] == len(image.packed[0])


def test_a_layer_is_fetched_whole_from_a_server_without_range_requests(puller, server):
    image = noisy_image()
    server.add(image)
    server.ranges = False
    result = puller.pull(server.host + "/app:latest", part=500_000)
    assert len(server.requests_for(digest(image.packed[0]))) == 1 and puller.file(result, 0, "noise") == NOISE


def cut_after(server, blob, size, times):
    """The connection breaks after `size` bytes of the body, for `times` requests."""
    left = [times]

    def before(handler):
        if not handler.path.endswith(digest(blob)) or left[0] == 0:
            return False
        left[0] -= 1
        handler.wfile = CutFile(handler.wfile, size)
        server.respond_with_blob(handler, blob)
        return True
    server.before = before


class CutFile:
    def __init__(self, file, size):
        self.file, self.size = file, size

    def write(self, data):
        if data.startswith(b"HTTP/"):
            return self.file.write(data)
        self.file.write(data[:self.size])
        self.file.flush()
        raise ConnectionError("cut")

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_transfer_is_resumed(ranges, server, puller):
    image = noisy_image()
    server.add(image)
    server.ranges = ranges
    cut_after(server, image.packed[0], 1_000_000, 2)
    result = puller.pull(server.host + "/app:latest", part=16 << 20)
    requested = [r[2].get("Range") for r in server.requests_for(digest(image.packed[0]))]
    assert len(requested) == 3 and requested[0] is None and requested[1].startswith("bytes=")
    assert puller.file(result, 0, "noise") == NOISE


def test_broken_ranges_are_requested_again(server, puller):
    image = noisy_image()
    server.add(image)
    cut_after(server, image.packed[0], 100_000, 4)
    result = puller.pull(server.host + "/app:latest", part=500_000)
    assert puller.file(result, 0, "noise") == NOISE


def test_a_request_to_a_busy_server_is_retried(server, puller):
    image = Image()
    server.add(image)
    statuses = [429, 503, 500]
    server.before = lambda h: bool(statuses) and server.respond(h, statuses.pop(0), headers={"Retry-After": "0"})
    assert puller.pull(server.host + "/app:latest")["resolved"]
    assert len(server.requests_for("/manifests/")) == 4


# ---- mirrors -----------------------------------------------------------------------------------

@pytest.fixture
def mirror():
    s = Server()
    yield s
    s.close()


def test_a_mirror_is_used_instead_of_the_registry(server, mirror, puller):
    image = Image()
    mirror.add(image)
    result = puller.pull("registry.example/app:latest", mirrors=[mirror.url])
    assert result["resolved"]["host"] == mirror.host and not server.requests


@pytest.mark.parametrize("suffix", ["", "/", "/v2", "/v2/"])
def test_the_url_of_a_mirror_may_end_with_v2_or_a_slash(suffix, mirror, puller):
    mirror.add(Image())
    puller.pull("registry.example/app:latest", mirrors=[mirror.url + suffix])
    assert mirror.requests[0][1] == "/v2/app/manifests/latest"


def test_the_next_endpoint_is_used_if_a_mirror_lacks_the_image(server, mirror, puller):
    server.add(Image())
    result = puller.pull(server.host + "/app:latest", mirrors=["http://127.0.0.1:1", mirror.url], retries=0)
    assert result["resolved"]["host"] == server.host and mirror.requests


def test_a_layer_that_a_mirror_lacks_is_fetched_from_the_registry(server, mirror, puller):
    image = Image()
    server.add(image)
    mirror.add(image)
    del mirror.blobs[digest(image.packed[1])]
    result = puller.pull(server.host + "/app:latest", mirrors=[mirror.url])
    assert result["resolved"]["host"] == mirror.host and len(server.requests) == 1
    assert puller.file(result, 1, "etc/more") == b"two"


def test_a_layer_is_fetched_from_the_registry_if_the_mirror_sends_wrong_content(server, mirror, puller):
    image = Image()
    server.add(image)
    mirror.add(image)
    mirror.blobs[digest(image.packed[0])] = b"<html>come back later</html>"
    result = puller.pull(server.host + "/app:latest", mirrors=[mirror.url])
    assert result["resolved"]["host"] == mirror.host and len(server.requests) == 1
    assert puller.file(result, 0, "etc/name") == b"one"


def test_the_error_includes_the_errors_of_the_mirrors(server, mirror, puller):
    with pytest.raises(Failed) as failed:
        puller.pull(server.host + "/app:latest", mirrors=[mirror.url])
    assert str(failed.value).startswith("pull %s/app:latest from %s: " % (server.host, server.host))
    assert "mirror: pull %s/app:latest from %s: " % (server.host, mirror.host) in str(failed.value)


def test_credentials_of_the_job_are_not_sent_to_mirrors(server, mirror, puller):
    mirror.add(Image())
    mirror.before = lambda h: h.headers.get("Authorization") is None and mirror.respond(
        h, 401, headers={"WWW-Authenticate": 'Basic realm="x"'})
    server.add(Image())
    puller.pull(server.host + "/app:latest", mirrors=[mirror.url], username="u", password="p")
    assert all("Authorization" not in r[2] for r in mirror.requests)
