# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_sockets.py - hawser-cri: several daemons, its socket, systemd
"""
import os
import re
import signal
import socket
import stat

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from program import make, with_status  # noqa: F401, a fixture
from waiting import LONG, wait_until


def test_a_second_daemon_with_the_same_state_or_root_directory_is_refused(make):
    d = make().start()
    assert make().refused() == ("another hawser-cri uses the state directory %s" % d.state)
    assert d.call("Version")[0] == 0
    other = make(name="other")
    other.command += ["--root", d.dir / "root"]
    assert "root directory: " in other.refused()
    make(name="two").start()
    assert d.call("Version")[0] == 0


def test_a_socket_of_another_process_is_not_replaced(make, tmp_path):
    d = make().start()
    other = make("--metrics-address", "unix:%s" % (tmp_path / "m"), name="other")
    other.command[other.command.index("unix:" + other.socket)] = "unix:" + d.socket
    assert "listen on unix:%s: " % d.socket in other.refused()
    assert d.call("Version")[0] == 0
    assert not (tmp_path / "m").exists()


def test_the_daemon_starts_again_after_it_was_killed(make):
    d = make().start()
    d.process.kill()
    d.process.wait(LONG)
    assert os.path.exists(d.socket)
    d.start()
    assert d.call("Version")[0] == 0


def test_the_socket_has_the_configured_owner(make):
    d = make("--socket-owner", "12").start()
    mode = os.stat(d.socket)
    assert stat.S_IMODE(mode.st_mode) == 0o600 and mode.st_uid == 12
    d = make("--socket-owner", "12:34", name="two").start()
    mode = os.stat(d.socket)
    assert stat.S_IMODE(mode.st_mode) == 0o660 and (mode.st_uid, mode.st_gid) == (12, 34)


class Manager:
    """Receives notifications as systemd does on NOTIFY_SOCKET."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(LONG)

    def receive(self):
        return self.socket.recv(4096).decode()


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_notified_of_start_reload_and_stop(make, tmp_path, abstract):
    path = str(tmp_path / "notify")
    manager = Manager("\0" + path if abstract else path)
    d = make(env={"NOTIFY_SOCKET": "@" + path if abstract else path}).start()
    assert manager.receive() == "READY=1"
    d.signal(signal.SIGHUP)
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", manager.receive())
    assert manager.receive() == "READY=1"
    assert d.stop() == 0
    assert manager.receive() == "STOPPING=1"
    manager.socket.close()


def test_a_socket_passed_by_systemd_is_used_and_not_removed(make, tmp_path):
    path = str(tmp_path / "given")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    handler, handed = tmp_path / "handler", tmp_path / "environment"
    handler.write_text("#!/bin/sh\nenv >>%s\nexec crun \"$@\"\n" % handed)
    handler.chmod(0o755)
    d = make("--runtime-handler", "noting=%s" % handler,  # it inherits the daemon's environment
             prefix=["bash", "-c", 'exec 3<&%d; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"'
                     % listener.fileno(), "-"])
    d.start(pass_fds=[listener.fileno()])
    assert not os.path.exists(d.socket)
    d.socket = path
    assert d.call("Version")[0] == 0
    assert "LISTEN_" not in handed.read_text()
    assert d.stop() == 0
    assert os.path.exists(path)
    listener.close()


def test_an_invalid_descriptor_in_listen_fds_is_refused(make, tmp_path):
    d = make(prefix=["bash", "-c", 'exec 3</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; '
                     'exec "$@"', "-"])
    assert "descriptor 3 of LISTEN_FDS: " in d.refused()
    d = make(prefix=["env", "LISTEN_PID=1", "LISTEN_FDS=1"], name="two").start()
    assert d.call("Version")[0] == 0
