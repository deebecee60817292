# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_hostile.py - hostile archives

After each, unpacked or refused, nothing outside the root has changed (Layers.unpack() checks it), and
the error of a refused archive says why.
"""
import contextlib
import os
import stat
import subprocess
import threading

import pytest

from layers import (BLOCK, Layers, base256, directory, hardlink, header, is_opaque, is_whiteout,
                    member, names, pax, symlink)


@pytest.fixture
def layers(tmp_path):
    return Layers(tmp_path)


def endless(block, first=b""):
    """A pipe with the bytes `first` and then `block` again and again, until it is closed."""
    read, write = os.pipe()

    def write_blocks():
        with contextlib.suppress(BrokenPipeError), open(write, "wb") as pipe:
            pipe.write(first)
            while True:
                pipe.write(block)
    threading.Thread(target=write_blocks, daemon=True).start()
    return open(read, "rb")


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


# ---- numbers -----------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [base256(-1, 12), base256(-2**62, 12), base256(2**63 - 1, 12),
                                  base256(2**80, 12), b"-0000000001\0", b"77777777777x"])
@pytest.mark.parametrize("kind", [b"0", b"5", b"x", b"L", b"S"])
def test_an_invalid_size_is_refused(layers, size, kind):
    if kind != b"5" or size != base256(2**63 - 1, 12):  # this size is valid, and ignored for a directory
        layers.refused(member("f", kind, size=size))
    assert names(layers.root) == []


def test_a_negative_size_in_a_pax_header_is_refused(layers):
    assert "PAX record size" in layers.refused(pax(size="-1") + member("f"))


@pytest.mark.parametrize("owner", [base256(-1, 8), base256(2**32 - 1, 8), base256(2**40, 8)])
def test_an_invalid_owner_is_refused(layers, owner):
    assert "invalid user ID" in layers.refused(member("f", uid=owner))
    assert "invalid group ID" in layers.refused(member("f", gid=owner))


@pytest.mark.parametrize("device", [{"major": 4096}, {"minor": 1 << 20}, {"major": base256(-1, 8)}])
def test_an_invalid_device_number_is_refused(layers, device):
    assert "invalid device number" in layers.refused(member("f", b"3", **device))


def test_an_invalid_sparse_map_is_refused(layers):
    maps = ["5,10", "0,-1", "5,5,0,5", "0,10,5,10", "9223372036854775807,5", "x", "1", "1,2,3"]
    for text in maps:
        data = pax(GNU__sparse__map=text, GNU__sparse__size="10") + member("f", data=b"12345")
        layers.refused(data)
    for text in (b"", b"x\n", b"1\n5\n", b"99999999999\n", b"1\n0\n600\n", b"-1\n"):
        data = (pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="900")
                + member("f", data=text.ljust(BLOCK, b"\0") + b"12345"))
        layers.refused(data)
    assert names(layers.root) == []


# ---- limits ------------------------------------------------------------------------------------

def test_an_endless_member_is_refused(layers):
    data = endless(bytes(1 << 16), header(b"f", size=base256(1 << 40, 12)))
    error = layers.refused(data, "--bytes", 10 << 20)
    assert "file too large: 1099511627776 bytes, at most 10485760 allowed" in error
    data = endless(bytes(1 << 16), header(b"f", size=9 << 20))
    assert "the layer has more than 10485760 bytes" in layers.refused(data, "--bytes", 10 << 20)


def test_an_endless_number_of_members_is_refused(layers):
    data = endless(directory("d"))
    assert "the layer has more than 1048576 bytes" in layers.refused(data, "--bytes", 1 << 20)


def test_an_endless_number_of_headers_without_a_member_is_refused(layers):
    data = endless(pax(comment="x" * 1000))
    assert "the layer has more than 1048576 bytes" in layers.refused(data, "--bytes", 1 << 20)


def test_endless_bytes_after_the_end_of_the_archive_are_refused(layers):
    assert "the layer has more than 1048576" in layers.refused(endless(bytes(512)), "--bytes", 1 << 20)


def test_more_than_a_million_members_are_refused(layers):
    read, write = os.pipe()

    def write_blocks():
        with contextlib.suppress(BrokenPipeError), open(write, "wb") as pipe:
            for _ in range(1000):
                pipe.write(directory(".") * 1000)
            pipe.write(member("late") * 100)
    threading.Thread(target=write_blocks, daemon=True).start()
    with open(read, "rb") as pipe:
        error = layers.refused(pipe)
    assert 'member "late": the layer has more than 1000000 members' in error


def test_implied_directories_count_towards_the_limit_of_members(layers):
    data = member("/".join("a" * 40), data=b"x")
    assert "more than 30 members" in layers.refused(data, "--entries", 30)


def test_too_many_implied_directories_are_refused(layers):
    path = "/".join(["\1" * 100] * 30)
    data = b"".join(pax(path="%d/%s" % (i, path)) + directory("x") for i in range(30))
    assert "too many implied directories" in layers.refused(data)


def test_a_sparse_file_larger_than_the_limit_is_refused(layers):
    data = pax(GNU__sparse__map="", GNU__sparse__size=str(1 << 50)) + member("f")
    assert "at most 68719476736 allowed" in layers.refused(data)


def test_an_extra_header_larger_than_a_megabyte_is_refused(layers):
    for kind in b"x", b"g", b"L", b"K":
        data = member("x", kind, size=(1 << 20) + 1)
        assert "invalid size 1048577: at most 1048576 bytes are allowed" in layers.refused(data)


def test_paths_longer_than_the_kernel_limit_are_refused(layers):
    assert "path too long: more than 4095 bytes" in layers.refused(pax(path="a/" * 3000) + member("x"))
    assert "File name too long" in layers.refused(pax(path="a" * 256) + member("x"))
    data = pax(linkpath="a/" * 3000) + symlink("x", "y")
    assert "File name too long" in layers.refused(data)


@contextlib.contextmanager
def disk(path, options):
    """Mounts a small file system."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "disk", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def free_bytes(path):
    fs = os.statvfs(path)
    return fs.f_bavail * fs.f_frsize


