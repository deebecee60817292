# SPDX-License-Identifier: Apache-2.0
"""
test_unpack.py - unpacking of layers, compared with GNU tar and umoci

Hostile layers are in test_unpack_hostile.py.
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

from layers import (BLOCK, END, Failed, Layers, base256, directory, hardlink, header, is_opaque, is_whiteout,
                    member, names, padded, pax, pax_records, symlink, tree, xattrs)

# cap_net_raw=ep, in the kernel's format
CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")


@pytest.fixture
def layers(tmp_path):
    return Layers(tmp_path)


def lstat(layers, path):
    return os.lstat(layers.root / path)


# ---- members -----------------------------------------------------------------------------------

def test_a_file_has_its_content_owner_mode_and_time(layers):
    result = layers.unpack(member("f", data=b"hello", mode=0o640, uid=12, gid=34, mtime=99))
    st = lstat(layers, "f")
    assert (layers.root / "f").read_bytes() == b"hello"
    assert (st.st_uid, st.st_gid, st.st_mode, st.st_mtime) == (12, 34, stat.S_IFREG | 0o640, 99)
    assert result["content"] == 5 and result["inodes"] == 1 and result["rebuildable"]


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6711, 0o1777, 0o0, 0o7777])
def test_set_user_id_bits_survive_the_change_of_owner(layers, mode):
    layers.unpack(member("f", data=b"x", mode=mode, uid=5, gid=6)
                  + directory("d", mode=mode, uid=5, gid=6))
    assert stat.S_IMODE(lstat(layers, "f").st_mode) == mode
    assert stat.S_IMODE(lstat(layers, "d").st_mode) == mode


def test_the_umask_is_ignored(layers):
    before = os.umask(0o777)
    try:
        layers.unpack(directory("d", mode=0o777) + member("d/f", mode=0o666))
    finally:
        os.umask(before)
    assert stat.S_IMODE(lstat(layers, "d").st_mode) == 0o777
    assert stat.S_IMODE(lstat(layers, "d/f").st_mode) == 0o666


def test_a_set_group_id_directory_does_not_change_the_group_of_its_files(layers):
    layers.unpack(directory("d", mode=0o2755, gid=7) + member("d/f", gid=0) + directory("d/e"))
    assert lstat(layers, "d/f").st_gid == 0 and lstat(layers, "d/e").st_gid == 0
    assert stat.S_IMODE(lstat(layers, "d/e").st_mode) == 0o755


def test_directories_keep_their_times(layers):
    layers.unpack(directory(".", mtime=1) + directory("a", mtime=2) + directory("a/b", mtime=3)
                  + member("a/b/f", data=b"x") + member("a/g") + directory("c", mtime=4)
                  + member("a/b/h") + symlink("a/l", "x") + hardlink("c/h", "a/g")
                  + member("c/.wh.x"))
    assert [lstat(layers, p).st_mtime for p in (".", "a", "a/b", "c")] == [1, 2, 3, 4]


def test_times_have_nanoseconds_and_may_be_before_1970(layers):
    layers.unpack(pax(mtime="1.123456789012") + member("a") + pax(mtime="-1.25") + member("b")
                  + member("c", mtime=base256(-10, 12)) + pax(mtime="12") + symlink("l", "x"))
    assert lstat(layers, "a").st_mtime_ns == 1123456789
    assert lstat(layers, "b").st_mtime_ns == -1250000000
    assert lstat(layers, "c").st_mtime_ns == -10 * 10**9
    assert lstat(layers, "l").st_mtime_ns == 12 * 10**9


def test_times_out_of_range_are_clamped(layers):
    layers.unpack(member("a", mtime=base256(2**62, 12)) + directory("d", mtime=base256(-2**63, 12))
                  + member("d/f") + pax(mtime="-9223372036854775807.5") + symlink("l", "x"))
    assert lstat(layers, "a").st_mtime > 2**31 and lstat(layers, "l").st_mtime < 0


def test_links_devices_and_fifos_are_created(layers):
    layers.unpack(member("f", data=b"x") + hardlink("h", "/f") + symlink("s", "../../etc/passwd", uid=3)
                  + member("c", b"3", major=1, minor=3, mode=0o666, uid=1) + member("b", b"4", major=259, minor=70000)
                  + member("p", b"6", mode=0o622))
    assert lstat(layers, "f").st_ino == lstat(layers, "h").st_ino
    assert os.readlink(layers.root / "s") == "../../etc/passwd" and lstat(layers, "s").st_uid == 3
    assert lstat(layers, "c").st_rdev == os.makedev(1, 3)
    assert lstat(layers, "c").st_mode == stat.S_IFCHR | 0o666
    assert lstat(layers, "b").st_rdev == os.makedev(259, 70000) and stat.S_ISBLK(lstat(layers, "b").st_mode)
    assert lstat(layers, "p").st_mode == stat.S_IFIFO | 0o622


def test_file_capabilities_survive_writing_and_chown(layers):
    layers.unpack(pax(SCHILY__xattr__security__capability=CAPABILITY)
                  + member("f", data=b"x", uid=5, mode=0o4755) + member("g", data=b"x"))
    assert xattrs(layers.root / "f") == {"security.capability": CAPABILITY}
    assert xattrs(layers.root / "g") == {}


def test_user_attributes_may_contain_any_bytes(layers):
    value = bytes(range(256))
    result = layers.unpack(pax(SCHILY__xattr__user__x=value, SCHILY__xattr__user__empty="")
                           + directory("d"))
    if result["skipped"]:
        pytest.skip("user.* attributes are not supported by this file system")
    assert xattrs(layers.root / "d") == {"user.x": value, "user.empty": b""}


def test_implied_directories_are_created_and_listed(layers):
    result = layers.unpack(member("a/b/c", data=b"x") + member("a/d") + directory("a/b", mode=0o700)
                           + member("e/.wh.f"))
    assert result["implied"] == ["", "a", "e"]
    assert lstat(layers, "a").st_mode == stat.S_IFDIR | 0o755
    assert lstat(layers, "a/b").st_mode == stat.S_IFDIR | 0o700


def test_the_root_directory_gets_the_attributes_that_the_archive_has_for_it(layers):
    for name in ".", "./", "/", "":
        layers.unpack(directory(name, mode=0o711, uid=9, mtime=5) + member("f"))
        st = lstat(layers, ".")
        assert (stat.S_IMODE(st.st_mode), st.st_uid, st.st_mtime) == (0o711, 9, 5)


def test_the_later_of_two_members_with_the_same_path_is_kept(layers):
    result = layers.unpack(member("f", data=b"old") + member("./f", data=b"new"))
    assert (layers.root / "f").read_bytes() == b"new" and not result["rebuildable"]


def test_a_directory_that_is_listed_twice_has_the_later_attributes(layers):
    result = layers.unpack(directory("d", mode=0o700) + member("d/f") + directory("d", mode=0o755))
    assert names(layers.root) == ["d", "d/f"] and result["rebuildable"]
    assert stat.S_IMODE(lstat(layers, "d").st_mode) == 0o755


# ---- names, numbers and formats ----------------------------------------------------------------

LONG = "/".join(["n" * 100] * 20)


@pytest.mark.parametrize("how", [
    pax(path=LONG) + member("x", data=b"1"),
    member("././@LongLink", b"L", LONG.encode() + b"\0") + member("x", data=b"1"),
    pax(path="other") + member("././@LongLink", b"L", LONG.encode()) + member("x", data=b"1"),
    pax(path="other") + pax(path=LONG) + member("x", data=b"1"),
])
def test_long_names_are_read_from_pax_and_gnu_headers(layers, how):
    layers.unpack(how + member("y"))
    assert (layers.root / LONG).read_bytes() == b"1" and (layers.root / "y").exists()


def test_an_empty_extended_header_cancels_an_earlier_one(layers):
    layers.unpack(pax(path="a") + member("x", b"x") + member("b")
                  + member("././@LongLink", b"L", b"c") + member("././@LongLink", b"L", b"\0")
                  + member("d") + member("././@LongLink", b"L", b"e") + member("x", b"L")
                  + member("f"))
    assert names(layers.root) == ["b", "d", "f"]


def test_long_link_targets_are_read_from_pax_and_gnu_headers(layers):
    layers.unpack(pax(linkpath=LONG) + symlink("a", "x")
                  + member("././@LongLink", b"K", LONG.encode() + b"\0") + symlink("b", "x"))
    assert os.readlink(layers.root / "a") == os.readlink(layers.root / "b") == LONG


def test_the_prefix_is_used_only_in_ustar_headers(layers):
    times = b"14000000000\0" * 2
    layers.unpack(header(b"f", more=b"dir/sub") + header(b"g", more=times, magic=b"ustar  \0")
                  + header(b"h", more=b"dir", magic=bytes(8)))
    assert names(layers.root) == ["dir", "dir/sub", "dir/sub/f", "g", "h"]


def test_a_prefix_in_a_gnu_header_written_by_old_go_is_used(layers):
    layers.unpack(header(b"f", more=b"dir/sub", magic=b"ustar  \0"))
    assert names(layers.root) == ["dir", "dir/sub", "dir/sub/f"]


def test_numbers_in_every_format_are_decoded(layers):
    layers.unpack(member("a", uid=base256(4000000000, 8), gid=b"   17\0  ", mtime=b"17 " + bytes(9))
                  + pax(uid="3000000000", gid="5") + member("b", uid=1, gid=1)
                  + member("c", data=b"12345", size=base256(5, 12)))
    assert (lstat(layers, "a").st_uid, lstat(layers, "a").st_gid) == (4000000000, 15)
    assert (lstat(layers, "b").st_uid, lstat(layers, "b").st_gid) == (3000000000, 5)
    assert lstat(layers, "a").st_mtime == 15 and lstat(layers, "c").st_size == 5


def test_a_size_in_a_pax_header_overrides_that_of_the_member(layers):
    data = pax(size="700") + header(b"f", size=0) + padded(b"x" * 700) + member("g")
    layers.unpack(data)
    assert lstat(layers, "f").st_size == 700 and names(layers.root) == ["f", "g"]


def test_global_headers_and_empty_values_are_ignored(layers):
    layers.unpack(member("x", b"g", b"15 path=global\n") + member("a")
                  + pax_records([("path", "b"), ("path", "")]) + member("c"))
    assert names(layers.root) == ["a", "c"]


def test_a_name_with_a_trailing_slash_is_a_directory_in_v7_archives(layers):
    layers.unpack(member("d/", b"\0") + member("f", b"\0", b"x") + member("g", b"7", b"y"))
    assert stat.S_ISDIR(lstat(layers, "d").st_mode) and stat.S_ISREG(lstat(layers, "f").st_mode)


def test_signed_checksums_of_old_programs_are_accepted(layers):
    block = bytearray(header("é".encode()))
    total = sum(b if b < 128 else b - 256 for b in block[:148] + b" " * 8 + block[156:])
    block[148:156] = b"%06o\0 " % total
    layers.unpack(bytes(block))
    assert names(layers.root) == ["é"]


def test_reads_of_any_size_give_the_same_result(layers, tmp_path):
    data = (pax(path="p/q", mtime="1.5") + member("f", data=b"x" * 1300) + directory("d")
            + member("././@LongLink", b"L", b"l/" * 300 + b"m") + member("g", data=b"y" * 512)
            + pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="9000",
                  GNU__sparse__name="sparse") + member("s", data=padded(b"1\n4096\n5\n") + b"12345"))
    want = None
    for chunk in 1, 7, 511, 512, 513, 100000:
        root = tmp_path / "root" / str(chunk)
        root.mkdir()
        result = layers.unpack(data, "--chunk", chunk, root=root)
        for path in result["implied"]:
            os.utime(root / path, (0, 0))
        got = result, tree(root)
        want = want or got
        assert got == want
    assert want[0]["diff_id"] == "sha256:" + hashlib.sha256(data + END).hexdigest()


# ---- sparse files ------------------------------------------------------------------------------

def old_sparse(pieces, size, data):
    """GNU's oldest format: four pieces in the header, 21 in each block after it."""
    def table(part, n):
        return b"".join(b"%011o\0%011o\0" % p for p in part).ljust(24 * n, b"\0")
    more = bytes(41) + table(pieces[:4], 4) + (b"\1" if pieces[4:] else b"\0") + b"%011o\0" % size
    blocks, rest = b"", pieces[4:]
    while rest:
        part, rest = rest[:21], rest[21:]
        blocks += (table(part, 21) + (b"\1" if rest else b"\0")).ljust(BLOCK, b"\0")
    return header(b"f", b"S", size=len(data), more=more, magic=b"ustar  \0") + blocks + padded(data)


