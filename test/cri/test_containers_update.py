# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_update.py - UpdateContainerResources: limits of containers change while they exist
"""
import pathlib
import signal

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CREATED, IDLE, RUNNING, V2, cgroup_value, containers  # noqa: F401, a fixture
from poddaemon import refused
from slowcrun import Crun
from waiting import wait_until

MIB = 1 << 20
FIRST = {"cpu_period": 100000, "cpu_quota": 50000, "memory_limit_in_bytes": 64 * MIB}


def update(d, container, **limits):
    d.cri.call("UpdateContainerResources", container_id=container, linux=limits)


def limits_in_force(d, container):
    """The CPU quota and the memory limit of a container, from its cgroup."""
    main = d.main(container)
    if V2:
        return int(cgroup_value(main, "cpu", "cpu.max").split()[0]), int(cgroup_value(main, "memory", "memory.max"))
    return (int(cgroup_value(main, "cpu", "cpu.cfs_quota_us")),
            int(cgroup_value(main, "memory", "memory.limit_in_bytes")))


def limits_reported(d, container):
    found = d.cri.container(container).resources.linux
    assert found.cpu_period == 100000
    return found.cpu_quota, found.memory_limit_in_bytes


def assert_limits(d, container, quota, memory):
    assert limits_reported(d, container) == limits_in_force(d, container) == (quota, memory)


@pytest.fixture(params=[CREATED, RUNNING], ids=["created", "running"])
def limited(request, containers):
    """A daemon and a container with limits, which is created or running."""
    d = containers()
    container = d.cri.create(d.cri.pod(), resources=FIRST)
    if request.param == RUNNING:
        d.cri.start_container(container)
    assert_limits(d, container, 50000, 64 * MIB)
    return d, container


def test_a_limit_changes_in_the_cgroup_and_in_the_status_and_the_others_stay(limited):
    d, container = limited
    update(d, container, memory_limit_in_bytes=96 * MIB)
    assert_limits(d, container, 50000, 96 * MIB)
    update(d, container, cpu_quota=25000)
    assert_limits(d, container, 25000, 96 * MIB)
    update(d, container, memory_limit_in_bytes=48 * MIB, cpu_quota=75000)
    assert_limits(d, container, 75000, 48 * MIB)


def test_every_kind_of_limit_changes(limited):
    d, container = limited
    changes = {"cpu_period": 50000, "cpu_shares": 300, "cpuset_cpus": "0", "cpuset_mems": "0",
               "memory_limit_in_bytes": 80 * MIB, "memory_swap_limit_in_bytes": 80 * MIB, "oom_score_adj": 600}
    update(d, container, **changes)
    main = d.main(container)
    files = {"cpu.max": "50000 50000", "cpu.weight": "12"} if V2 else {
        "cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "50000", "cpu.shares": "300"}
    assert {name: cgroup_value(main, "cpu", name) for name in files} == files
    assert cgroup_value(main, "cpuset", "cpuset.cpus") == cgroup_value(main, "cpuset", "cpuset.mems") == "0"
    swap = cgroup_value(main, "memory", "memory.swap.max" if V2 else "memory.memsw.limit_in_bytes")
    assert swap == str(0 if V2 else 80 * MIB)
    found = d.cri.container(container).resources.linux
    assert {name: getattr(found, name) for name in changes} == changes


def test_the_cpu_quota_and_the_memory_limit_are_removed_by_minus_one(limited):
    d, container = limited
    update(d, container, cpu_quota=-1, memory_limit_in_bytes=-1, memory_swap_limit_in_bytes=-1)
    assert limits_reported(d, container) == (-1, -1)
    main = d.main(container)
    if V2:
        assert cgroup_value(main, "cpu", "cpu.max") == "max 100000"
        assert cgroup_value(main, "memory", "memory.max") == "max"
    else:
        assert limits_in_force(d, container)[0] == -1 and limits_in_force(d, container)[1] > 1 << 60
    update(d, container, cpu_quota=25000, memory_limit_in_bytes=96 * MIB, memory_swap_limit_in_bytes=96 * MIB)
    assert_limits(d, container, 25000, 96 * MIB)
    unlimited = d.cri.create(d.cri.pod("b"), resources={"cpu_quota": -1, "memory_limit_in_bytes": -1})
    assert d.cri.container(unlimited).resources.linux.cpu_quota == -1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_changed_limits_outlive_the_daemon(limited, how):
    d, container = limited
    update(d, container, memory_limit_in_bytes=96 * MIB)
    d.restart(how)
    assert_limits(d, container, 50000, 96 * MIB)
    update(d, container, cpu_quota=25000)
    assert_limits(d, container, 25000, 96 * MIB)
    if d.cri.container(container).state == CREATED:
        d.cri.start_container(container)
    assert d.cri.sh(container, "echo works") == "works\n"
    assert_limits(d, container, 25000, 96 * MIB)


@pytest.mark.parametrize("start", [False, True])
def test_an_update_that_a_kill_interrupts_is_undone_by_the_next_daemon(containers, tmp_path, start):
    crun = Crun(tmp_path)
    d = containers("--runtime-handler", "slow=%s" % crun.program)
    container = d.cri.create(d.cri.pod(handler="slow"), resources={**FIRST, "oom_score_adj": 300})
    if start:
        d.cri.start_container(container)
    score = pathlib.Path("/proc/%d/oom_score_adj" % d.main(container))
    crun.linger("update")
    change = d.client().start("UpdateContainerResources", container_id=container, linux={
        "cpu_quota": 25000, "memory_limit_in_bytes": 96 * MIB, "oom_score_adj": 600})
    wait_until(lambda: limits_in_force(d, container) == (25000, 96 * MIB))
    # the score changes after the limits: only from then on a kill is certain to be noticed by the next daemon
    assert score.read_text() == "300\n"
    d.kill()
    crun.go_on("update")  # the next daemon waits until it has ended
    d.start()
    assert change.exception()
    assert_limits(d, container, 50000, 64 * MIB)
    assert score.read_text() == "300\n"
    update(d, container, memory_limit_in_bytes=80 * MIB)
    d.restart()
    assert_limits(d, container, 50000, 80 * MIB)


@pytest.mark.parametrize("field,value,code,error", [
    ("cpu_quota", -5, "INVALID_ARGUMENT", "linux: cpu_quota: -5 is not in the range 1000 to "),
    ("cpu_period", 1, "INVALID_ARGUMENT", "linux: cpu_period: 1 is not in the range 1000 to 1000000"),
    ("cpu_shares", 1, "INVALID_ARGUMENT", "linux: cpu_shares: 1 is not in the range 2 to 262144"),
    ("oom_score_adj", 1001, "INVALID_ARGUMENT", "linux.oom_score_adj: 1001 is not in the range -1000 to 1000"),
    ("memory_swap_limit_in_bytes", 5, "INVALID_ARGUMENT",
     "linux: memory_swap_limit_in_bytes: 5 is less than memory_limit_in_bytes"),
    ("hugepage_limits", [{"page_size": "3MB", "limit": 1}], "INVALID_ARGUMENT",
     "linux: hugepage_limits: this kernel does not limit pages of 3MB"),
    ("hugepage_limits", [{"page_size": "2MB"}] * 65, "INVALID_ARGUMENT", "linux.hugepage_limits: more than 64"),
    ("unified", {"../memory.max": "1"}, "INVALID_ARGUMENT", "linux: unified: "),
    ("cpuset_mems", "0-", "INVALID_ARGUMENT", 'linux: cpuset_mems: "0-" is not a list of numbers'),
    ("cpuset_cpus", "4000", "INVALID_ARGUMENT", "linux: cpuset_cpus: 4000 is not in the range 0 to ")])
def test_a_limit_that_cannot_be_set_changes_nothing(limited, field, value, code, error):
    d, container = limited
    request = {"memory_limit_in_bytes": 96 * MIB, field: value}
    found = refused(update, d, container, **request)
    assert found[0] == code and error in found[1], found
    assert_limits(d, container, 50000, 64 * MIB)
    d.restart()
    assert_limits(d, container, 50000, 64 * MIB)


@pytest.mark.skipif(V2, reason="with cgroup v2 the kernel refuses neither")
@pytest.mark.parametrize("code,resources,change,error", [
    ("INVALID_ARGUMENT", {"cpuset_cpus": "0"}, {"cpuset_cpus": "1"}, "`cpuset.cpus`"),
    ("FAILED_PRECONDITION", {}, {"memory_limit_in_bytes": 1 * MIB}, "Device or resource busy")])
def test_a_limit_that_the_kernel_refuses_changes_nothing(containers, code, resources, change, error):
    d = containers()
    cpus = pathlib.Path("/sys/fs/cgroup/cpuset")
    parent = "/limited-parent"
    if resources:  # the set of a container cannot exceed that of its parent
        (cpus / parent[1:]).mkdir()
        for name in ("cpuset.mems", "cpuset.cpus"):
            (cpus / parent[1:] / name).write_text("0")
    pod = d.cri.pod(linux={"cgroup_parent": parent})
    fill = ["/bin/sh", "-c", "dd if=/dev/zero of=/dev/shm/x bs=1M count=8 && echo ready && " + IDLE]
    container = d.cri.run_server(pod, fill, resources={**FIRST, **resources})
    found = refused(update, d, container, cpu_quota=25000, **change)
    assert found[0] == code and error in found[1], found
    assert_limits(d, container, 50000, 64 * MIB)
    assert {"cpuset_cpus": d.cri.container(container).resources.linux.cpuset_cpus} == {"cpuset_cpus": "", **resources}


def test_limits_that_cannot_be_stored_change_nothing(limited):
    d, container = limited
    with d.database() as db:
        db.execute("CREATE TRIGGER refuse BEFORE UPDATE ON containers BEGIN SELECT RAISE(ABORT, 'not now'); END")
        found = refused(update, d, container, memory_limit_in_bytes=96 * MIB, oom_score_adj=77)
        db.execute("DROP TRIGGER refuse")
    assert "not now" in found[1]
    assert_limits(d, container, 50000, 64 * MIB)
    assert pathlib.Path("/proc/%d/oom_score_adj" % d.main(container)).read_text() != "77\n"
    update(d, container, memory_limit_in_bytes=96 * MIB)
    assert_limits(d, container, 50000, 96 * MIB)


def test_limits_of_a_container_that_does_not_live_cannot_change(containers):
    d = containers()
    ended = d.cri.run_to_end(d.cri.pod(), ["/bin/true"]).id
    assert refused(update, d, ended, cpu_quota=25000) == (
        "FAILED_PRECONDITION", "container %s is exited" % ended)
    assert refused(update, d, "0" * 64, cpu_quota=25000) == ("NOT_FOUND", "no container " + "0" * 64)
    assert refused(update, d, "", cpu_quota=25000) == ("INVALID_ARGUMENT", "container_id is missing")


def test_an_update_of_oom_score_adj_changes_all_processes_of_the_container(containers):
    d = containers()
    script = ["/bin/sh", "-c", "sleep 100000 & echo ready; wait"]
    container = d.cri.run_server(d.cri.pod(), script, resources={"oom_score_adj": 500})
    show = "cat /proc/1/oom_score_adj /proc/$(cat /proc/1/task/1/children | cut -d' ' -f1)/oom_score_adj /proc/$$/oom_score_adj"
    assert d.cri.sh(container, show) == "500\n" * 3
    update(d, container, oom_score_adj=900)
    assert d.cri.sh(container, show) == "900\n" * 3  # also a command that starts later
    assert d.cri.container(container).resources.linux.oom_score_adj == 900
    assert refused(update, d, container, oom_score_adj=1001) == (
        "INVALID_ARGUMENT", "linux.oom_score_adj: 1001 is not in the range -1000 to 1000")
