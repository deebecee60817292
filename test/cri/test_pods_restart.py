# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_restart.py - pods of an earlier daemon: after a restart, after a boot, with objects that are gone
"""
import fcntl
import os
import pathlib
import shutil
import signal

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import EXITED, FOREVER, POD, containers  # noqa: F401, a fixture
from poddaemon import (NETNS, NOTREADY, READY, connect, namespace, pods, processes, refused,
                       run)  # noqa: F401, pods is a fixture
from waiting import LONG, wait_until

BOOT_ID = "/proc/sys/kernel/random/boot_id"
PORTS = [{"host_port": 8080, "container_port": 80}]


def is_stopped(d, pod):
    return d.cri.info(pod)["state"] == "stopped"


# ---- a restart -------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_pods_outlive_their_daemon(pods, number):
    d = pods()
    shared = d.cri.run("a", pid=0, hostname="web", labels={"a": "b"}, port_mappings=PORTS)
    others = [d.cri.run("b"), d.cri.run("host", network=2, ipc=2, pid=2)]
    stopped = d.cri.run("c")
    d.cri.stop(stopped)
    everything = [shared, *others, stopped]
    before = [(d.cri.status(pod), d.cri.info(pod)) for pod in everything]
    paths = [n["path"] for n in d.cri.info(shared)["runtimeSpec"]["linux"]["namespaces"]]
    identities = [namespace(path) for path in paths]
    calls = d.calls("")
    d.restart(number)
    assert sorted(d.cri.ids()) == sorted(everything)
    assert [(d.cri.status(pod), d.cri.info(pod)) for pod in everything] == before
    assert [namespace(path) for path in paths] == identities and len(processes()) == 1
    assert connect("host", shared, "10.88.0.1", 8080, 80) and d.calls("") == calls
    assert connect(others[0], shared, d.cri.address(shared), 80) == d.cri.address(others[0])
    for pod in everything:
        d.cri.remove(pod)
    assert not d.leftovers()


# ---- a boot ----------------------------------------------------------------------------------------

@pytest.fixture
def boot(tmp_path):
    """A function that kills a daemon, removes everything of its pods that does not survive a boot, and changes the
    boot ID."""
    boots = []

    def work(d):
        d.kill()
        for line in processes():
            os.kill(int(line.split()[1]), signal.SIGKILL)
        for line in reversed(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
            where = line.split()[4]
            if where.startswith((str(d.state) + "/", str(NETNS) + "/hawser-")):
                run("umount", where)
        for pin in NETNS.glob("hawser-*"):
            pin.unlink()
        wait_until(lambda: "veth" not in run("ip", "-br", "link"))
        run("ip", "link", "delete", d.bridge)
        run("nft", "flush", "ruleset")
        for path in pathlib.Path("/sys/fs/cgroup").glob("**/hawser"):
            run("find", path, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")
        shutil.rmtree(d.state)
        boots.append(tmp_path / ("boot%d" % len(boots)))
        boots[-1].write_text("00000000-0000-4000-8000-%012d\n" % len(boots))
        run("mount", "--bind", boots[-1], BOOT_ID)

    yield work
    for _ in boots:
        run("umount", BOOT_ID)


def test_after_a_boot_pods_are_not_ready_and_give_their_addresses_back(pods, boot):
    d = pods()
    shared = d.cri.run("a", pid=0, labels={"a": "b"}, port_mappings=PORTS)
    stopped = d.cri.run("b")
    d.cri.stop(stopped)
    host = d.cri.run("host", network=2)
    address = d.cri.address(shared)
    boot(d)
    d.direct("DEL.pause")
    d.start()
    # what is left to do does not delay the first answer
    assert {pod: d.cri.status(pod).state for pod in d.cri.ids()} == dict.fromkeys((shared, stopped, host), NOTREADY)
    d.wait_for_call("DEL", 2)
    assert d.called("DEL")["env"]["CNI_NETNS"] == "" and d.leased() == [address]
    assert d.cri.info(shared)["runtimeSpec"]["linux"]["namespaces"] == []
    d.undirect()
    for pod in (shared, host):
        wait_until(lambda pod=pod: is_stopped(d, pod), d.log)
    assert d.leased() == [] and dict(d.cri.status(shared).labels) == {"a": "b"} and d.cri.info(shared)["pid"] == 0
    again = d.cri.run("a", pid=0, attempt=1, port_mappings=PORTS)
    assert connect("host", again, "10.88.0.1", 8080, 80)
    for pod in (shared, stopped, host, again):
        d.cri.remove(pod)
    assert not d.leftovers()


def test_after_a_boot_an_incomplete_pod_is_removed(pods, boot):
    d = pods()
    d.direct("ADD.hang")
    first = d.cri.start_run("a", pid=0)
    d.wait_for_call("ADD")
    assert len(d.leased()) == 1
    boot(d)
    d.undirect()
    d.start()
    wait_until(lambda: d.cri.ids() == [], d.log)
    assert first.exception(60) and not d.leftovers()


def test_a_plugin_of_an_earlier_daemon_delays_pods_but_not_the_start(pods):
    d = pods()
    pod = d.cri.run("a")
    d.kill()
    with open(d.state / "plugins.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        d.start()
        # the daemon has not waited for the lock until a timeout
        assert "plugins of an earlier daemon" not in d.log() and d.cri.ids() == [pod]
        waiting = d.cri.start_run("b")
    d.cri.remove(waiting.result(LONG).pod_sandbox_id)


# ---- objects that are gone -------------------------------------------------------------------------

def end_pause(d, pod):
    os.kill(d.cri.info(pod)["pid"], signal.SIGKILL)


def unmount_netns(d, pod):
    run("umount", NETNS / ("hawser-" + pod))


def unmount_ipc(d, pod):
    run("umount", d.state / "pods" / pod / "ipc")


def unmount_pid(d, pod):
    run("umount", d.state / "pods" / pod / "pid")


LOSSES = {end_pause: "hawser-pause has ended", unmount_pid: "hawser-pause has ended",
          unmount_netns: "its network namespace is gone", unmount_ipc: "its IPC namespace is gone"}


@pytest.mark.parametrize("lose", LOSSES)
def test_a_pod_that_has_lost_an_object_is_stopped_when_the_daemon_starts(pods, lose):
    d = pods()
    pod, other = d.cri.run("a", pid=0), d.cri.run("b", pid=0)
    info = d.cri.info(pod)
    d.signal(signal.SIGSTOP)
    d.cri.connect()  # the daemon answers nothing before it is killed
    d.cri.info = lambda _: info
    lose(d, pod)
    d.restart()
    assert d.cri.status(pod).state == NOTREADY and d.cri.status(other).state == READY
    wait_until(lambda: is_stopped(d, pod), d.log)
    assert d.leased() == [d.cri.address(other)] and len(processes()) == 1
    assert "reason=\"%s\"" % LOSSES[lose] in d.log()
    assert refused(d.cri.run, "a", pid=0)[0] == "ALREADY_EXISTS"
    d.cri.remove(pod)
    d.cri.run("a", pid=0)


def test_a_pod_whose_state_cannot_be_stored_does_not_keep_the_daemon_from_starting(pods):
    d = pods()
    pod, other = d.cri.run("a"), d.cri.run("b")
    d.kill()
    unmount_netns(d, pod)
    with d.database() as db:
        db.execute("CREATE TRIGGER full BEFORE UPDATE ON pods BEGIN SELECT RAISE(ABORT, 'no more room'); END")
        db.commit()
    d.start()
    assert d.cri.status(other).state == READY
    assert "no more room" in d.log()
    with d.database() as db:
        db.execute("DROP TRIGGER full")
        db.commit()
    wait_until(lambda: is_stopped(d, pod), d.log)


@pytest.mark.parametrize("restart", [False, True])
def test_a_pod_whose_pause_process_ends_is_stopped(pods, restart):
    d = pods()
    pod, other = d.cri.run("a", pid=0), d.cri.run("b", pid=0)
    if restart:  # hawser-pause is no child of the daemon any more
        d.restart()
    end_pause(d, pod)
    wait_until(lambda: is_stopped(d, pod), d.log)
    assert d.cri.status(other).state == READY and d.leased() == [d.cri.address(other)]
    assert "reason=\"%s\"" % LOSSES[end_pause] in d.log()
    wait_until(lambda: "defunct" not in run("ps", "-e", "-o", "args"))
    d.cri.remove(pod)
    assert d.cri.run("a", pid=0) != pod


def test_a_container_that_ends_process_1_of_its_pod_ends_the_pod(containers):
    d = containers()
    pod = d.cri.pod(pid=POD)
    container = d.cri.run_container(pod, FOREVER, pid=POD)
    d.cri.start("ExecSync", container_id=container, cmd=["/bin/kill", "1"]).exception(60)
    wait_until(lambda: is_stopped(d, pod), d.log)
    assert d.cri.container(container).state == EXITED and not processes()
    d.cri.remove(pod)
    assert d.cri.run_container(d.cri.pod(pid=POD), FOREVER, pid=POD)
