# SPDX-License-Identifier: Apache-2.0
"""
cridaemon.py - a hawser-cri daemon with its own directories, for tests

What:  start, call and stop the daemon. Calls are made with cri-call, which prints one line per field
       of the response, or with Google's gRPC and messages that field() encodes and fields_of()
       decodes.
"""
import os
import pathlib
import socket
import subprocess

import grpc

from fetching import children_of
from waiting import LONG, wait_until

BUILD = pathlib.Path(os.environ["HAWSER_BUILD"])
DAEMON = BUILD / "bin/hawser-cri"
CRI_CALL = BUILD / "test/rpc/cri-call"
READY = "hawser-cri: ready "


class Daemon:
    """hawser-cri with all its directories below one directory."""

    def __init__(self, directory, *flags, config="", env=None, prefix=()):
        self.dir = directory
        self.socket = str(directory / "state/cri.sock")
        self.net = directory / "net.d"
        self.bin = directory / "bin"
        self.state = directory / "state"
        self.config = directory / "hawser.yaml"
        for path in (self.net, self.bin):
            path.mkdir(exist_ok=True)
        if not self.config.exists():
            self.config.write_text(config)
        self.command = [*prefix, DAEMON, "--config", self.config, "--root", directory / "root",
                        "--state", self.state, "--listen", "unix:" + self.socket,
                        "--cni-conf-dir", self.net, "--cni-bin-dir", self.bin,
                        "--cni-cache-dir", directory / "cache", *flags]
        self.env = {**os.environ, **(env or {})}
        self.process = None

    def start(self, **more):
        with open(self.dir / "log", "ab") as log:
            before = self.log().count(READY)
            self.process = subprocess.Popen(self.command, stderr=log, env=self.env, **more)
        wait_until(lambda: self.process.poll() is not None or self.log().count(READY) > before)
        assert self.process.poll() is None, self.log()
        return self

    def refused(self):
        """For a daemon that fails to start. Returns its error message."""
        done = subprocess.run(self.command, stderr=subprocess.PIPE, text=True, timeout=LONG,
                              env=self.env)
        assert done.returncode == 1
        return done.stderr.rstrip("\n").partition("hawser-cri: ")[2]

    def log(self):
        return (self.dir / "log").read_text()

    def logged(self, text, times=1):
        wait_until(lambda: self.log().count(text) >= times, self.log)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.process.terminate()
        status = self.process.wait(LONG)
        self.process = None
        return status

    def programs(self):
        """The programs that the daemon has started. It has threads, so there is a process in between
        (base/os/child.c)."""
        return [pid for child in children_of(self.process.pid) for pid in children_of(child)]

    def call(self, method, request=b""):
        """Returns the exit status, and the response's fields or the error."""
        done = subprocess.run([CRI_CALL, self.socket, method, request.hex()],
                              stdout=subprocess.PIPE, text=True, timeout=2 * LONG)
        if done.returncode:
            return done.returncode, done.stdout.strip()
        return 0, dict(line.split(" = ", 1) for line in done.stdout.splitlines())

    def is_listening(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def dial(self):
        return grpc.insecure_channel("unix:" + self.socket,
                                     options=[("grpc.use_local_subchannel_pool", 1)])

    def network(self):
        """Returns NetworkReady and, if it is false, its message."""
        fields = self.call("Status")[1]
        return (fields["status.conditions.1.status"] == "1",
                fields.get("status.conditions.1.message", ""))

    def add_plugin(self, name="bridge"):
        (self.bin / name).write_text("#!/bin/sh\n")
        (self.bin / name).chmod(0o755)


def field(number, data):
    """Encodes a field: a string or a message."""
    data = data.encode() if isinstance(data, str) else data
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def fields_of(message):
    """Decodes a message with varints and strings to {number: value}."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return n

    while at < len(message):
        tag = varint()
        n = varint()
        if tag & 7 == 2:
            fields[tag >> 3] = message[at:at + n].decode()
            at += n
        else:
            fields[tag >> 3] = n
    return fields
