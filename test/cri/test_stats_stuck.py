# SPDX-License-Identifier: Apache-2.0
#
# Sandbox: --shared
"""
test/cri/test_stats_stuck.py - statistics of containers whose cgroup does not answer

How:   a file system that does not answer is mounted in place of a cgroup. The daemon may have a mount namespace of its
       own, so the mount propagates.
"""
import re
import signal

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CGROUPS, V2, containers  # noqa: F401, a fixture
from deadmount import DeadMount
from poddaemon import in_threads
from waiting import LONG, wait_until


@pytest.fixture
def dead():
    """A function that mounts a dead file system in place of the cgroup of a pod or container."""
    mounts = []

    def mount(name):
        (path,) = (CGROUPS if V2 else CGROUPS / "memory").glob("**/%s" % name)
        mounts.append(DeadMount(path))
        return mounts[-1]
    yield mount
    for each in mounts:
        each.end()


def known(d):
    """The containers whose statistics are known; all are listed."""
    found = d.cri.call("ListContainerStats").stats
    assert sorted(s.attributes.id for s in found) == d.cri.container_ids()
    assert all(s.HasField("cpu") == s.HasField("memory") and s.attributes.metadata.name for s in found)
    return {s.attributes.id for s in found if s.HasField("cpu")}


def threads(d):
    return int(re.search(r"Threads:\s+(\d+)", open("/proc/%d/status" % d.process.pid).read())[1])


def test_a_stuck_cgroup_costs_its_own_values_and_one_thread(containers, dead):
    d = containers()
    pod = d.cri.pod()
    a, b, c = (d.cri.run_container(pod, name=name) for name in "abc")
    assert known(d) == {a, b, c}
    before = threads(d)
    mount = dead(b)
    assert known(d) == {a, c}
    assert "statistics cannot be read: no answer from the kernel id=" + b in d.log()
    waiting = mount.waiting
    assert waiting >= 1
    # while its reader hangs, the cgroup is left alone
    in_threads(*[lambda: known(d)] * 8)
    assert known(d) == {a, c} and mount.waiting == waiting
    s = d.cri.call("ContainerStats", container_id=b).stats
    assert s.attributes.id == b and not s.HasField("cpu")
    (s,) = d.cri.call("ListPodSandboxStats").stats
    assert s.linux.HasField("cpu") and {x.attributes.id for x in s.linux.containers if x.HasField("cpu")} == {a, c}
    (m,) = d.cri.call("ListPodSandboxMetrics").pod_metrics
    assert {x.container_id for x in m.container_metrics} == {a, b, c}
    wait_until(lambda: threads(d) <= before + 12)  # of calls that have just ended
    mount.end()
    wait_until(lambda: known(d) == {a, b, c}, d.log)


def test_other_calls_do_not_wait_for_a_stuck_cgroup(containers, dead):
    d = containers()
    pod = d.cri.pod()
    a = d.cri.run_container(pod, name="a")
    dead(a)
    pending = [d.cri.start(name) for name in ("ListContainerStats", "ListPodSandboxStats") * 8]
    assert d.cri.container_ids() == [a] and d.cri.ids() == [pod] and d.cri.container(a).id == a
    for call in pending:
        assert len(call.result().stats) == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_daemon_starts_while_a_cgroup_is_stuck(containers, dead, how):
    d = containers()
    a = d.cri.run_container(d.cri.pod())
    mount = dead(a)
    assert known(d) == set()
    old = d.process
    d.signal(how)
    # the process stays until the kernel answers, but releases its locks
    d.start()
    assert known(d) == set()
    assert old.poll() is None
    mount.end()
    assert old.wait(LONG) == (0 if how == signal.SIGTERM else -how), d.log()
    wait_until(lambda: known(d) == {a}, d.log)
