# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_hostile.py - hostile archives

After each, unpacked or refused, nothing outside the root has changed (Layers.unpack() checks it), and
the error of a refused archive says why.
"""
import os
import stat

import pytest

from layers import directory, hardlink, header, is_opaque, is_whiteout, member, names, pax, symlink


# ---- paths that escape the root ----------------------------------------------------------------

@pytest.mark.parametrize("path", ["..", "../secret", "../outside/secret", "a/../../outside/secret",
                                  "./../outside/new", "/../outside/secret", "a/b/../../../x"])
@pytest.mark.parametrize("make", [member, directory])
def test_a_path_that_escapes_the_root_with_dots_is_refused(layers, path, make):
    assert 'member "%s": path escapes the root' % path in layers.refused(make(path))
    assert names(layers.root) == []


def test_dots_inside_the_root_are_resolved(layers):
    layers.unpack(member("a/../b/./c//d", data=b"x"))
    assert names(layers.root) == ["b", "b/c", "b/c/d"]


def test_an_absolute_path_is_relative_to_the_root(layers):
    path = str(layers.outside / "secret")
    layers.unpack(member(path, data=b"new") + directory("/"))
    assert (layers.root / path[1:]).read_bytes() == b"new"


def test_a_long_name_that_escapes_the_root_is_refused(layers):
    deep = b"a/" * 100 + b"../" * 101 + b"outside/secret\0"
    for data in (member("././@LongLink", b"L", deep) + member("x"),
                 pax(path=deep[:-1]) + member("x"),
                 header(b"secret", more=b"../outside")):
        assert "escapes the root" in layers.refused(data)


# ---- links that escape the root ----------------------------------------------------------------

def test_a_file_below_a_symlink_that_leads_outside_is_created_inside_the_root(layers):
    outside = str(layers.outside)
    layers.unpack(directory(outside[1:]) + symlink("l", outside) + member("l/secret", data=b"new"))
    assert (layers.root / outside[1:] / "secret").read_bytes() == b"new"


def test_a_chain_of_symlinks_that_leads_outside_is_resolved_inside_the_root(layers):
    layers.unpack(directory("outside") + directory("d") + symlink("d/a", "../../../../..")
                  + symlink("b", "d/a/outside") + symlink("c", "b/../b")
                  + member("c/secret", data=b"new"))
    assert (layers.root / "outside/secret").read_bytes() == b"new"


def test_a_file_that_replaces_a_symlink_is_not_written_to_its_target(layers):
    layers.unpack(symlink("l", str(layers.outside / "secret")) + member("l", data=b"new"))
    assert stat.S_ISREG(os.lstat(layers.root / "l").st_mode)


def test_a_directory_that_replaces_a_symlink_does_not_change_its_target(layers):
    layers.unpack(symlink("l", str(layers.outside)) + directory("l", mode=0o777, uid=5))
    assert stat.S_ISDIR(os.lstat(layers.root / "l").st_mode)


def test_a_symlink_below_a_symlink_that_leads_outside_is_created_inside_the_root(layers):
    layers.unpack(directory("d") + symlink("l", "../../d") + symlink("l/m", str(layers.outside)))
    assert os.readlink(layers.root / "d/m") == str(layers.outside)


def test_a_device_that_replaces_a_symlink_does_not_replace_its_target(layers):
    layers.unpack(symlink("l", str(layers.outside / "secret")) + member("l", b"3", major=1, minor=3))
    assert os.lstat(layers.root / "l").st_rdev == os.makedev(1, 3)


def test_a_member_below_a_dangling_symlink_is_refused(layers):
    error = layers.refused(symlink("l", str(layers.outside)) + member("l/new", data=b"x"))
    assert 'member "l/new": "l" is neither a directory nor a link to one' in error


def test_a_loop_of_symlinks_is_refused(layers):
    error = layers.refused(symlink("a", "b") + symlink("b", "a") + member("a/x"))
    assert "Too many levels of symbolic links" in error


def test_whiteouts_below_a_symlink_that_leads_outside_are_created_inside_the_root(layers):
    layers.unpack(directory("outside") + symlink("l", "../outside") + member("l/.wh.secret")
                  + member("l/.wh..wh..opq"))
    assert is_whiteout(layers.root / "outside/secret") and is_opaque(layers.root / "outside")


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "a/.wh...", "a/.wh.."])
def test_a_whiteout_without_a_valid_name_is_refused(layers, name):
    assert "invalid whiteout of" in layers.refused(directory("a") + member(name))


# ---- hard links --------------------------------------------------------------------------------

def test_a_hard_link_that_escapes_the_root_with_dots_is_refused(layers):
    error = layers.refused(hardlink("h", "../outside/secret"))
    assert 'target "../outside/secret": path escapes the root' in error


def test_a_hard_link_to_an_absolute_path_outside_is_refused(layers):
    error = layers.refused(hardlink("h", str(layers.outside / "secret")))
    assert 'member "h": target "%s" is not in the layer' % (layers.outside / "secret") in error


def test_a_hard_link_to_a_file_below_a_symlink_that_leads_outside_is_refused(layers):
    error = layers.refused(symlink("l", str(layers.outside)) + hardlink("h", "l/secret"))
    assert 'member "h": target "l/secret" is not in the layer' in error


def test_a_hard_link_to_a_symlink_does_not_follow_the_symlink(layers):
    layers.unpack(symlink("l", str(layers.outside / "secret")) + hardlink("h", "l")
                  + member("h", data=b"new"))
    assert os.readlink(layers.root / "l") == str(layers.outside / "secret")
    assert (layers.root / "h").read_bytes() == b"new"


def test_a_file_that_replaces_a_hard_link_does_not_change_its_target(layers):
    layers.unpack(member("a", data=b"old") + hardlink("b", "a") + member("b", data=b"new"))
    assert (layers.root / "a").read_bytes() == b"old"


@pytest.mark.parametrize("target", ["", ".", "/", "d"])
def test_a_hard_link_to_a_directory_is_refused(layers, target):
    assert 'member "h": ' in layers.refused(directory("d") + hardlink("h", target))


def test_a_hard_link_to_itself_changes_nothing(layers):
    layers.unpack(member("a", data=b"x") + hardlink("a", "./a"))
    assert (layers.root / "a").read_bytes() == b"x"


# ---- members that replace others ---------------------------------------------------------------

def test_a_file_replaces_a_directory(layers):
    result = layers.unpack(directory("d") + member("d/e/f", data=b"x") + symlink("d/l", "/")
                           + member("d", data=b"new"))
    assert names(layers.root) == ["d"] and not result["rebuildable"]


def test_a_directory_replaces_a_file(layers):
    result = layers.unpack(member("d", data=b"x") + directory("d") + member("d/f"))
    assert names(layers.root) == ["d", "d/f"] and not result["rebuildable"]


def test_a_member_below_a_file_is_refused(layers):
    error = layers.refused(member("f", data=b"x") + member("f/g"))
    assert '"f" is neither a directory nor a link to one' in error


def test_a_root_that_is_not_a_directory_is_refused(layers):
    for data in (member("."), symlink("/", "x"), member("", b"3"), hardlink("./", "a")):
        assert "the root must be a directory" in layers.refused(data)


def test_a_tree_deeper_than_the_descriptor_limit_is_removed(layers):
    part = "/".join("d" * 180)
    data, here = b"", part
    for i in range(15):  # each path starts with a link to the deepest directory so far: 2700 levels
        data += pax(path=here + "/x") + directory("x") + pax(linkpath=here) + symlink("l%d" % i, "")
        here = "l%d/%s" % (i, part)
    layers.unpack(pax(path="d/y") + directory("y") + data + member("d", data=b"new"))
    assert (layers.root / "d").read_bytes() == b"new"
