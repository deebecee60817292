# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_host.py - mounts that hawser-cri prepares on its host

What:  the directory of network namespaces; hosts with cgroup v1 and a cgroup2 mount beside it that has
       controllers, where crun refuses to run containers.
How:   the tests mount this mix themselves, with a file in place of cgroup.controllers: the root of a
       cgroup namespace has no controllers. They are the host: their mounts propagate to and from the
       daemon's mount namespace.
"""
# Sandbox: --shared
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import FOREVER, containers  # noqa: F401, a fixture
from cridaemon import Daemon
from waiting import LONG

CGROUP = pathlib.Path("/sys/fs/cgroup")
UNIFIED = CGROUP / "unified"
HIDDEN = "entered a mount namespace without it"
PRIVATE = "/ is not a shared mount"


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def mounts(path, pid="self"):
    """The propagation of the mounts at a path, in the mount namespace of a process: one list of words each."""
    lines = pathlib.Path("/proc/%s/mountinfo" % pid).read_text().splitlines()
    fields = [line.partition(" - ")[0].split() for line in lines]
    return [words[6:] for words in fields if words[4] == str(path)]


def kind(path, pid="self"):
    return run("stat", "-f", "-c", "%T", "/proc/%s/root%s" % (pid, path)).strip()


def mount_namespace(pid="self"):
    return os.readlink("/proc/%s/ns/mnt" % pid)


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path, "--netns-dir", str(tmp_path / "netns"))
    yield d
    if d.process:
        d.stop()
    for path in (tmp_path / "netns", tmp_path / "root", tmp_path / "state"):
        while mounts(path):
            run("umount", "--recursive", "--lazy", path)


@pytest.fixture
def mixed(tmp_path):
    """A cgroup2 mount with a controller beside v1."""
    if kind(CGROUP) != "tmpfs":
        pytest.skip("this host has no cgroup v1")
    mounted = UNIFIED.is_mount()
    if not mounted:
        UNIFIED.mkdir(exist_ok=True)
        run("mount", "-t", "cgroup2", "cgroup2", UNIFIED)
    (tmp_path / "controllers").write_text("hugetlb\n")
    run("mount", "--bind", tmp_path / "controllers", UNIFIED / "cgroup.controllers")
    yield
    run("umount", UNIFIED / "cgroup.controllers")
    if not mounted:
        run("umount", UNIFIED)


@pytest.fixture
def private():
    """The host's mounts do not propagate, as without systemd."""
    run("mount", "--make-rprivate", "/")
    yield
    run("mount", "--make-rshared", "/")


# ---- network namespaces ------------------------------------------------------------------------

def test_the_directory_of_network_namespaces_is_one_shared_mount(daemon):
    for end in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        daemon.start()
        ((propagation,),) = mounts(daemon.dir / "netns")
        assert propagation.startswith("shared:")
        daemon.signal(end)
        daemon.process.wait(LONG)
    daemon.process = None


def test_the_directory_is_the_same_mount_for_ip_netns(tmp_path):
    daemon = Daemon(tmp_path).start()
    try:
        run("ip", "netns", "add", "theirs")
        assert len(mounts("/run/netns")) == len(mounts("/run/netns/theirs")) == 1
        run("ip", "netns", "delete", "theirs")
    finally:
        daemon.stop()


def test_a_mount_that_is_not_shared_becomes_shared(daemon):
    netns = daemon.dir / "netns"
    netns.mkdir()
    run("mount", "-t", "tmpfs", "tmpfs", netns)
    run("mount", "--make-private", netns)
    daemon.start()
    ((propagation,),) = mounts(netns)
    assert propagation.startswith("shared:")


def test_a_directory_that_cannot_be_mounted_is_an_error(daemon):
    (daemon.dir / "netns").write_text("a file")
    assert "make %s/netns a shared mount: " % daemon.dir in daemon.refused()


def test_without_cgroup2_controllers_the_daemon_stays_in_the_hosts_mount_namespace(daemon):
    daemon.start()
    assert mount_namespace(daemon.process.pid) == mount_namespace()
    assert not mounts(daemon.dir / "root") and not mounts(daemon.dir / "state")
    assert HIDDEN not in daemon.log()


# ---- cgroup2 beside v1 -------------------------------------------------------------------------

