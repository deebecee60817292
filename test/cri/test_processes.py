# SPDX-License-Identifier: Apache-2.0
"""
test_processes.py - the rights of the processes that the daemon starts, while they run

What:  pulls stop in the middle of a layer, and plugins in the middle of a call, so all their processes wait while
       they are examined.
Not:   a build with a sanitizer, which has no memory limits.
"""
import contextlib
import os
import pathlib
import pwd
import re
import signal
import socket
import struct
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from containers import FOREVER, POD, containers  # noqa: F401, a fixture
from cridaemon import BUILD, Daemon
from fetching import (ARCHITECTURE, CONFIG, FETCH, JOB, Image, Puller, StalledImage, children_of, status_of, to_json)
from hawsercli import HAWSER, environment
from layers import END, member
from program import with_status
from waiting import LONG, wait_until

SECURITY = pathlib.Path(os.environ["HAWSER_SRC"], "SECURITY.md")
FETCH_UID = 54321
DAEMON, SUPERVISOR, FETCHER, READER, UNPACKER, LAYER = (
    "hawser-cri", "hawser-fetch: supervisor", "hawser-fetch: fetcher, registry", "hawser-fetch: fetcher, archive",
    "hawser-fetch: unpacker", "hawser-layer")
SECCOMP, SERVE, CALL, PLUGIN, PAUSE, CONMON, CRUN = (
    "hawser-seccomp", "hawser-plugin serve", "hawser-plugin serve: process of a call", "plugin that is executed",
    "hawser-pause", "conmon", "crun of an ExecSync")


@contextlib.contextmanager
def pulling(directory, server, config="", env=None):
    """A daemon with a pull that has stopped in the middle of a layer: yields the pids of the processes."""
    image = StalledImage(server)
    daemon = Daemon(directory, "--plain-http", server.host, "--disk-reserve", "0", config=config,
                    env=env).start()
    client = subprocess.Popen([HAWSER, "--runtime", "unix:" + daemon.socket, "pull", "--quiet", image.name],
                              env=environment(), stdout=subprocess.DEVNULL)
    try:
        image.wait()
        pids = {DAEMON: daemon.process.pid}
        (pids[SUPERVISOR],) = daemon.programs()
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

def test_the_fetcher_has_a_user_id_that_no_user_or_group_has(server, tmp_path):
    with open("/etc/passwd", "a", encoding="ascii") as passwd, open("/etc/group", "a", encoding="ascii") as group:
        passwd.write("taken:x:61184:61184::/:/bin/false\n")
        group.write("taken:x:61185:\n")
    with pulling(tmp_path, server) as pids:
        assert user_of(pids[FETCHER]) == 61186


def test_the_fetcher_has_the_configured_user_id_and_no_groups(server, tmp_path):
    groups = os.getgroups()
    os.setgroups([61000])  # the daemon inherits it
    try:
        with pulling(tmp_path, server, config="fetch-uid: %d\n" % FETCH_UID) as pids:
            assert status_of(pids[DAEMON])["Groups"].split() == ["61000"]
            assert user_of(pids[FETCHER]) == FETCH_UID
            assert status_of(pids[FETCHER])["Groups"].split() == []
    finally:
        os.setgroups(groups)


# ---- environment ---------------------------------------------------------------------------------

SECRET = {"AWS_SECRET_ACCESS_KEY": "secret", "LD_LIBRARY_PATH": "/nowhere", "SSLKEYLOGFILE": "/tmp/keys"}
FOR_FETCH = {"NO_PROXY": "127.0.0.1", "https_proxy": "http://me:word@proxy.example", "RES_OPTIONS": "timeout:1"}


def environment_of(pid):
    """The names of the variables. Erased ones do not count."""
    text = pathlib.Path("/proc/%d/environ" % pid).read_bytes().decode()
    return {line.partition("=")[0] for line in text.split("\0") if line}


def test_a_pull_does_not_inherit_the_environment_of_the_daemon(server, tmp_path):
    with pulling(tmp_path, server, env={**SECRET, **FOR_FETCH}) as pids:
        assert environment_of(pids[DAEMON]) >= {*SECRET, *FOR_FETCH}
        assert environment_of(pids[FETCHER]) == {*FOR_FETCH, "GNUTLS_NO_IMPLICIT_INIT"}
        # they need none, and the URL of a proxy may contain a password
        assert environment_of(pids[SUPERVISOR]) == environment_of(pids[UNPACKER]) == set()


