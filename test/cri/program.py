# SPDX-License-Identifier: Apache-2.0
"""
test/cri/program.py - hawser-cri as a program: a fixture that starts daemons, and helpers for their network and metrics
"""
import http.client
import socket

import pytest

from cridaemon import Daemon, field
from waiting import LONG

CONFLIST = '{"cniVersion": "1.0.0", "name": "%s", "plugins": [{"type": "bridge"}]}'


@pytest.fixture
def make(tmp_path):
    daemons = []

    def make_one(*flags, name="one", **more):
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        daemons.append(Daemon(directory, *flags, **more))
        return daemons[-1]

    yield make_one
    for d in daemons:
        if d.process:
            assert d.stop() == 0, d.log()


STATUS = """#!/bin/sh
[ "$CNI_COMMAND" = STATUS ] || exit 2
[ ! -e %(dir)s/hang ] || { echo $$ >%(dir)s/pid; exec sleep infinity; }
[ -e %(dir)s/away ] || exit 0
echo '{"cniVersion": "1.1.0", "code": 50, "msg": "the controller is away"}'
exit 1
"""


def with_status(d):
    """Configures a network of CNI 1.1.0 whose plugin is controlled by files in the daemon's directory."""
    (d.bin / "bridge").write_text(STATUS % {"dir": d.dir})
    (d.bin / "bridge").chmod(0o755)
    (d.net / "10-net.conflist").write_text(CONFLIST.replace("1.0.0", "1.1.0") % "polled")


def cidr(text):
    return field(1, field(1, field(1, text)))


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LONG)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def get(connection, path="/metrics", method="GET"):
    connection.request(method, path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.getheader("content-type"), text
