# SPDX-License-Identifier: Apache-2.0
"""
test/uml/pods.py - pods and containers of hawser-cri on a kernel whose cgroup controllers are free

What:  pods.bats mounts the cgroups in several ways, and runs these tests with each.
How:   the kernel has no nftables, so the network consists of a plugin that does not need it.
"""
import pathlib

import pytest

from containers import EXITED, FOREVER, IDLE, POD, RUNNING, ContainerDaemon
from fetching import children_of
from poddaemon import CGROUPS, NOTREADY, connect, daemons_of, processes, refused
from waiting import wait_until

LIMITS = {"memory_limit_in_bytes": 64 << 20, "cpu_period": 100000, "cpu_quota": 50000}
V2_FILES = {"memory.max": str(64 << 20), "cpu.max": "50000 100000"}
V1_FILES = {"memory/memory.limit_in_bytes": str(64 << 20), "cpu/cpu.cfs_quota_us": "50000"}


class GuestDaemon(ContainerDaemon):
    def conflist(self, name="pods", **keys):
        return {"cniVersion": "1.0.0", "name": name, "plugins": [{
            "type": "bridge", "bridge": self.bridge, "isGateway": True, "ipam": {
                "type": "host-local", "dataDir": str(self.leases), "subnet": self.subnet}}], **keys}


@pytest.fixture
def daemons(tmp_path):
    """Removes all pods after a test, and checks that nothing is left of them."""
    yield from daemons_of(GuestDaemon, tmp_path)


def cgroups_of(pid):
    """The cgroups of a process in the hierarchies that are mounted: {directory: path}."""
    found = {}
    for line in pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        directory = CGROUPS / controllers if controllers else CGROUPS
        if (directory / "cgroup.procs").exists():
            found[directory] = path
    return found


def read_files(path, names):
    """Files of a cgroup: {name: content}. With v1, a name begins with the hierarchy."""
    def file(name):
        hierarchy, _, base = name.rpartition("/")
        return CGROUPS / hierarchy / path.strip("/") / base
    return {name: file(name).read_text().strip() for name in names}


def test_pods_with_and_without_pause_are_created_reached_stopped_and_removed(daemons):
    d = daemons("--cgroup-driver", "cgroupfs", load=False)
    plain, shared = d.cri.run("a"), d.cri.run("b", pid=POD)
    assert connect("host", plain, d.cri.address(plain), 80) == "10.88.0.1"
    assert connect(shared, plain, d.cri.address(plain), 80) == d.cri.address(shared)
    assert d.cri.info(plain)["pid"] == 0 and len(processes()) == 1
    cgroups = cgroups_of(d.cri.info(shared)["pid"])
    assert cgroups and set(cgroups.values()) == {"/hawser/%s/%s" % (shared, shared)}
    for pod in (plain, shared):
        d.cri.stop(pod)
        assert d.cri.status(pod).state == NOTREADY
    assert not processes() and d.leased() == []
    for pod in (plain, shared):
        d.cri.remove(pod)
    assert not d.leftovers()


def oom_score(pid):
    return int(pathlib.Path("/proc/%d/oom_score_adj" % pid).read_text())


def test_the_processes_that_run_plugins_do_not_inherit_a_negative_oom_score_adj(daemons):
    d = daemons("--cgroup-driver", "cgroupfs", load=False, prefix=("choom", "--adjust", "-999", "--"))
    d.cri.remove(d.cri.run("a"))
    serve = d.serve()
    wait_until(lambda: len(children_of(serve)) == 1)  # the process that waits for the next call
    (call,) = children_of(serve)
    assert (oom_score(d.process.pid), oom_score(serve), oom_score(call)) == (-999, 0, 0)


def test_commands_have_the_oom_score_adj_of_their_container_and_not_that_of_the_daemon(daemons):
    d = daemons("--cgroup-driver", "cgroupfs", prefix=("choom", "--adjust", "-999", "--"))
    pod = d.cri.pod()
    assert oom_score(d.process.pid) == -999
    for score in (500, None, -998):
        given = {} if score is None else {"resources": {"oom_score_adj": score}}
        container = d.cri.run_container(pod, FOREVER, name="score%s" % score, **given)
        want = score or 0
        assert oom_score(d.main(container)) == want
        assert d.cri.sh(container, "cat /proc/self/oom_score_adj") == "%d\n" % want
        assert oom_score(d.monitor(container)) == -1000  # conmon protects itself


def test_a_container_has_its_limits_and_ends_with_its_pod(daemons):
    d = daemons("--cgroup-driver", "cgroupfs")
    pod = d.cri.pod(pid=POD)
    container = d.cri.run_container(pod, FOREVER, pid=POD, resources=LIMITS)
    cgroups = cgroups_of(d.main(container))
    assert cgroups and set(cgroups.values()) == {"/hawser/%s/%s" % (pod, container)}
    files = V2_FILES if CGROUPS in cgroups else V1_FILES
    assert read_files("/hawser/%s/%s" % (pod, container), files) == files
    assert d.cri.sh(container, "echo $((6 * 7))") == "42\n"
    d.cri.stop(pod)
    assert d.cri.container(container).state == EXITED and not processes()
    d.cri.remove(pod)
    assert not d.leftovers()


