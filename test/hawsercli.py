# SPDX-License-Identifier: Apache-2.0
"""
hawsercli.py - helpers for test_hawser_*.py: run the program hawser, and a fake runtime in Python

What:  hawser() runs the program; Terminal runs it on a terminal of a given size; Runtime serves the
       methods that a test defines, with Google's gRPC and messages built by message().
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

import grpc

HAWSER = pathlib.Path(os.environ["HAWSER_BUILD"]) / "bin/hawser"
LONG = 60  # seconds; reached only if a test fails


def environment(**more):
    ignored = ("TERM", "NO_COLOR", "CONTAINER_RUNTIME_ENDPOINT")
    env = {k: v for k, v in os.environ.items() if k not in ignored}
    return {**env, **more}


def hawser(*words, stdin=b"", text=True, **more):
    """Return: exit status, standard output, standard error"""
    done = subprocess.run([HAWSER, *words], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=2 * LONG, env=environment(**more))
    out = done.stdout.decode() if text else done.stdout
    return done.returncode, out, done.stderr.decode()


def set_controlling_terminal(fd):
    os.setsid()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


class Terminal:
    """hawser with a terminal as standard input, output and error."""

    def __init__(self, *words, columns=80, rows=24, **env):
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [HAWSER, *words], stdin=theirs, stdout=theirs, stderr=theirs,
            env=environment(**{"TERM": "xterm", **env}),
            preexec_fn=lambda: set_controlling_terminal(theirs))
        os.close(theirs)
        self.shown = ""

    def read_some(self):
        """Return: False at the end"""
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
        """Return: exit status, everything that was shown"""
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
    """Encode a protobuf message from (number, value) pairs; a value is an int, str, bytes or message."""
    data = b""
    for number, value in fields:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def fields(data):
    """Decode a protobuf message into (number, value) pairs; a value is an int or bytes."""
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
    """Serves methods by name; each is a function of the request (or requests) and the context."""

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
