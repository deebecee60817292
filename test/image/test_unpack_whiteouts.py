# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_whiteouts.py - whiteouts, and directories of the layers below
"""
import os
import shutil
import stat

import pytest

from layers import END, directory, is_opaque, is_whiteout, member, names, symlink


# ---- whiteouts ---------------------------------------------------------------------------------

def test_a_whiteout_becomes_a_device_with_number_0_0(layers):
    layers.unpack(directory("d") + member("d/.wh.gone") + member(".wh.a b"))
    assert is_whiteout(layers.root / "d/gone") and is_whiteout(layers.root / "a b")


def test_an_opaque_directory_gets_the_attribute_of_overlayfs(layers):
    layers.unpack(directory("d") + member("d/f") + member("d/.wh..wh..opq") + member("e/.wh..wh..opq"))
    assert is_opaque(layers.root / "d") and is_opaque(layers.root / "e")
    assert names(layers.root) == ["d", "d/f", "e"]


def test_an_opaque_root_is_reported(layers):
    for data in member(".wh..wh..opq"), symlink("l", "/") + member("l/.wh..wh..opq"):
        assert layers.unpack(data)["opaque"]
    assert not layers.unpack(member("d/.wh..wh..opq"))["opaque"]


def test_a_whiteout_does_not_remove_members_of_its_own_layer(layers):
    new = member("f", data=b"new") + directory("d") + member("d/g", data=b"new")
    gone = member(".wh.f") + member(".wh.d")
    for data in new + gone, gone + new, gone + member("f", data=b"new") + member("d/g", data=b"new"):
        shutil.rmtree(layers.root)
        layers.root.mkdir()
        result = layers.unpack(data)
        assert (layers.root / "f").read_bytes() == b"new"
        assert (layers.root / "d/g").read_bytes() == b"new" and is_opaque(layers.root / "d")
        assert result["rebuildable"]


def test_aufs_metadata_is_ignored(layers):
    data = (directory(".wh..wh.plnk") + member(".wh..wh.plnk/1.2", data=b"x")
            + member(".wh..wh.aufs", data=b"y") + member("f"))
    layers.unpack(data)
    assert names(layers.root) == ["f"]
    assert layers.rebuild() == data + END


# ---- directories of the layers below -----------------------------------------------------------

def unpack_over(layers, name, data, *below):
    """Unpacks into a directory of this name; {path: (mode, uid)} of its directories."""
    root = layers.root / name
    root.mkdir()
    layers.unpack(data, *["--below=%s" % (layers.root / b) for b in below], root=root)
    return {p: (oct(stat.S_IMODE(os.lstat(root / p).st_mode)), os.lstat(root / p).st_uid)
            for p in names(root) + ["."] if os.path.isdir(root / p)}


def test_an_implied_directory_gets_its_attributes_from_the_layer_below(layers):
    unpack_over(layers, "0", directory(".", mode=0o711) + directory("tmp", mode=0o1777) + directory("a", uid=7)
        + directory("a/b", mode=0o700))
    unpack_over(layers, "1", member("a/b/x"), "0")
    got = unpack_over(layers, "2", member("tmp/f") + member("a/b/f") + member("new/f"), "1", "0")
    assert got == {".": ("0o711", 0), "tmp": ("0o1777", 0), "a": ("0o755", 7),
                   "a/b": ("0o700", 0), "new": ("0o755", 0)}


def test_an_implied_directory_gets_default_attributes_if_the_directory_below_is_hidden(layers):
    unpack_over(layers, "0", directory("a", uid=7) + directory("a/b", uid=7) + directory("c", uid=7)
        + directory("d", uid=7) + directory("e", uid=7))
    unpack_over(layers, "1", directory("a") + member("a/.wh..wh..opq") + member(".wh.c") + member("d"), "0")
    got = unpack_over(layers, "2", member("a/b/f") + member("c/f") + member("d/f") + member(".wh.e")
              + member("e/f"), "1", "0")
    assert set(uid for _, uid in got.values()) == {0}
    assert set(got) == {".", "a", "a/b", "c", "d", "e"}


def test_files_move_to_the_target_of_a_symlink_in_the_layer_below(layers):
    unpack_over(layers, "0", directory("usr", uid=3) + directory("usr/bin", uid=7) + member("usr/bin/old")
        + symlink("bin", "usr/bin") + symlink("sbin", "/bin") + directory("usr/lib", uid=8)
        + directory("usr/lib/x", uid=9) + symlink("usr/lib64", "../usr/lib"))
    root = layers.root / "1"
    root.mkdir()
    result = layers.unpack(member("bin/new", data=b"1") + member("sbin/tool", data=b"2")
                           + member("usr/lib64/x/y", data=b"3") + directory("usr/lib")
                           + member("usr/lib/z"), "--below=%s" % (layers.root / "0"), root=root)
    assert names(root) == ["usr", "usr/bin", "usr/bin/new", "usr/bin/tool", "usr/lib", "usr/lib/x",
                           "usr/lib/x/y", "usr/lib/z"]
    assert [os.lstat(root / p).st_uid for p in ("usr", "usr/bin", "usr/lib", "usr/lib/x")] == [3, 7, 0, 9]
    assert not result["rebuildable"]


def test_a_moved_file_replaces_an_existing_one(layers):
    unpack_over(layers, "0", symlink("a", "b") + directory("b"))
    unpack_over(layers, "1", directory("b") + member("b/f", data=b"1") + directory("b/d") + member("b/d/g", data=b"2")
        + member("a/f", data=b"3") + member("a/d/h", data=b"4") + symlink("a/d/g", "x"), "0")
    root = layers.root / "1"
    assert names(root) == ["b", "b/d", "b/d/g", "b/d/h", "b/f"]
    assert (root / "b/f").read_bytes() == b"3" and os.readlink(root / "b/d/g") == "x"


@pytest.mark.parametrize("target", ["a", "a/b", ".", "../../..", "b/../a"])
def test_a_symlink_to_itself_or_outside_in_the_layer_below_moves_nothing_outside(layers, target):
    unpack_over(layers, "0", symlink("a", target))
    unpack_over(layers, "1", member("a/b/c", data=b"x"), "0")
    assert any((layers.root / "1" / p).exists() for p in ("a/b/c", "b/c"))
