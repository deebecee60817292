# SPDX-License-Identifier: Apache-2.0
"""
test_unpack_recipes.py - recipes, from which a layer is rebuilt
"""
import hashlib
import os

import pytest

from layers import END, Failed, directory, hardlink, member, pax, symlink
from samples import CAPABILITY, CAPABILITY_3, SPARSE


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
    # in many passes, each for a few names
    assert sorted(layers.verify("--names", 2)) == damage


def test_verify_needs_little_memory_for_many_long_names(layers):
    """The programs have 16 MiB, see layers.BOUNDED."""
    def long_name(n):
        return "%06d" % n + "n" * 194
    folders = ["top/%s/%d" % ("d" * 80, n) for n in range(200)]
    layers.unpack(b"".join(directory(f, mode=0o750) + b"".join(
        pax(path=f + "/" + long_name(n)) + member("x") for n in range(200)) for f in folders))
    assert layers.verify() == []
    (layers.root / folders[7] / "new").write_bytes(b"")
    (layers.root / folders[8] / long_name(0)).unlink()
    (layers.root / folders[9]).chmod(0o700)
    damage = [folders[7] + "/new: not part of the layer", folders[8] + "/" + long_name(0) + ": missing",
              folders[9] + ": mode changed"]
    assert sorted(layers.verify()) == damage
    assert sorted(layers.verify("--names", 5000)) == damage


def test_verify_compares_more_names_than_fit_into_memory_in_several_passes(layers):
    layers.unpack(b"".join(directory("d%d" % d) + member("d%d/f" % d) + b"".join(
        hardlink("d%d/%d" % (d, n), "d%d/f" % d) for n in range(1000)) for d in range(140)))
    (layers.root / "d77/new").write_bytes(b"")
    (layers.root / "d78/500").unlink()
    assert sorted(layers.verify()) == ["d77/new: not part of the layer", "d78/500: missing"]


def test_verify_walks_through_directories_nested_deeply(layers):
    path = "/".join("d" for _ in range(1500))
    layers.unpack(member("a") + pax(path=path + "/f") + member("f", data=b"x") + member("z"))
    assert layers.verify() == []
    (layers.root / "d/d/d/new").write_bytes(b"")
    (layers.root / "new").write_bytes(b"")
    assert sorted(layers.verify()) == ["d/d/d/new: not part of the layer", "new: not part of the layer"]


def with_capability(value):
    return pax(SCHILY__xattr__security__capability=value) + member("f", data=b"x")


def test_a_capability_of_version_3_with_root_id_0_is_equal_to_what_the_kernel_returns(layers):
    layers.unpack(with_capability(CAPABILITY_3))
    assert os.getxattr(layers.root / "f", "security.capability") == CAPABILITY
    assert layers.verify() == []
    os.setxattr(layers.root / "f", "security.capability", b"\0" + CAPABILITY[1:])  # not effective
    assert layers.verify() == ["f: extended attributes changed"]


@pytest.mark.parametrize("value", [CAPABILITY, CAPABILITY_3[:20] + b"\1\0\0\0"], ids=["2", "3"])
def test_other_capabilities_are_compared_byte_for_byte(layers, value):
    layers.unpack(with_capability(value))
    assert layers.verify() == []
    os.setxattr(layers.root / "f", "security.capability", CAPABILITY_3[:20] + b"\2\0\0\0")
    assert layers.verify() == ["f: extended attributes changed"]


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
