# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_limits.py - numbers and limits of hostile layers
"""
import contextlib
import os
import subprocess
import threading

import pytest

from layers import BLOCK, Layers, base256, directory, header, member, names, pax, symlink


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
