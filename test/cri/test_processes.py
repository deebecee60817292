# SPDX-License-Identifier: Apache-2.0
"""
test_processes.py - the rights of the daemon's helper processes, while they run

What:  pulls stop in the middle of a layer, so all processes of the pull wait while they are examined.
"""
import contextlib
import pathlib
import pwd
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from fetching import StalledImage, children_of, status_of
from hawsercli import HAWSER, environment
from waiting import LONG, wait_until

SUPERVISOR, FETCHER, UNPACKER = "supervisor", "fetcher", "unpacker"


@contextlib.contextmanager
def pulling(directory, server, config=""):
    """A daemon with a pull that has stopped in the middle of a layer: yields the pids of the processes."""
    image = StalledImage(server)
    daemon = Daemon(directory, "--plain-http", server.host, "--disk-reserve", "0", config=config).start()
    client = subprocess.Popen([HAWSER, "--runtime", "unix:" + daemon.socket, "pull", "--quiet", image.name],
                              env=environment(), stdout=subprocess.DEVNULL)
    try:
        image.wait()
        pids = {"hawser-cri": daemon.process.pid}
        # the daemon has threads, so there is a process between it and the supervisor (base/os/child.c)
        (pids[SUPERVISOR],) = [pid for child in children_of(daemon.process.pid) for pid in children_of(child)]
        pids[FETCHER], pids[UNPACKER] = children_of(pids[SUPERVISOR])
        yield pids
        image.go_on.set()
        assert client.wait(LONG) == 0
    finally:
        image.go_on.set()
        client.kill()
        client.wait(LONG)
        assert daemon.stop() == 0, daemon.log()


def user_of(pid):
    """The user and group ID, if all IDs of the process are equal."""
    status = status_of(pid)
    (only,) = {*status["Uid"].split(), *status["Gid"].split()}
    return int(only)


# ---- user of the fetcher -----------------------------------------------------------------------

def has_entry(uid):
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwuid(uid))
    return False


def test_the_fetcher_has_a_user_id_without_an_entry_in_passwd(server, tmp_path):
    with open("/etc/passwd", "a", encoding="ascii") as passwd:
        passwd.write("taken:x:61184:61184::/:/bin/false\n")
    with pulling(tmp_path, server) as pids:
        uid = user_of(pids[FETCHER])
        assert 61184 < uid <= 65519 and not has_entry(uid)


def test_the_fetcher_has_the_configured_user_id(server, tmp_path):
    with pulling(tmp_path, server, config="fetch-uid: 54321\n") as pids:
        assert user_of(pids[FETCHER]) == 54321
        assert status_of(pids[FETCHER])["Groups"].strip() == ""