PIECES = [(i * 8192, 100) for i in range(1, 60)]
DATA = b"".join(b"%c" % (65 + i % 26) * n for i, (_, n) in enumerate(PIECES))
TEXT = "\n".join(str(n) for p in [(len(PIECES),)] + PIECES for n in p) + "\n"
SPARSE = {
    "old": old_sparse(PIECES, 1 << 20, DATA),
    "0.0": pax_records([("GNU.sparse.major", "0"), ("GNU.sparse.minor", "0"),
                        ("GNU.sparse.size", str(1 << 20))]
                       + [r for o, n in PIECES for r in (("GNU.sparse.offset", str(o)),
                                                         ("GNU.sparse.numbytes", str(n)))])
    + member("f", data=DATA),
    "0.1": pax(GNU__sparse__map=",".join("%d,%d" % p for p in PIECES),
               GNU__sparse__size=str(1 << 20), GNU__sparse__name="f") + member("x/f", data=DATA),
    "1.0": pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__name="f",
               GNU__sparse__realsize=str(1 << 20)) + member("x/f", data=padded(TEXT.encode()) + DATA),
}


@pytest.mark.parametrize("form", SPARSE)
def test_sparse_files_are_unpacked_with_their_holes(layers, form):
    want = bytearray(1 << 20)
    for i, (offset, length) in enumerate(PIECES):
        want[offset:offset + length] = DATA[i * 100:(i + 1) * 100]
    layers.unpack(SPARSE[form] + member("g", data=b"behind"))
    assert (layers.root / "f").read_bytes() == want
    assert lstat(layers, "f").st_blocks * 512 < 1 << 19
    assert (layers.root / "g").read_bytes() == b"behind"
    assert layers.rebuild() == SPARSE[form] + member("g", data=b"behind") + END