def test_a_file_larger_than_the_free_space_is_refused_before_it_is_written(layers):
    with disk(layers.root, "size=20m"):
        error = layers.refused(header(b"f", size=6 << 20), "--reserve", 15 << 20)
    assert "not enough disk space for %d bytes" % (6 << 20) in error


SMALL = {"files of many bytes": lambda i: member("f%d" % i, data=bytes(600 << 10)),
         "files of one byte": lambda i: member("f%d" % i, data=b"x"),
         "links": lambda i: pax(linkpath="x" * 200) + symlink("l%d" % i, "x")}


@pytest.mark.parametrize("what", SMALL)
def test_unpacked_files_do_not_use_the_disk_reserve(what, layers):
    data = b"".join(map(SMALL[what], range(60 if "many" in what else 6000)))
    with disk(layers.root, "size=20m"):
        error = layers.refused(data, "--reserve", 15 << 20)
        assert free_bytes(layers.root) >= 15 << 20
    assert "not enough disk space for" in error and "bytes reserved" in error


def test_a_recipe_does_not_use_the_disk_reserve(tmp_path):
    with disk(tmp_path, "size=20m"):
        layers = Layers(tmp_path)
        error = layers.refused(member(".wh..wh.junk", data=os.urandom(10 << 20)), "--reserve", 15 << 20)
        assert free_bytes(tmp_path) >= 14 << 20  # not exactly 15 MiB, because the recipe is buffered
    assert "not enough disk space for" in error


def test_one_percent_of_the_inodes_stays_free(layers):
    data = b"".join(member("f%d" % i) for i in range(1000))
    with disk(layers.root, "size=20m,nr_inodes=1000"):
        assert "not enough free inodes" in layers.refused(data, "--reserve", 1)
        assert os.statvfs(layers.root).f_favail >= 10


def test_unpacking_to_a_full_disk_fails(layers):
    data = b"".join(member("f%d" % i) for i in range(200))
    with disk(layers.root, "size=1m,nr_inodes=100"):
        assert "No space left on device" in layers.refused(data)


def test_a_stalled_archive_times_out(layers):
    read, write = os.pipe()
    os.write(write, member("f", data=b"x"))
    with open(read, "rb") as pipe:
        assert "layer data stalled for 100 ms" in layers.refused(pipe, "--idle", 100)
    os.close(write)


# ---- malformed archives ------------------------------------------------------------------------

def test_an_archive_truncated_anywhere_is_refused(layers):
    data = (pax(path="p/q") + member("f", data=b"x" * 700) + directory("d")
            + member("././@LongLink", b"L", b"long\0") + member("g", data=b"y"))
    # the archive may end after a member or in the padding of a member
    whole = {0, *range(512 * 3 + 700, 512 * 5 + 1), 512 * 6, *range(512 * 9 + 1, 512 * 10)}
    for cut in range(0, len(data), 32):
        if cut not in whole:
            assert "truncated tar archive: ends at byte" in layers.refused(data[:cut], end=b""), cut
        else:
            layers.unpack(data[:cut], end=b"")
    layers.unpack(data, end=b"")
    layers.unpack(data, end=bytes(512))


@pytest.mark.parametrize("data", [b"x" * 512, b"\x1f\x8b\x08" + bytes(509), b"<html>" + b" " * 1000])
def test_a_file_that_is_not_a_tar_archive_is_refused(layers, data):
    assert "not a tar header: checksum mismatch" in layers.refused(data)


def test_data_after_a_zero_block_is_refused(layers):
    assert "unexpected data after a zero block" in layers.refused(bytes(512) + member("f"))


@pytest.mark.parametrize("kind", [b"M", b"V", b"D", b"X", b"A", b"\xff"])
def test_members_of_unsupported_types_are_refused(layers, kind):
    assert "unsupported member type 0x%02x" % kind[0] in layers.refused(member("f", kind))


def test_malformed_pax_records_are_refused(layers):
    for body in (b"x", b"5 a=", b"9999 a=b\n", b"0 a=b\n", b"4 a=\n", b"6 =bc\n", b"7 a\0=b\n",
                 b"6 a=b\n5", b"-6 a=b\n", b"99999999999999999999 a=b\n"):
        assert "malformed PAX record" in layers.refused(
            member("x", b"x", body) + member("f"))
    assert "PAX record path" in layers.refused(pax(path="a\0b") + member("f"))


def test_attributes_that_control_the_host_are_skipped(layers):
    result = layers.unpack(
        pax(SCHILY__xattr__trusted__overlay__redirect="/x", SCHILY__xattr__trusted__overlay__opaque="y",
            SCHILY__xattr__user__overlay__opaque="y", SCHILY__xattr__security__selinux="x",
            SCHILY__xattr__system__posix_acl_access="x") + directory("d"))
    assert result["skipped"] == 5 and os.listxattr(layers.root / "d") == []


def test_a_diff_id_mismatch_is_refused(layers):
    error = layers.refused(member("f"), "--diff-id", "sha256:" + "0" * 64)
    assert "diff ID mismatch: got sha256:" in error and ", want sha256:0000" in error