def container(directory):
    """A bundle for crun, with a container that ends at once."""
    (directory / "rootfs/bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), directory / "rootfs/bin/true")
    run("crun", "spec", cwd=directory)
    spec = json.loads((directory / "config.json").read_text())
    spec["process"].update(terminal=False, args=["/bin/true"], capabilities={})
    spec["linux"]["cgroupsPath"] = "/hawser-test/true"
    (directory / "config.json").write_text(json.dumps(spec))
    return directory


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed")
def test_crun_runs_containers_beside_the_daemon_but_not_on_the_host(mixed, daemon):
    bundle = container(daemon.dir / "bundle")
    crun = ["crun", "--root", str(daemon.dir / "crun"), "run", "--bundle", str(bundle), "true"]
    refused = subprocess.run(crun, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert refused.returncode != 0 and "cgroups in hybrid mode not supported" in refused.stderr
    daemon.start()
    run("nsenter", "--target", str(daemon.process.pid), "--mount", *crun, stdin=subprocess.DEVNULL)


def test_cgroup2_is_missing_only_in_the_daemons_mount_namespace(mixed, daemon):
    before = mounts(UNIFIED)
    daemon.start()
    pid = daemon.process.pid
    assert mount_namespace(pid) != mount_namespace() and HIDDEN in daemon.log()
    assert kind(UNIFIED, pid) == "tmpfs" and not mounts(UNIFIED, pid)
    assert kind(UNIFIED) == "cgroup2fs" and mounts(UNIFIED) == before
    assert kind(CGROUP / "memory", pid) == kind(CGROUP / "memory")
    assert PRIVATE not in daemon.log()


def test_mounts_of_the_host_reach_the_daemon(mixed, daemon):
    volume = daemon.dir / "volumes/one"
    volume.mkdir(parents=True)
    daemon.start()
    run("mount", "-t", "tmpfs", "volume", volume)
    assert len(mounts(volume, daemon.process.pid)) == 1
    run("umount", volume)
    assert not mounts(volume, daemon.process.pid)
    (CGROUP / "later").mkdir()
    run("mount", "-t", "tmpfs", "later", CGROUP / "later")
    assert len(mounts(CGROUP / "later", daemon.process.pid)) == 1
    run("umount", CGROUP / "later")


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed")
def test_a_container_runs_and_gets_volumes_that_are_mounted_on_the_host_later(mixed, containers, tmp_path):
    volumes = tmp_path / "volumes"
    volumes.mkdir()
    run("mount", "--bind", volumes, volumes)  # a mount of its own, as kubelet makes it
    d = containers()
    assert HIDDEN in d.log()
    mount = {"container_path": "/volumes", "host_path": str(volumes), "propagation": 1}
    container = d.cri.run_container(d.cri.pod(), FOREVER, mounts=[mount])
    (volumes / "later").mkdir()
    run("mount", "-t", "tmpfs", "later", volumes / "later")
    (volumes / "later/file").write_text("here")
    assert d.cri.sh(container, "cat /volumes/later/file") == "here"
    d.restart()
    assert d.cri.sh(container, "cat /volumes/later/file") == "here"
    run("umount", volumes / "later")
    assert d.cri.sh(container, "ls /volumes/later") == ""
    d.cri.remove_container(container)
    run("umount", volumes)


def assert_mounts_reach_the_host_and_the_next_daemon(daemon):
    """Mounts of a daemon that is killed are there on the host and in the next daemon, once each."""
    daemon.start()
    before = None
    for end in (signal.SIGKILL, signal.SIGTERM):
        pid = daemon.process.pid
        for name in ("root", "state", "netns"):
            path = daemon.dir / name / end.name
            run("nsenter", "--target", str(pid), "--mount", "mkdir", path)
            run("nsenter", "--target", str(pid), "--mount", "mount", "-t", "tmpfs", "pod", path)
            assert len(mounts(path)) == len(mounts(path, pid)) == 1
        before = before or [mounts(daemon.dir / name) for name in ("root", "state", "netns")]
        daemon.signal(end)
        daemon.process.wait(LONG)
        daemon.start()
        assert [mounts(daemon.dir / name) for name in ("root", "state", "netns")] == before
        for name in ("root", "state", "netns"):
            path = daemon.dir / name / end.name
            assert len(mounts(path)) == len(mounts(path, daemon.process.pid)) == 1
            run("nsenter", "--target", str(daemon.process.pid), "--mount", "umount", path)
            assert not mounts(path) and not mounts(path, daemon.process.pid)


def test_mounts_of_the_daemon_reach_the_host_and_the_next_daemon(mixed, daemon):
    assert_mounts_reach_the_host_and_the_next_daemon(daemon)
    assert not mounts(daemon.dir / "root")  # on a shared mount; there was no need for another one


def test_mounts_of_the_daemon_reach_a_host_whose_mounts_do_not_propagate(private, mixed, daemon):
    assert_mounts_reach_the_host_and_the_next_daemon(daemon)
    assert len(mounts(daemon.dir / "root")) == len(mounts(daemon.dir / "state")) == 1
    assert PRIVATE in daemon.log()