def test_the_padding_of_a_sparse_map_is_ignored(layers):
    data = (pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="9000")
            + member("f", data=b"1\n4096\n5\n".ljust(BLOCK, b"\n") + b"12345"))
    layers.unpack(data)
    assert (layers.root / "f").read_bytes() == bytes(4096) + b"12345" + bytes(9000 - 4101)


def test_an_empty_piece_at_the_end_of_a_sparse_map_sets_the_size(layers):
    data = pax(GNU__sparse__map="0,1,1000000,0", GNU__sparse__size="1000000") + member("f", data=b"x")
    layers.unpack(data)
    assert lstat(layers, "f").st_size == 1000000


def test_a_sparse_file_without_data_is_one_hole(layers):
    layers.unpack(pax(GNU__sparse__map="", GNU__sparse__size="1000000") + member("f"))
    assert (lstat(layers, "f").st_size, lstat(layers, "f").st_blocks) == (1000000, 0)


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


# ---- recipes -----------------------------------------------------------------------------------

def sample():
    return (directory(".") + member("a", data=b"a" * 100000) + hardlink("b", "a") + member("empty")
            + member(".wh.gone", data=b"with data") + symlink("l", "dir") + directory("dir")
            + member("l/through", data=b"t") + pax(path="x" * 200) + member("c", data=b"c" * 513)
            + SPARSE["1.0"])