def test_hawser_layer_does_not_inherit_the_environment_of_the_daemon(server, tmp_path):
    server.add(Image())
    daemon = Daemon(tmp_path, "--plain-http", server.host, "--disk-reserve", "0", env={**SECRET, **FOR_FETCH}).start()
    runtime = [HAWSER, "--runtime", "unix:" + daemon.socket]
    subprocess.run([*runtime, "pull", "--quiet", server.host + "/app:latest"], check=True, env=environment())
    for recipe in (tmp_path / "root/layers").glob("*/recipe"):
        recipe.unlink()
        os.mkfifo(recipe)  # hawser-layer waits for its contents
    client = subprocess.Popen([*runtime, "image", "verify"], env=environment(), stdout=subprocess.DEVNULL)

    def layers():  # hawser-fetch waits for the next pull
        return [pid for pid in daemon.programs() if status_of(pid)["Name"].strip() == "hawser-layer"]
    try:
        wait_until(layers)
        assert environment_of(layers()[0]) == set()
    finally:
        client.kill()
        client.wait(LONG)
        assert daemon.stop() == 0, daemon.log()


def documented_variables():
    """What SECURITY.md says that plugins get, with HAWSER_STATE and those of CNI."""
    (text,) = re.findall(r"hawser-fetch gets the variables(.*)hawser-layer and\s+hawser-seccomp get none\. Plugins get (.*?): Calico",
                         SECURITY.read_text(), re.DOTALL)
    upper = re.findall("`([^`]+)`", "".join(text))
    return {*upper, *(name.lower() for name in upper if name.endswith("_PROXY"))}


def test_plugins_get_the_documented_variables_of_the_daemon_only(tmp_path):
    names = documented_variables()
    env = {name.replace("*", "X"): "/nowhere" for name in names if name != "PATH"}
    daemon = Daemon(tmp_path, env={**SECRET, **env, "NOTIFY_SOCKET": "", "ETCDX": "x"})
    with_status(daemon)
    # the shell itself may set PWD, SHLVL and _
    (daemon.bin / "bridge").write_text("#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ >%(dir)s/new\n"
                                       "mv %(dir)s/new %(dir)s/variables\n" % {"dir": tmp_path})
    daemon.start()
    try:
        wait_until((tmp_path / "variables").exists)
        values = dict(line.split("=", 1) for line in (tmp_path / "variables").read_text().splitlines())
        assert values["HAWSER_STATE"] == str(daemon.state)
        assert {name for name in values if not name.startswith("CNI_") and not name.endswith("SAN_OPTIONS")
                } == {*env, "PATH"}
    finally:
        assert daemon.stop() == 0, daemon.log()


# ---- the table of SECURITY.md -------------------------------------------------------------------