def test_an_update_of_limits_changes_all_of_them_or_none(daemons):
    d = daemons("--cgroup-driver", "cgroupfs")
    pod = d.cri.pod()
    container = d.cri.run_container(pod, FOREVER, resources=LIMITS)
    v2 = CGROUPS in cgroups_of(d.main(container))

    def update(**limits):
        d.cri.call("UpdateContainerResources", container_id=container, linux=limits)

    def found():
        return read_files("/hawser/%s/%s" % (pod, container), V2_FILES if v2 else V1_FILES)
    update(memory_limit_in_bytes=96 << 20)
    before = found()
    assert str(96 << 20) in before.values()
    if v2:
        update(unified={"memory.high": str(80 << 20)})
        assert read_files("/hawser/%s/%s" % (pod, container), ["memory.high"]) == {"memory.high": str(80 << 20)}
        bad, error = {"memory.high": "nonsense", "memory.low": "4096"}, "memory.high"
    else:
        bad, error = {"memory.high": "1"}, "linux: unified: this host has cgroup v1"
    code, text = refused(update, memory_limit_in_bytes=32 << 20, cpu_quota=25000, unified=bad)
    assert code == "INVALID_ARGUMENT" and error in text, text
    assert found() == before
    if v2:
        assert read_files("/hawser/%s/%s" % (pod, container), ["memory.high", "memory.low"]) == {
            "memory.high": str(80 << 20), "memory.low": "0"}
        assert dict(d.cri.container(container).resources.linux.unified) == {"memory.high": str(80 << 20)}
    assert d.cri.container(container).resources.linux.memory_limit_in_bytes == 96 << 20


def test_a_container_outlives_the_daemon_and_all_its_processes_end_with_it(daemons):
    d = daemons("--cgroup-driver", "cgroupfs")
    pod = d.cri.pod(pid=POD)
    script = "sleep 100000 & trap 'exit 3' TERM; echo ready; " + IDLE
    container = d.cri.run_server(pod, ["/bin/sh", "-c", script], pid=POD)
    main = d.main(container)
    procs = [directory / path.strip("/") / "cgroup.procs" for directory, path in cgroups_of(main).items()]
    d.restart()
    assert d.cri.container(container).state == RUNNING and d.main(container) == main
    d.cri.stop_container(container, 60)
    assert d.cri.container(container).exit_code == 3
    wait_until(lambda: not any(file.read_text() for file in procs))
    d.cri.remove_container(container)
    assert procs and not any(file.exists() for file in procs)


def test_a_container_that_needs_too_much_memory_is_oom_killed(daemons):
    d = daemons("--cgroup-driver", "cgroupfs")
    status = d.cri.run_to_end(d.cri.pod(), ["/bin/sh", "-c", "x=a; while :; do x=$x$x; done"], resources=LIMITS)
    assert (status.reason, status.exit_code) == ("OOMKilled", 137)


def test_statistics_and_metrics_are_those_of_the_cgroups_that_are_mounted(daemons):
    d = daemons("--cgroup-driver", "cgroupfs")
    v2 = (CGROUPS / "cgroup.controllers").exists()
    pod = d.cri.pod(network=POD)
    container = d.cri.run_container(pod, FOREVER, resources=LIMITS)

    def read():
        stats = d.cri.call("PodSandboxStats", pod_sandbox_id=pod).stats.linux
        # the kernel may add up the counters of a new cgroup later
        return all(each.memory.rss_bytes.value and each.memory.page_faults.value for each in (stats, *stats.containers)) and stats
    stats = wait_until(read)
    (found,) = stats.containers
    for each in (stats, found):
        assert 0 < each.memory.working_set_bytes.value <= each.memory.usage_bytes.value < 64 << 20
    assert found.memory.available_bytes.value == (64 << 20) - found.memory.working_set_bytes.value
    assert stats.network.default_interface.name == "eth0"
    # without the controller cpuacct, v1 has no processor time
    assert stats.cpu.HasField("usage_core_nano_seconds") == found.cpu.HasField("usage_core_nano_seconds") == v2
    assert stats.HasField("process") == v2
    (metrics,) = d.cri.call("ListPodSandboxMetrics").pod_metrics
    (inside,) = metrics.container_metrics
    values = {m.name: m.value.value for m in inside.metrics}
    assert inside.container_id == container and values["container_processes"] == 1
    assert values["container_oom_events_total"] == 0 and "container_cpu_cfs_periods_total" in values
    assert ("container_cpu_usage_seconds_total" in values) == v2 == ("container_threads" in values)
    assert values["container_memory_kernel_usage"] > 0 and values["container_spec_cpu_quota"] == 50000