@pytest.mark.parametrize("end", [END, b"", bytes(512), END + bytes(8192), END + b"anything"])
def test_an_archive_is_rebuilt_byte_for_byte(layers, end):
    result = layers.unpack(sample(), end=end)
    assert result["rebuildable"]
    again = layers.rebuild()
    assert again == sample() + end
    assert result["diff_id"] == "sha256:" + hashlib.sha256(again).hexdigest()
    assert layers.verify() == []


def test_verify_lists_each_damaged_file(layers):
    layers.unpack(sample())
    (layers.root / "a").write_bytes(b"a" * 99999 + b"b")
    (layers.root / "dir/through").unlink()
    (layers.root / ("x" * 200)).write_bytes(b"short")
    (layers.root / "f").unlink()
    (layers.root / "f").mkdir()
    assert layers.verify() == ["a: content changed",
                               "l/through: missing",
                               "x" * 200 + ": too short", "f: not a regular file"]
    with pytest.raises(Failed, match='file "a": content changed'):
        layers.rebuild()


OPAQUE = "trusted.overlay.opaque"
CHANGES = {
    "bytes after the end": (lambda r: (r / "a").open("ab").write(b"more"), ["a: too long"]),
    "bytes in an empty file": (lambda r: (r / "empty").write_bytes(b"x"), ["empty: too long"]),
    "an empty file deleted": (lambda r: (r / "empty").unlink(), ["empty: missing"]),
    "bytes in a hole": (lambda r: write_at(r / "f", 5000, b"x"), ["f: content changed"]),
    "a mode": (lambda r: (r / "a").chmod(0o4777), ["a: mode changed"]),
    "an owner": (lambda r: os.chown(r / "empty", 1, 0), ["empty: owner changed"]),
    "a capability": (lambda r: os.setxattr(r / "a", "security.capability", CAPABILITY),
                ["a: extended attributes changed"]),
    "a link": (lambda r: ((r / "s").unlink(), (r / "s").symlink_to("/etc/passwd")), ["s: link target changed"]),
    "a hard link": (lambda r: ((r / "b").unlink(), (r / "b").write_bytes(b"a" * 100000)),
                    ["b: not a hard link to its target"]),
    "a device": (lambda r: ((r / "null").unlink(), os.mkfifo(r / "null")), ["null: file type changed"]),
    "a directory's mode": (lambda r: (r / "dir").chmod(0o777), ["dir: mode changed"]),
    "the root's mode": (lambda r: r.chmod(0o700), ["/: mode changed"]),
    "an empty directory deleted": (lambda r: (r / "void").rmdir(), ["void: missing"]),
    "a directory made opaque": (lambda r: os.setxattr(r / "dir", OPAQUE, b"y"),
                             ["dir: opaque attribute changed"]),
    "an opaque directory made transparent": (lambda r: os.removexattr(r / "hides", OPAQUE),
                                ["hides: opaque attribute changed"]),
    "an implied directory replaced by a link": (lambda r: ((r / "implied").rename(r / "dir/i"), (r / "implied").symlink_to("dir/i")),
                                 ["dir/i: not part of the layer", "implied: not a directory"]),
    "a whiteout deleted": (lambda r: (r / "gone").unlink(), [".wh.gone: missing"]),
    "a whiteout replaced by a file": (lambda r: ((r / "gone").unlink(), (r / "gone").write_bytes(b"")),
                          ["gone: not a whiteout"]),
    "a new file": (lambda r: (r / "dir/new").write_bytes(b"x"), ["dir/new: not part of the layer"]),
    "a new directory": (lambda r: (r / "implied/new").mkdir(), ["implied/new: not part of the layer"]),
}


