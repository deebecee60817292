# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_image_volumes.py - images that are mounted into hawser-cri's containers
"""
import pathlib
import tarfile

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import IMAGE, containers  # noqa: F401, a fixture
from poddaemon import refused
from waiting import wait_until

FILES = [("data/file", b"text", {}), ("data/run", b"#!/bin/sh\necho runs\n", {"mode": 0o755}),
         ("passwd", b"of the image", {})]
PRIVATE, HOST_TO_CONTAINER, BIDIRECTIONAL = range(3)


def load(d, name="a", files=FILES):
    """Load an image that has the layer of IMAGE, and one with these files. Returns its name."""
    return d.load("hawser.test/%s:1" % name, files=[(name, name.encode(), {}), *files])


def volume(image, path="/mnt", sub="", **more):
    return {"container_path": path, "image": {"image": image}, "image_sub_path": sub, "readonly": True, **more}


def remove_image(d, image):
    d.cri.call("RemoveImage", image={"image": image})


def has_layer(d, name):
    return any((d.dir / "root/layers").glob("*/root/" + name))


def mounts_of(d):
    return [line for line in open("/proc/self/mountinfo") if str(d.state / "containers") in line]


def test_an_image_is_mounted_readonly_and_its_programs_can_be_executed(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), mounts=[volume(load(d))])
    assert d.cri.sh(container, "cat /mnt/data/file; /mnt/data/run; ls -d /mnt/bin") == "textruns\n/mnt/bin\n"
    assert "Read-only file system" in d.cri.sh(container, "(echo x >/mnt/data/new) 2>&1 || true")


def test_the_status_names_the_image_and_its_digest(containers):
    d = containers()
    image = load(d)
    found = d.cri.call("ImageStatus", image={"image": image}).image
    request = volume(found.id, sub="data")
    request["image"]["user_specified_image"] = image
    container = d.cri.run_container(d.cri.pod(), mounts=[request])
    for _ in range(2):
        only, = d.cri.container(container).mounts
        expected = d.cri.types["Mount"](**request)
        expected.image.image_ref = found.repo_digests[0] if found.repo_digests else found.id
        assert only == expected
        d.restart()


@pytest.mark.parametrize("sub,command,output", [
    ("data", "ls /mnt", "file\nrun\n"), ("data/file", "cat /mnt", "text"), ("/data/../data/", "ls /mnt", "file\nrun\n")])
def test_a_path_of_an_image_is_mounted(containers, sub, command, output):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), mounts=[volume(load(d), sub=sub)])
    assert d.cri.sh(container, command) == output


def test_a_path_of_an_image_never_leads_out_of_it(containers, tmp_path):
    d = containers()
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    links = [(name, b"", {"type": tarfile.SYMTYPE, "linkname": target})
             for name, target in (("up", "../" * 20 + str(tmp_path)), ("host", "/passwd"))]
    pod, image = d.cri.pod(), load(d, files=FILES + links)
    container = d.cri.run_container(pod, mounts=[volume(image, sub="host")])
    assert d.cri.sh(container, "cat /mnt") == "of the image"
    for sub in ("up/secret", "../" * 20 + str(secret), str(secret)):
        assert refused(d.cri.create, pod, name="x", mounts=[volume(image, sub=sub)]) == (
            "INVALID_ARGUMENT", 'ImageVolumeMountFailed: mounts[0]: image_sub_path: the image has no "%s"' % sub)


def test_an_image_volume_that_cannot_be_mounted_is_refused_and_leaves_nothing(containers):
    d = containers()
    pod, image = d.cri.pod(), load(d)
    assert refused(d.cri.create, pod, mounts=[volume(image), volume("hawser.test/none:1", "/opt")]) == (
        "NOT_FOUND", 'ImageVolumeMountFailed: mounts[1].image: no image "hawser.test/none:1" on this node')
    assert refused(d.cri.create, pod, mounts=[volume(image), volume(image, "/opt", sub="none")]) == (
        "INVALID_ARGUMENT", 'ImageVolumeMountFailed: mounts[1]: image_sub_path: the image has no "none"')
    assert refused(d.cri.create, pod, mounts=[volume(image, readonly=False)]) == (
        "INVALID_ARGUMENT", "mounts[0].readonly: an image is mounted read-only")
    for propagation in (HOST_TO_CONTAINER, BIDIRECTIONAL):
        assert refused(d.cri.create, pod, mounts=[volume(image, propagation=propagation)]) == (
            "INVALID_ARGUMENT", "mounts[0].propagation: an image is mounted privately")
    assert mounts_of(d) == [] and d.cri.container_ids() == []
    remove_image(d, image)
    wait_until(lambda: not has_layer(d, "a"))


def test_several_images_are_mounted_in_one_container(containers):
    d = containers()
    mounts = [volume(load(d, "a"), "/opt/a"), {"container_path": "/tmp/host", "host_path": str(d.dir)},
              volume(load(d, "b"), "/opt", sub="data"), volume(IMAGE, "/base")]
    container = d.cri.run_container(d.cri.pod(), image=load(d, "c"), mounts=[mounts[1], mounts[2], mounts[3]])
    assert d.cri.sh(container, "cat /c /opt/file; ls -d /base/bin") == "ctext/base/bin\n"
    names = [m.image.image for m in d.cri.container(container).mounts]
    assert names == ["", "hawser.test/b:1", IMAGE]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_mounted_image_that_is_removed_stays_until_its_container_is_removed(containers, how):
    d = containers()
    image = load(d)
    container = d.cri.run_container(d.cri.pod(), mounts=[volume(image)])
    remove_image(d, image)
    d.kill() if how == "kill" else d.stop()
    d.start()
    remove_image(d, load(d, "other"))
    wait_until(lambda: not has_layer(d, "other"))
    assert has_layer(d, "a") and d.cri.sh(container, "cat /mnt/data/file") == "text"
    d.cri.remove_container(container)
    wait_until(lambda: not has_layer(d, "a"))
    assert mounts_of(d) == []


def test_a_restart_removes_mounts_of_a_container_whose_create_was_interrupted(containers):
    d = containers()
    container = d.cri.create(d.cri.pod(), mounts=[volume(load(d))])
    d.kill()
    with d.database() as db:
        db.execute("UPDATE containers SET state = 1 WHERE id = ?", [container])
        db.commit()
    assert any(container in line and "/images/0 " in line for line in mounts_of(d))
    d.start()
    wait_until(lambda: mounts_of(d) == [] and not pathlib.Path(d.bundle(container)).exists())
