# SPDX-License-Identifier: Apache-2.0
"""
hawsercli.py - the program hawser, and a runtime in Python for it: for test_hawser_*.py

What:  hawser() runs the program; on_terminal() runs it with a terminal of a given size; Runtime
       serves what a test tells it to, with Google's gRPC and messages made by message().
"""
import concurrent.futures
import errno
import fcntl
import os
import pathlib
import pty
import select
import struct
import subprocess
import termios
import time

import grpc

HAWSER = pathlib.Path(os.environ["HAWSER_BUILD"]) / "bin/hawser"
LONG = 60  # s: reached only when something is broken


def environment(**more):
    steering = ("TERM", "NO_COLOR", "CONTAINER_RUNTIME_ENDPOINT")
    env = {k: v for k, v in os.environ.items() if k not in steering}
    return {**env, **more}


def hawser(*words, stdin=b"", text=True, **more):
    """Exit status, standard output and standard error."""
    done = subprocess.run([HAWSER, *words], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=2 * LONG, env=environment(**more))
    out = done.stdout.decode() if text else done.stdout
    return done.returncode, out, done.stderr.decode()


def be_the_terminal_of(fd):
    os.setsid()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


class Terminal:
    """hawser with a terminal as all three of its descriptors."""

    def __init__(self, *words, columns=80, rows=24, **env):
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [HAWSER, *words], stdin=theirs, stdout=theirs, stderr=theirs,
            env=environment(**{"TERM": "xterm", **env}),
            preexec_fn=lambda: be_the_terminal_of(theirs))
        os.close(theirs)
        self.shown = ""

    def read_some(self):
        """Whether there may be more."""
        assert select.select([self.fd], [], [], LONG)[0]
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            assert e.errno == errno.EIO
            return False
        self.shown += data.decode()
        return bool(data)

    def wait_for(self, text):
        while text not in self.shown:
            assert self.read_some(), self.shown

    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Exit status, and all that was shown."""
        while self.read_some():
            pass
        os.close(self.fd)
        return self.process.wait(LONG), self.shown.replace("\r\n", "\n")


def varint(n):
    data = b""
    while n > 0x7f:
        data += bytes([n & 0x7f | 0x80])
        n >>= 7
    return data + bytes([n])


def message(*fields):
    """A protobuf message of (number, value): an int, or text, or bytes, or a message."""
    data = b""
    for number, value in fields:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def fields(data):
    """[(number, value)] of a message; what is not a number is bytes."""
    at, found = 0, []

    def number():
        nonlocal at
        n = shift = 0
        while True:
            at += 1
            n |= (data[at - 1] & 0x7f) << shift
            shift += 7
            if data[at - 1] < 0x80:
                return n

    while at < len(data):
        tag = number()
        n = number()
        if tag & 7 == 2:
            found.append((tag >> 3, data[at:at + n]))
            at += n
        else:
            found.append((tag >> 3, n))
    return found


class Runtime(grpc.GenericRpcHandler):
    """Serves methods by name: each a function of the request (or requests) and the context."""

    CRI = "/runtime.v1."
    STREAM_IN = ("Load",)
    STREAM_OUT = ("Pull", "Save", "Verify")

    def __init__(self, path):
        self.path = str(path)
        self.methods = {"Version": lambda request, context: message(
            (1, "0.1.0"), (2, "fake"), (3, "7.1"), (4, "v1"))}
        self.asked = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), [self])
        self.server.add_insecure_port("unix:" + self.path)
        self.server.start()

    def service(self, details):
        name = details.method.rpartition("/")[2]
        serve = self.methods.get(name)
        if not serve:
            return None
        self.asked.append(details.method)
        if name in self.STREAM_IN:
            return grpc.stream_unary_rpc_method_handler(serve)
        if name in self.STREAM_OUT:
            return grpc.unary_stream_rpc_method_handler(serve)
        return grpc.unary_unary_rpc_method_handler(serve)

    def run(self, *words, **more):
        return hawser("--runtime", "unix:" + self.path, *words, **more)

    def terminal(self, *words, **more):
        return Terminal("--runtime", "unix:" + self.path, *words, **more)

    def stop(self):
        self.server.stop(None).wait(LONG)