CAPABILITIES = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
    NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE
    SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL
    SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE""".split()
MOUNT_FLAGS = {os.ST_RDONLY: "ro", os.ST_NODEV: "nodev", os.ST_NOSUID: "nosuid", os.ST_NOEXEC: "noexec"}


@contextlib.contextmanager
def helper(program, *arguments):
    """A helper with our end of its socket; it ends when the socket is closed."""
    ours, theirs = socket.socketpair()
    ours.settimeout(LONG)
    with ours:
        process = subprocess.Popen([program, *arguments], stdin=theirs, stdout=theirs)
        theirs.close()
        yield process.pid, ours
    process.wait(LONG)


@contextlib.contextmanager
def loading(directory):
    """hawser-fetch with an archive, waiting for the plan: yields the pid of the fetcher."""
    (directory / "a.tar").write_bytes(
        member("config.json", data=Image(archives=[]).config) +
        member("manifest.json", data=to_json([{"Config": "config.json", "Layers": []}])) + END)
    job = to_json({"reference": "image 1", "image": 1, "uid": FETCH_UID,
                   "platform": {"os": "linux", "architecture": ARCHITECTURE}})
    with open(directory / "a.tar", "rb") as archive, helper(FETCH) as (pid, sock):
        socket.send_fds(sock, [struct.pack("<IB", len(job), JOB) + job], [archive.fileno()])
        while Puller.receive(sock)[0] != CONFIG:
            pass
        (fetcher,) = children_of(pid)
        yield fetcher


@contextlib.contextmanager
def verifying(directory):
    """hawser-layer, waiting for a FIFO, its recipe: yields its pid."""
    (directory / "layer/root").mkdir(parents=True)
    os.mkfifo(directory / "layer/recipe")
    with helper(BUILD / "bin/hawser-layer", "verify", directory / "layer") as (pid, _):
        wait_until(lambda: status_of(pid)["NoNewPrivs"] == "1")
        yield pid


@contextlib.contextmanager
def compiling():
    """hawser-seccomp, waiting for the profile: yields its pid."""
    process = subprocess.Popen([BUILD / "bin/hawser-seccomp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wait_until(lambda: status_of(process.pid)["Seccomp"] == "2")
    yield process.pid
    out, _ = process.communicate(b'{"defaultAction":"SCMP_ACT_ALLOW"}')
    assert process.returncode == 0 and out


def exec_pid(daemon, container):
    """The pid of the command that runs in a container, None if crun has not started it yet."""
    for file in daemon.bundle(container).glob("exec.*/pid"):
        text = file.read_text()
        return int(text) if text else None
    return None


@contextlib.contextmanager
def running(daemon):
    """A pod with a container in which a command runs, and the ADD of another pod that hangs in an executed plugin: yields
    the pids."""
    container = daemon.cri.run_container(daemon.cri.pod("a", pid=POD, network=POD), pid=POD)
    pids = {PAUSE: int(daemon.cri.info(daemon.cri.ids()[0])["pid"]), CONMON: daemon.monitor(container)}
    daemon.direct("ADD.pause")
    create = daemon.cri.start_run("b")
    daemon.wait_for_call("ADD", times=2)
    command = daemon.cri.start("ExecSync", container_id=container, cmd=FOREVER)
    wait_until(lambda: exec_pid(daemon, container))
    pids[CRUN] = int(status_of(exec_pid(daemon, container))["PPid"])
    assert pids[CRUN] in daemon.programs()
    pids[PLUGIN], pids[SERVE] = daemon.called("ADD")["pid"], daemon.serve()
    (pids[CALL],) = [pid for pid in children_of(pids[SERVE]) if pids[PLUGIN] in children_of(pid)]
    wait_until(lambda: status_of(pids[PAUSE])["Seccomp"] == "2")
    yield pids
    os.kill(exec_pid(daemon, container), signal.SIGKILL)
    assert command.result().exit_code == 128 + signal.SIGKILL
    daemon.undirect()
    create.result()


def namespaces_of(pid):
    """The namespaces that the process does not share with this one."""
    def read(of):
        return {name: os.readlink("/proc/%s/ns/%s" % (of, name)) for name in os.listdir("/proc/self/ns")
                if not name.endswith("_for_children")}
    theirs, ours = read(pid), read("self")
    return ", ".join(sorted(name for name in ours if ours[name] != theirs[name])) or "the node's"


def root_of(pid):
    """The root directory: with the flags of its mount if it is not that of this process."""
    root = "/proc/%d/root" % pid
    if os.path.samefile(root, "/"):
        return "the node's"
    flags = os.statvfs(root).f_flag
    what = "the layer" if os.listdir(root) else "an empty directory"
    return what + ": " + ",".join(name for bit, name in MOUNT_FLAGS.items() if flags & bit)


def memory_of(pid):
    for line in pathlib.Path("/proc/%d/limits" % pid).read_text().splitlines():
        if line.startswith("Max data size"):
            soft, hard = line.split()[3:5]
            assert soft == hard
            return "no limit" if soft == "unlimited" else "%d MiB" % (int(soft) >> 20)
    raise AssertionError("no line for the data size")


def row_of(pid):
    """What the table says about a process, except for the last column."""
    status, own = status_of(pid), status_of(os.getpid())
    caps = int(status["CapPrm"], 16)
    assert caps == int(status["CapEff"], 16) and int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    names = ", ".join(name for i, name in enumerate(CAPABILITIES) if caps >> i & 1) or "none"
    return ["`fetch-uid`" if user_of(pid) == FETCH_UID else pwd.getpwuid(user_of(pid)).pw_name,
            "all" if caps == int(own["CapPrm"], 16) else names,
            "filter" if int(status["Seccomp_filters"]) > int(own["Seccomp_filters"]) else "no filter",
            namespaces_of(pid), root_of(pid), memory_of(pid)]


def documented():
    """The rows of the table in SECURITY.md, by the name of the process."""
    text = SECURITY.read_text()
    table = text.partition("| process |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0]: row[1:-1] for row in rows}


def test_security_md_describes_the_processes_as_they_are(server, containers, tmp_path):  # noqa: F811
    with (pulling(tmp_path, server, config="fetch-uid: %d\n" % FETCH_UID) as pids, loading(tmp_path) as reader,
          verifying(tmp_path) as layer, compiling() as compiler, running(containers()) as others):
        found = {name: row_of(pid)
                 for name, pid in {**pids, READER: reader, LAYER: layer, SECCOMP: compiler, **others}.items()}
    assert found == documented()
