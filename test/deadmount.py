# SPDX-License-Identifier: Apache-2.0
"""
deadmount.py - a file system that does not answer, like a network file system whose server is gone

What:  class DeadMount: a FUSE file system with an empty root directory. Its attributes are known, so that it can be
       mounted into a container. Every other request is received and never answered: its process cannot even be
       killed. end() makes all requests fail. The fixture dead is such a file system, at the directory "dead".
"""
import ctypes
import os
import select
import struct
import threading

import pytest

GETATTR, INIT = 3, 26
HEADER = struct.Struct("=IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, unused
FOREVER = 1 << 40  # seconds for which the attributes are valid
PARALLEL = 1 << 18  # requests for one directory do not wait for each other
INIT_REPLY = struct.pack("=IIIIHHIIHHII24x", 7, 31, 0, PARALLEL, 0, 0, 4096, 1, 0, 0, 0, 0)
ROOT_ATTRIBUTES = struct.pack("=QII6Q10I", FOREVER, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)

libc = ctypes.CDLL(None, use_errno=True)


class DeadMount:
    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self.stop, self.stopped = os.pipe()
        options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % self.fd
        if libc.mount(b"dead", bytes(path), b"fuse", 0, options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount FUSE at %s" % path)
        self.waiting = 0  # requests without an answer
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while self.fd in (ready := select.select([self.fd, self.stop], [], [])[0]) and self.stop not in ready:
            request = os.read(self.fd, 1 << 20)
            _, opcode, unique, *_ = HEADER.unpack_from(request)
            reply = {INIT: INIT_REPLY, GETATTR: ROOT_ATTRIBUTES}.get(opcode)
            if reply:
                os.write(self.fd, struct.pack("=IiQ", 16 + len(reply), 0, unique) + reply)
            else:
                self.waiting += 1
        os.close(self.fd)

    def end(self):
        if not self.thread.is_alive():
            return
        os.write(self.stopped, b"x")
        self.thread.join()
        libc.umount2(bytes(self.path), 2)  # MNT_DETACH
        os.close(self.stop)
        os.close(self.stopped)


@pytest.fixture
def dead(tmp_path):
    mount = DeadMount(tmp_path / "dead")
    yield mount
    mount.end()
