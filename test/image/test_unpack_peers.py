# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_peers.py - unpacking compared with other programs
"""
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile

import pytest

from layers import END, directory, hardlink, member, symlink, tree
from samples import CAPABILITY


def make_image_like(top):
    """A tree with all file types of images, and some files of this machine."""
    for path in "/etc", "/usr/share/perl5":
        if os.path.isdir(path):
            subprocess.run(["cp", "-a", "--parents", path, top], stderr=subprocess.DEVNULL)
    (top / "bin").mkdir()
    for name in "su", "ping":
        shutil.copy("/bin/true", top / "bin" / name)
    os.chmod(top / "bin/su", 0o4755)
    os.setxattr(top / "bin/ping", "security.capability", CAPABILITY)
    os.link(top / "bin/su", top / "bin/su2")
    os.mkdir(top / "tmp")
    os.chmod(top / "tmp", 0o1777)
    os.mknod(top / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mkfifo(top / "pipe")
    os.symlink("etc", top / "link")
    with open(top / "sparse", "wb") as f:
        f.truncate(5 << 20)
        f.seek(3 << 20)
        f.write(b"x" * 5000)
    (top / ("long" * 40)).mkdir()
    (top / ("long" * 40) / ("name" * 40)).write_text("x")
    os.chown(top / "tmp", 65534, 2000000)
    os.utime(top / "tmp", ns=(1, 1234567890123456789))


@pytest.fixture(scope="module")
def image_like(tmp_path_factory):
    top = tmp_path_factory.mktemp("image") / "root"
    top.mkdir()
    make_image_like(top)
    return top


def test_a_packed_tree_is_unpacked_unchanged(layers, image_like):
    data = subprocess.run(["tar", "--format=posix", "--xattrs", "--xattrs-include=*", "--sparse",
                           "-C", image_like, "-cf", "-", "."], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    result = layers.unpack(data, end=b"")
    assert result["skipped"] == 0
    assert tree(layers.root) == tree(image_like)
    assert layers.rebuild() == data


@pytest.mark.parametrize("options", [
    ["--format=gnu"], ["--format=gnu", "--sparse"], ["--format=oldgnu"], ["--format=ustar"],
    ["--format=v7"], ["--format=posix"], ["--format=posix", "--sparse", "--sparse-version=0.0"],
    ["--format=posix", "--sparse", "--sparse-version=0.1"],
    ["--format=posix", "--sparse", "--sparse-version=1.0", "--xattrs", "--xattrs-include=*"],
    ["--format=gnu", "-b1"], ["--format=pax", "--pax-option=globexthdr.name=x,comment=y"],
])
def test_unpacked_files_are_the_same_as_those_of_gnu_tar(layers, image_like, tmp_path, options):
    data = subprocess.run(["tar", *options, "-C", image_like, "-cf", "-", "."],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    theirs = layers.root / "theirs"
    ours = layers.root / "ours"
    theirs.mkdir()
    ours.mkdir()
    subprocess.run(["tar", "--xattrs", "--xattrs-include=*", "-p", "--same-owner",
                    "--numeric-owner", "-C", theirs, "-xf", "-"], input=data, check=True,
                   stderr=subprocess.DEVNULL)
    layers.unpack(data, root=ours, end=b"")
    assert tree(ours) == tree(theirs)
    assert layers.rebuild(ours) == data


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_written_by_python_are_unpacked(layers, image_like, form):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for path in "bin", "tmp", "null", "pipe", "link", "etc":
            archive.add(image_like / path, path)
    layers.unpack(out.getvalue(), end=b"")
    ignore = {"xattrs", "mtime"}
    want = {p: e for p, e in tree(image_like, ignore).items()
            if p.split("/")[0] in ("bin", "tmp", "null", "pipe", "link", "etc")}
    got = tree(layers.root, ignore)
    del got["."]
    assert got == want


def blob(layout, data, kind):
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest,
            "size": len(data)}


def make_layout(layout, archives):
    """An OCI layout with one image, "x", of these layers."""
    (layout / "blobs/sha256").mkdir(parents=True)
    layers_ = [blob(layout, a, "layer.v1.tar") for a in archives]
    config = {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": [d["digest"] for d in layers_]}}
    config = blob(layout, json.dumps(config).encode(), "config.v1+json")
    manifest = blob(layout, json.dumps({"schemaVersion": 2, "config": config,
                                        "layers": layers_}).encode(), "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": "x"}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


IMAGE = [
    directory(".") + directory("a", mode=0o700) + member("a/f", data=b"1") + member("a/g", data=b"2")
    + directory("b") + directory("b/c") + member("b/c/f", data=b"3") + symlink("l", "a") + directory("o")
    + member("o/below", data=b"4") + member("file", data=b"5") + directory("both")
    + member("both/below", data=b"6") + member("twice", data=b"7"),
    directory("a", mode=0o755, uid=3) + member("a/.wh.f") + directory("b") + member("b/.wh.c")
    + directory("o") + member("o/.wh..wh..opq") + member("o/new", data=b"n") + member(".wh.file")
    + member(".wh.both") + directory("both") + member("both/new", data=b"n") + member("l2", data=b"x")
    + hardlink("l3", "l2"),
    directory("a", mode=0o711) + member("a/f", data=b"again") + directory("file")
    + member("file/x", data=b"directory now") + member("l", data=b"file now") + member("b", data=b"f"),
]


def umoci(layers, *archives):
    """The root of an image of these layers, unpacked by umoci."""
    layout, bundle = layers.root / "layout", layers.root / "bundle"
    make_layout(layout, archives)
    subprocess.run(["umoci", "unpack", "--image", "%s:x" % layout, bundle], check=True,
                   stdout=subprocess.DEVNULL)
    return bundle / "rootfs"


needs_umoci = pytest.mark.skipif(not shutil.which("umoci"), reason="umoci is not installed")


@needs_umoci
def test_layers_merged_by_overlayfs_equal_the_tree_that_umoci_unpacks(layers):
    theirs = umoci(layers, *[data + END for data in IMAGE])
    roots = []
    for i, data in enumerate(IMAGE):
        here = str(layers.root / str(i))
        os.mkdir(here)
        layers.unpack(data, *["--below=" + f for f in roots], root=here)
        roots.insert(0, here)
    merged = layers.root / "merged"
    merged.mkdir()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=" + ":".join(roots),
                    merged], check=True)
    try:
        assert tree(merged, {"links"}) == tree(theirs, {"links"})
    finally:
        subprocess.run(["umount", merged], check=True)


@needs_umoci
@pytest.mark.parametrize("options", [
    ["--format=gnu"], ["--format=ustar"], ["--format=v7"],
    ["--format=posix", "--sparse", "--sparse-version=0.1"],
    ["--format=posix", "--sparse", "--xattrs", "--xattrs-include=*"],
])
def test_unpacked_files_are_the_same_as_those_of_umoci(layers, image_like, options):
    data = subprocess.run(["tar", *options, "-C", image_like, "-cf", "-", "."],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    ours = layers.root / "ours"
    ours.mkdir()
    layers.unpack(data, root=ours, end=b"")
    assert tree(ours) == tree(umoci(layers, data))
