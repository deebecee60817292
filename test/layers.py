# SPDX-License-Identifier: Apache-2.0
"""
layers.py - generate archives and unpack them, for test_unpack*.py

What:  member() returns one member of an archive, valid or not;
       Layers unpacks an archive into a directory, with files outside it that must not change;
       tree() returns all attributes of the files in a directory.
"""
import hashlib
import json
import os
import pathlib
import stat
import subprocess

UNPACK = os.environ.get("HAWSER_BUILD", "build") + "/test/unpack"
# This memory limit and the seccomp filter suffice for every archive, but not for a sanitizer.
SANITIZED = "ASAN_OPTIONS" in os.environ
BOUNDED = [] if SANITIZED else ["prlimit", "--data=%d" % (16 << 20)]
BLOCK = 512
END = bytes(2 * BLOCK)


def octal(n, width):
    return b"%0*o\0" % (width - 1, n)


def base256(n, width):
    """A number in GNU's base-256 form; may be negative."""
    raw = bytearray((n & ((1 << 8 * width) - 1)).to_bytes(width, "big"))
    raw[0] |= 0x80
    return bytes(raw)


def number(n, width):
    return n if isinstance(n, bytes) else octal(n, width)


def header(name, kind=b"0", size=0, mode=0o644, uid=0, gid=0, mtime=1700000000, link=b"",
           major=0, minor=0, magic=b"ustar\x0000", more=b""):
    """A header block with a correct checksum; numbers may be bytes, which are used unchanged."""
    block = (name.ljust(100, b"\0") + number(mode, 8) + number(uid, 8) + number(gid, 8)
             + number(size, 12) + number(mtime, 12) + b" " * 8 + kind + link.ljust(100, b"\0")
             + magic + bytes(64) + number(major, 8) + number(minor, 8) + more)
    block = block.ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def member(name, kind=b"0", data=b"", **keys):
    if isinstance(name, str):
        name = name.encode()
    keys.setdefault("size", len(data))
    if isinstance(keys.get("link"), str):
        keys["link"] = keys["link"].encode()
    return header(name, kind, **keys) + padded(data)


def directory(name, mode=0o755, **keys):
    return member(name, b"5", mode=mode, **keys)


def symlink(name, link, **keys):
    return member(name, b"2", link=link, mode=0o777, **keys)


def hardlink(name, link, **keys):
    return member(name, b"1", link=link, **keys)


def pax(**records):
    """A PAX header; two underscores in a key stand for a dot, values are text or bytes."""
    return pax_records([(k.replace("__", "."), v) for k, v in records.items()])


def pax_records(records):
    body = b""
    for key, value in records:
        rest = b" %s=%s\n" % (key.encode(), value if isinstance(value, bytes) else value.encode())
        length = len(rest) + 1
        while length != len(rest) + len(str(length)):
            length += 1
        body += str(length).encode() + rest
    return member("pax", b"x", body)


def xattrs(path):
    return {n: os.getxattr(path, n, follow_symlinks=False)
            for n in os.listxattr(path, follow_symlinks=False) if n != "security.selinux"}


def entry(path, ignore):
    st = os.lstat(path)
    found = {"mode": oct(st.st_mode), "owner": (st.st_uid, st.st_gid), "mtime": st.st_mtime_ns,
             "xattrs": xattrs(path)}
    if stat.S_ISREG(st.st_mode):
        found.update(size=st.st_size, sum=hashlib.sha256(path.read_bytes()).hexdigest(),
                     links=st.st_nlink)
    elif stat.S_ISLNK(st.st_mode):
        found["target"] = os.readlink(path)
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        found["device"] = (os.major(st.st_rdev), os.minor(st.st_rdev))
    return {k: v for k, v in found.items() if k not in ignore}


def tree(root, ignore=()):
    """{path: all its attributes}; "." is the directory itself."""
    root = pathlib.Path(root)
    found = {".": entry(root, ignore)}
    for parent, directories, files in os.walk(root):
        for name in directories + files:
            path = pathlib.Path(parent) / name
            found[str(path.relative_to(root))] = entry(path, ignore)
    return found


def names(root):
    return sorted(p for p in tree(root, ignore=("sum",)) if p != ".")


def is_whiteout(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def is_opaque(path):
    return xattrs(path).get("trusted.overlay.opaque") == b"y"


class Failed(Exception):
    pass


class Layers:
    """Directories for a layer: root, where it is unpacked, and outside, where nothing may change."""

    def __init__(self, top):
        self.top = top
        self.root = top / "root"
        self.outside = top / "outside"
        self.recipe = top / "recipe"
        self.root.mkdir()
        (self.outside / "folder").mkdir(parents=True)
        (self.outside / "secret").write_text("secret")
        (self.outside / "folder" / "file").write_text("file")
        self.before = tree(self.outside)

    def run(self, *arguments, data=b""):
        feed = {"input": data} if isinstance(data, bytes) else {"stdin": data}
        done = subprocess.run([*BOUNDED, UNPACK, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **feed)
        assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr
        if done.returncode == 1:
            raise Failed(done.stderr.decode(errors="replace").strip())
        assert done.returncode == 0, done
        return done.stdout

    def unpack(self, data, *options, root=None, end=END):
        """The result. Checks that nothing outside has changed, also after an error."""
        if isinstance(data, bytes):
            data += end
        try:
            options = ("--open", *options) if SANITIZED else options
            return json.loads(self.run("--recipe", self.recipe, *options, root or self.root,
                                       data=data))
        finally:
            self.check_outside()

    def refused(self, data, *options, **keys):
        """The error of an archive that must be refused."""
        try:
            result = self.unpack(data, *options, **keys)
        except Failed as failed:
            return str(failed)
        raise AssertionError("not refused: %s" % result)

    def check_outside(self):
        assert tree(self.outside) == self.before
        assert set(os.listdir(self.top)) <= {"root", "outside", "recipe"}

    def rebuild(self, root=None):
        return self.run("--rebuild", self.recipe, root or self.root)

    def verify(self, *options, root=None):
        return self.run("--verify", self.recipe, *options, root or self.root).decode().splitlines()
