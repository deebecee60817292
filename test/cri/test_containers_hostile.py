# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_hostile.py - containers that misbehave delay no call for other pods

What:  containers that print or fork without end, ignore signals, fill their disk, or hang in a file system that does
       not answer. Meanwhile another pod and its containers are created, used and removed.
How:   "no delay" is measured: a call that waits for the misbehaving container takes at least ten seconds, and the limit is
       five seconds more than ten times what the same calls take on this machine without that container.
"""
import os
import pathlib
import signal
import subprocess
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CONTAINER, EXITED, IDLE, NODE, POD, RUNNING, containers  # noqa: F401, a fixture
from deadmount import dead  # noqa: F401, a fixture
from poddaemon import CGROUPS
from waiting import LONG, wait_until

# Processes without end: each one starts two others. The cgroup of the pod limits their number.
FORK = "f() { f & sleep 0.2; f; }; trap '' TERM; echo ready; f & exec sleep 100000"  # the interval of forks
MISBEHAVIOUR = {
    "prints": "echo ready; exec yes",
    "prints no newline": "echo ready; exec tr '\\0' x </dev/zero",
    "forks": FORK,
    "ignores signals": "trap '' TERM HUP INT QUIT; echo ready; while :; do sleep 1000; done",
}
PARENT = "/hostile"


@pytest.fixture
def parent():
    """A cgroup for pods that limits the number of their processes."""
    roots = [d for d in (CGROUPS, *CGROUPS.iterdir()) if (d / "cgroup.procs").exists()]
    for root in roots:
        (root / PARENT[1:]).mkdir()
    limit, = [f for root in roots if (f := root / PARENT[1:] / "pids.max").exists()]
    limit.write_text("50")
    yield PARENT
    for root in roots:
        wait_until(lambda: remove_directory(root / PARENT[1:]))


def remove_directory(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


@pytest.fixture
def small(tmp_path):
    """A small file system."""
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "small", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def is_full(path):
    return os.statvfs(path).f_bavail == 0


def use_pod(d, name):
    """Create, use and remove a pod with a container. Returns the seconds that this took."""
    begin, client = time.monotonic(), d.client()
    pod = client.pod(name, network=POD)
    container = client.run_server(pod)
    assert client.sh(container, "echo works") == "works\n"
    client.stop_container(container, LONG)
    assert client.container(container).exit_code == 0
    client.remove_container(container)
    client.stop(pod)
    client.remove(pod)
    return time.monotonic() - begin


def measured(d):
    """A daemon that knows how long use_pod() takes when nothing misbehaves."""
    d.usual = use_pod(d, "usual")
    return d


def use_another_pod(d, name="good"):
    seconds = use_pod(d, name)
    assert seconds < 5 + 10 * d.usual, "%.1f s, and %.1f s without misbehaviour" % (seconds, d.usual)


@pytest.mark.parametrize("how", MISBEHAVIOUR)
def test_a_container_that_misbehaves_delays_no_other_pod_and_can_be_stopped(parent, small, containers, how):
    d = measured(containers())
    options = {"network": NODE, "pid": CONTAINER}
    pod = d.cri.pod("bad", log_directory=str(small), linux={
        "cgroup_parent": parent, "security_context": {"namespace_options": options}})
    bad = d.cri.run_container(pod, ["/bin/sh", "-c", MISBEHAVIOUR[how]], log_path="log")
    wait_until(lambda: b" ready\n" in (small / "log").read_bytes()[:100])
    use_another_pod(d)
    stop = d.client().start_stop(bad, 1)
    use_another_pod(d, "other")
    stop.result()
    assert d.cri.container(bad).state == EXITED
    d.cri.remove_container(bad)


# ---- a file system that does not answer ------------------------------------------------------------

def is_killed(pid):
    """Whether SIGKILL is pending for a process."""
    status = pathlib.Path("/proc/%d/status" % pid).read_text()
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)


def hang(d, dead, number=1):
    """Run containers with a process that hangs in a file system and cannot be killed. Returns their IDs."""
    pod = d.cri.pod("hanging", pid=CONTAINER)
    mounts = [{"host_path": str(dead.path), "container_path": "/dead"}]
    hanging = [d.cri.run_container(pod, ["/bin/cat", "/dead/file%d" % i], name="hang%d" % i, mounts=mounts)
               for i in range(number)]
    wait_until(lambda: dead.waiting >= number)
    return hanging


@pytest.fixture
def daemon(dead, containers):
    """Its containers can be removed when the file system answers again."""
    d = measured(containers())
    yield d
    dead.end()


def test_containers_that_cannot_be_killed_delay_no_other_pod(daemon, dead):
    hanging = hang(daemon, dead, 6)
    client = daemon.client()
    calls = [client.start_stop(c, 0) for c in hanging]
    calls += [client.start("RemoveContainer", container_id=c) for c in hanging]
    calls += [client.start("ExecSync", container_id=c, cmd=["/bin/cat", "/dead/other"]) for c in hanging]
    calls += [client.start("StopPodSandbox", pod_sandbox_id=daemon.cri.ids()[0])]
    use_another_pod(daemon)
    assert not any(call.done() for call in calls[:6])
    dead.end()
    for call in calls[:12]:
        assert not call.exception()
    assert daemon.cri.container_ids() == []


def test_a_daemon_starts_and_ends_while_containers_cannot_be_killed(daemon, dead):
    hanging = hang(daemon, dead, 6)
    stops = [daemon.client().start_stop(c, 0) for c in hanging]
    wait_until(lambda: all(is_killed(daemon.main(c)) for c in hanging))
    daemon.restart()
    assert all(stop.exception() for stop in stops)
    pod = daemon.cri.ids()[0]
    stop = daemon.client().start("StopPodSandbox", pod_sandbox_id=pod)
    use_another_pod(daemon)
    assert daemon.stop() == 0
    assert stop.exception()
    daemon.start()
    use_another_pod(daemon)
    dead.end()
    daemon.cri.stop(pod)
    daemon.cri.remove(pod)


def outlived(d, dead, pod):
    """Run a container whose first process ends while another one hangs and cannot be killed. Returns its ID."""
    script = "trap 'exit 3' TERM; cat /dead/file & " + IDLE
    mounts = [{"host_path": str(dead.path), "container_path": "/dead"}]
    container = d.cri.run_container(pod, ["/bin/sh", "-c", script], pid=NODE, mounts=mounts)
    wait_until(lambda: dead.waiting)
    os.kill(d.main(container), signal.SIGTERM)
    assert d.cri.wait_for_exit(container).exit_code == 3
    return container


def test_what_outlives_a_container_is_killed_until_that_succeeds(daemon, dead):
    container = outlived(daemon, dead, daemon.cri.pod(pid=NODE))
    daemon.logged("not cleaned up, trying again later id=" + container, 2)


@pytest.mark.parametrize("name,key", [("StopContainer", "container_id"), ("StopPodSandbox", "pod_sandbox_id")])
def test_a_stop_does_not_succeed_while_a_process_outlives_its_container(daemon, dead, name, key):
    pod = daemon.cri.pod(pid=NODE)
    container = outlived(daemon, dead, pod)
    stop = daemon.client().start(name, timeout=1, **{key: pod if name == "StopPodSandbox" else container})
    assert stop.exception() and stop.exception().code().name == "DEADLINE_EXCEEDED"
    dead.end()
    daemon.cri.stop_container(container)
    daemon.cri.stop(pod)


# ---- a full disk -----------------------------------------------------------------------------------

@pytest.mark.parametrize("what", ["files", "logs"])
def test_a_full_disk_can_be_emptied_by_stopping_and_removing_containers(small, containers, what):
    d = containers(start=False)
    if what == "logs":
        d.logs = small / "logs"
    (d.dir / "root").symlink_to(small)
    d.start()
    good = d.cri.run_server(d.cri.pod("good"))
    ended = d.cri.run_to_end(d.cri.pod("ended"), ["/bin/true"]).id
    script = {"files": "cat /dev/zero >/file; exec sleep 100000", "logs": "exec yes"}[what]
    bad = d.cri.run_container(d.cri.pod("bad"), ["/bin/sh", "-c", script])
    wait_until(lambda: is_full(small))
    assert d.cri.sh(good, "echo works") == "works\n"
    d.cri.stop_container(good, LONG)
    assert d.cri.container(good).exit_code == 0
    d.cri.remove_container(ended)
    d.kill()
    for index in small.glob("*.db-shm"):
        os.truncate(index, 0)  # as the next daemon does; then SQLite must write it again
    if what == "logs":
        wait_until(lambda: is_full(small))
    d.start()
    assert d.cri.container(bad).state == RUNNING
    d.cri.stop_container(bad, 0)
    d.cri.remove_container(bad)
    if what == "logs":
        os.truncate(d.logs / "bad/main.log", 0)
    d.cri.run_server(d.cri.pod("new"))
    d.restart()  # on a full disk no other process can open its databases, and leftovers() does that
