# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_verify.py - hawser-cri verifies and repairs images
"""
import shutil

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import field
from criimages import (DAMAGED, GOOD, NAME, NOT_CHECKED, REPAIRED, daemon, file_of, image_with, images, leftovers,
                       pull, spec, verify)  # noqa: F401, a fixture
from fetching import ARCHITECTURE, OCI, Image, digest, index_of
from layers import END, member
from waiting import LONG


def test_damage_is_found_and_repaired(daemon, server):
    image = image_with()
    server.add(image)
    name = server.host + NAME
    assert pull(daemon, name)[0] == 0
    good = [(i, GOOD, "") for i in image.diff_ids]
    assert verify(daemon) == good and verify(daemon, name) == good
    file_of(daemon, "etc/name").write_bytes(b"two")
    (first, second) = verify(daemon, digest(image.config))
    assert first[:2] == (image.diff_ids[0], DAMAGED) and first[2].startswith("etc/name: ")
    assert second == good[1]
    server.requests.clear()
    assert verify(daemon, name, repair=True) == [good[1], (image.diff_ids[0], REPAIRED, "")]
    assert file_of(daemon, "etc/name").read_bytes() == b"one"
    blobs = {r[1].rpartition("/")[2] for r in server.requests_for("/blobs/")}
    assert digest(image.packed[0]) in blobs and digest(image.packed[1]) not in blobs
    assert verify(daemon) == good and leftovers(daemon) == []


def test_damage_of_an_image_for_another_platform_is_repaired(daemon, server):
    other = Image(architecture="s390x")
    for image in other, image_with():
        server.add(image)
    index = index_of((other, {"os": "linux", "architecture": "s390x"}),
                     (image, {"os": "linux", "architecture": ARCHITECTURE}))
    for name in "latest", digest(index):
        server.manifests[name] = (OCI + "index.v1+json", index)
    with daemon.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Pull")
        list(stream(field(1, server.host + "/app:latest") + field(3, "linux/s390x"), timeout=LONG))
    before = images(daemon)
    assert list(before) == [digest(other.config)]
    file_of(daemon, "etc/name").write_bytes(b"two")
    assert (other.diff_ids[0], REPAIRED, "") in verify(daemon, repair=True)
    assert images(daemon) == before


def test_a_failed_repair_removes_nothing(daemon, server):
    image = image_with()
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    file_of(daemon, "etc/name").write_bytes(b"two")
    before = images(daemon)
    del server.blobs[digest(image.packed[0])]
    with pytest.raises(grpc.RpcError) as caught:
        verify(daemon, repair=True)
    assert server.host in caught.value.details()
    # the failed repair has removed nothing
    assert images(daemon) == before and file_of(daemon, "etc/name").read_bytes() == b"two"
    assert daemon.call("ImageStatus", spec(server.host + NAME))[1]["image.id"] == digest(image.config)
    assert [m[1] for m in verify(daemon, server.host + NAME)] == [DAMAGED, GOOD]
    server.add(image)
    assert [m[1] for m in verify(daemon, server.host + NAME, repair=True)] == [GOOD, REPAIRED]
    assert file_of(daemon, "etc/name").read_bytes() == b"one"
    assert images(daemon) == before and leftovers(daemon) == []


def test_an_image_that_cannot_be_repaired_does_not_stop_the_repair_of_others(daemon, server):
    broken = [Image([member(name, data=name.encode()) + END]) for name in ("one", "two", "three")]
    for i, image in enumerate(broken):
        server.add(image, "tag%d" % i)
        assert pull(daemon, "%s/app:tag%d" % (server.host, i))[0] == 0
    for name in ("one", "two", "three"):
        file_of(daemon, name).write_bytes(b"damaged")
    lost = broken[1]
    del server.blobs[digest(lost.packed[0])]
    results = []
    with pytest.raises(grpc.RpcError) as caught:
        verify(daemon, *("%s/app:tag%d" % (server.host, i) for i in range(3)), repair=True, results=results)
    assert digest(lost.packed[0]) in caught.value.details()
    assert [m[:2] for m in results] == [(broken[0].diff_ids[0], REPAIRED), (lost.diff_ids[0], DAMAGED),
                                        (broken[2].diff_ids[0], REPAIRED)]
    assert file_of(daemon, "three").read_bytes() == b"three"


def test_repair_fetches_a_missing_layer_again(daemon, server):
    image = image_with()
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    assert daemon.stop() == 0
    shutil.rmtree(file_of(daemon, "etc/name").parents[2])
    daemon.start()
    # the image is incomplete, so it is not reported
    assert daemon.call("ImageStatus", spec(server.host + NAME)) == (0, {})
    repository = server.host + NAME.split(":")[0]
    for name in (server.host + NAME, "%s@%s" % (repository, digest(image.manifest)), digest(image.config), digest(image.config)[7:19],
                 "%s%s@%s" % (server.host, NAME, digest(image.manifest))):
        assert [m[1] for m in verify(daemon, name)] == [DAMAGED, GOOD]
    assert [m[1] for m in verify(daemon, server.host + NAME, repair=True)] == [GOOD, REPAIRED]
    assert daemon.call("ImageStatus", spec(server.host + NAME))[1]["image.id"]


def test_a_damaged_recipe_is_found(daemon, server):
    server.add(image_with())
    assert pull(daemon, server.host + NAME)[0] == 0
    recipe = file_of(daemon, "etc/name").parents[2] / "recipe"
    recipe.write_bytes(recipe.read_bytes()[:-4])
    found = verify(daemon)
    assert [m[1] for m in found] == [DAMAGED, GOOD] and found[0][2].startswith("recipe: ")


def test_a_layer_that_cannot_be_checked_is_reported_as_not_checked(daemon, server):
    image = Image([member("a", data=b"1") + member("a", data=b"2") + END, member("b", data=b"b") + END])
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    expected = [(image.diff_ids[0], NOT_CHECKED, ""), (image.diff_ids[1], GOOD, "")]
    assert verify(daemon) == expected and verify(daemon, repair=True) == expected


def test_verify_succeeds_without_images_and_fails_for_a_missing_one(daemon):
    assert verify(daemon) == []
    with pytest.raises(grpc.RpcError) as caught:
        verify(daemon, "missing")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == 'image "missing" not found'