def write_at(path, offset, data):
    with path.open("r+b") as f:
        f.seek(offset)
        f.write(data)


def everything():
    return (sample() + symlink("s", "a") + member("null", b"3", major=1, minor=3) + directory("void")
            + directory("hides") + member("hides/.wh..wh..opq") + directory("again", mode=0o700) + directory("again", mode=0o755)
            + member(".wh.both") + directory("both") + member("implied/inside", data=b"i")
            + member(".wh..wh.aufs/note", data=b"n") + pax(SCHILY__xattr__user__x="y") + member("attributed"))


def test_an_unchanged_layer_is_not_damaged(layers):
    layers.unpack(everything())
    assert layers.verify() == []


@pytest.mark.parametrize("what", CHANGES)
def test_verify_finds_every_change(layers, what):
    change, damage = CHANGES[what]
    layers.unpack(everything())
    change(layers.root)
    assert sorted(layers.verify()) == damage


def test_a_corrupt_recipe_is_refused(layers):
    layers.unpack(sample())
    whole = layers.recipe.read_bytes()
    for damage in b"", whole[:10], whole[:-1], b"not a recipe", whole[:-4] + b"\0\0\0\0":
        layers.recipe.write_bytes(damage)
        for read in layers.rebuild, layers.verify:
            with pytest.raises(Failed, match="corrupt recipe"):
                read()
    for at in range(0, len(whole), 20):
        layers.recipe.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(Failed):
            layers.rebuild()


# ---- compared with other programs --------------------------------------------------------------

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
