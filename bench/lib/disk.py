# SPDX-License-Identifier: Apache-2.0
"""A disk for one benchmark: ext4 with a journal, as on most nodes, in a file in the build directory

The file system of the build directory itself is not used, because its speed depends on the files that
were created and deleted in it earlier.
"""
import contextlib
import pathlib
import subprocess
import tempfile

SIZE = 8 << 30      # bytes; the file is sparse


def is_possible():
    return pathlib.Path("/dev/loop-control").exists()


@contextlib.contextmanager
def ext4(build, where):
    """Mounts a new file system for the duration of the context."""
    where.mkdir()
    with tempfile.NamedTemporaryFile(prefix="bench-", dir=build) as file:
        file.truncate(SIZE)
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", file.name], check=True)
        subprocess.run(["mount", "-o", "loop", file.name, where], check=True)
        try:
            yield where
        finally:
            subprocess.run(["umount", "--recursive", where], check=True)
