# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_malformed.py - malformed archives
"""
import os

import pytest

from layers import directory, member, pax


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
