# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_client.py - our client and our wire types against Debian's containerd

What:  responses of containerd over CRI, decoded with our descriptors, are compared with its
       configuration, with the output of ctr, and with the images that the test has created.
Not:   pods: they need a network and a pause image, and hawser-cri does not implement them yet.
"""
import hashlib
import io
import json
import platform
import shutil
import tarfile

import pytest

from waiting import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("containerd"),
                                reason="containerd is not installed")

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


def string(number, text):
    """Encodes a field: a string or a message."""
    data = text if isinstance(text, bytes) else text.encode()
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def make_image(path, name, user):
    """Creates an OCI archive with one layer. Returns the digest of its configuration."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    layer = layer.getvalue()
    config = json.dumps({"architecture": ARCHITECTURE, "os": "linux", "config": {"User": user},
                         "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
    image = "application/vnd.oci.image."

    def entry(kind, data, **more):
        return {"mediaType": image + kind, "digest": digest(data), "size": len(data), **more}

    manifest = json.dumps({"schemaVersion": 2, "config": entry("config.v1+json", config),
                           "layers": [entry("layer.v1.tar", layer)]}).encode()
    index = json.dumps({"schemaVersion": 2, "manifests": [entry(
        "manifest.v1+json", manifest, annotations={"io.containerd.image.name": name},
        platform={"architecture": ARCHITECTURE, "os": "linux"})]}).encode()
    with tarfile.open(path, "w") as tar:
        blobs = [("blobs/sha256/" + digest(b)[7:], b) for b in (layer, config, manifest)]
        for file, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'),
                           ("index.json", index), *blobs]:
            info = tarfile.TarInfo(file)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return digest(config)


def test_the_version_response_of_containerd_is_decoded(containerd):
    status, fields = containerd.call("Version")
    version = containerd.ctr("version").split("Server:")[1].split("Version:")[1].split()[0]
    assert status == 0
    assert fields == {"version": "0.1.0", "runtime_name": "containerd",
                      "runtime_version": version, "runtime_api_version": "v1"}


def test_the_verbose_status_of_containerd_is_decoded(containerd):
    status, fields = containerd.call("Status", bytes([1 << 3, 1]))
    assert status == 0
    conditions = {fields["status.conditions.%d.type" % i]:
                  fields["status.conditions.%d.status" % i] for i in (0, 1)}
    assert conditions == {"RuntimeReady": "1", "NetworkReady": "0"}
    info = {fields["info.%d.key" % i]: fields["info.%d.value" % i] for i in range(len(fields))
            if "info.%d.key" % i in fields}
    assert json.loads(info["config"])["containerd"]["snapshotter"] == "native"


def test_images_with_a_numeric_and_a_named_user_are_decoded(containerd, tmp_path):
    ids = {}
    for user in ("1234", "alice"):
        name = "docker.io/library/of-%s:1" % user
        ids[name] = make_image(tmp_path / user, name, user)
        containerd.ctr("images", "import", "--snapshotter", "native", str(tmp_path / user))

    def listed():
        """Returns the fields, and {name: index in images}: the order of images is undefined."""
        fields = containerd.call("ListImages")[1]
        return fields, {fields["images.%d.repo_tags.0" % i]: i for i in range(len(fields))
                        if "images.%d.repo_tags.0" % i in fields}
    wait_until(lambda: set(ids) <= set(listed()[1]))
    fields, where = listed()
    for name, image_id in ids.items():
        assert fields["images.%d.id" % where[name]] == image_id
        assert int(fields["images.%d.size" % where[name]]) > 0
    number, name = (where["docker.io/library/of-%s:1" % user] for user in ("1234", "alice"))
    assert fields["images.%d.uid.value" % number] == "1234"
    assert fields["images.%d.username" % name] == "alice"
    assert "images.%d.uid.value" % name not in fields


def test_the_status_of_a_missing_image_is_empty(containerd):
    """The call succeeds: a missing image is not an error."""
    none = string(1, string(1, "docker.io/library/none:1"))
    assert containerd.call("ImageStatus", none) == (0, {})


def test_the_image_file_system_is_decoded(containerd):
    status, fields = containerd.call("ImageFsInfo")
    assert status == 0
    assert fields["image_filesystems.0.fs_id.mountpoint"] == str(
        containerd.dir / "root/io.containerd.snapshotter.v1.native")
    assert int(fields["image_filesystems.0.timestamp"]) > 1_600_000_000_000_000_000


def test_errors_of_containerd_are_returned_with_their_code_and_text(containerd):
    status, text = containerd.call("ContainerStatus", string(1, "no-such-container"))
    assert status == 1 and text.startswith("NOT_FOUND ") and "no-such-container" in text
    status, text = containerd.call("CheckpointPod")
    assert status == 1 and text.startswith("UNIMPLEMENTED ")


def test_empty_lists_are_decoded_as_empty(containerd):
    for method in ("ListPodSandbox", "ListContainers", "ListContainerStats"):
        assert containerd.call(method) == (0, {})
