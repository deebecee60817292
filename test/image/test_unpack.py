# SPDX-License-Identifier: Apache-2.0
"""
test_unpack.py - unpacking of layers, compared with GNU tar and umoci

Hostile layers are in test_unpack_hostile.py.
"""
import hashlib
import os
import stat

import pytest

from layers import (BLOCK, END, base256, directory, hardlink, header, member, names, padded, pax, pax_records,
                    symlink, tree, xattrs)
from samples import CAPABILITY, DATA, PIECES, SPARSE


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
