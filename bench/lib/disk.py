# SPDX-License-Identifier: Apache-2.0
"""A disk for one bench: ext4 with a journal, as nodes have it, in a file below the build folder

The build folder's own file system is not taken: how fast it makes files depends on what was deleted there
before, and much is.
"""
import contextlib
import pathlib
import subprocess
import tempfile

SIZE = 8 << 30      # bytes, of which only those are on the disk that are written


def is_possible():
    return pathlib.Path("/dev/loop-control").exists()


@contextlib.contextmanager
def ext4(build, where):
    """Mounted there, until the end."""
    where.mkdir()
    with tempfile.NamedTemporaryFile(prefix="bench-", dir=build) as file:
        file.truncate(SIZE)
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", file.name], check=True)
        subprocess.run(["mount", "-o", "loop", file.name, where], check=True)
        try:
            yield where
        finally:
            subprocess.run(["umount", "--recursive", where], check=True)
