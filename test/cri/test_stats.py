# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_stats.py - ContainerStats, PodSandboxStats, their lists and streams, and ImageFsInfo: what containers and
pods use
"""
import pathlib
import re
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import FOREVER, V2, cgroup_value, containers  # noqa: F401, a fixture
from poddaemon import connect, in_namespace, in_threads, refused
from waiting import LONG, wait_until

MIB = 1 << 20
BUSY = ["/bin/sh", "-c", "while :; do :; done"]
# A shell that has read its command holds it in memory.
LARGE = ["/bin/sh", "-c", "x=$(head -c 9000000 /dev/zero | tr '\\0' x); echo ready; sleep 100000; true"]


def stats(d, container):
    return d.cri.call("ContainerStats", container_id=container).stats


def listed(d, **filter):
    return sorted(s.attributes.id for s in d.cri.call("ListContainerStats", filter=filter).stats)


def pod_stats(d, pod):
    return d.cri.call("PodSandboxStats", pod_sandbox_id=pod).stats


def pods_listed(d, **filter):
    return sorted(s.attributes.id for s in d.cri.call("ListPodSandboxStats", filter=filter).stats)


def stream(d, name, **fields):
    return list(d.cri.method(name, stream=True)(d.cri.request(name, **fields), timeout=LONG))


def test_a_container_has_processor_memory_and_disk_usage_with_the_time_of_each(containers):
    d = containers()
    before = time.time_ns()
    pod = d.cri.pod(labels={"app": "a"})
    container = d.cri.run_server(pod, LARGE, labels={"tier": "b"}, annotations={"note": "c"},
                                 resources={"memory_limit_in_bytes": 64 * MIB})
    s = stats(d, container)
    assert s.attributes.id == container and s.attributes.metadata.name == "main"
    assert s.attributes.labels == {"tier": "b"} and s.attributes.annotations == {"note": "c"}
    assert before < s.cpu.timestamp <= time.time_ns() and before < s.memory.timestamp <= time.time_ns()
    assert s.cpu.usage_core_nano_seconds.value > 0
    memory = s.memory
    assert 8 * MIB <= memory.rss_bytes.value <= memory.usage_bytes.value <= 64 * MIB
    assert 8 * MIB <= memory.working_set_bytes.value <= memory.usage_bytes.value
    assert memory.available_bytes.value == 64 * MIB - memory.working_set_bytes.value
    assert memory.page_faults.value >= 2000 and memory.HasField("major_page_faults")
    assert before < s.writable_layer.timestamp <= time.time_ns()
    assert s.writable_layer.fs_id.mountpoint == str(d.dir / "root")
    assert s.writable_layer.HasField("used_bytes") and s.writable_layer.inodes_used.value >= 1


def test_values_are_those_of_the_cgroup(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    main = d.main(container)

    def now():
        if V2:
            return int(re.search(r"usage_usec (\d+)", cgroup_value(main, "cpu", "cpu.stat"))[1]) * 1000
        return int(cgroup_value(main, "cpuacct", "cpuacct.usage"))
    usage = "memory.current" if V2 else "memory.usage_in_bytes"
    wait_until(lambda: (value := now()) == stats(d, container).cpu.usage_core_nano_seconds.value == now() and value > 0)
    wait_until(lambda: int(cgroup_value(main, "memory", usage)) == stats(d, container).memory.usage_bytes.value)


def test_values_that_the_kernel_does_not_provide_are_left_out(containers):
    d = containers()
    s = stats(d, d.cri.run_container(d.cri.pod()))
    assert not s.memory.HasField("available_bytes")  # there is no limit
    if not V2:
        assert not s.HasField("io") and not s.cpu.HasField("psi") and not s.memory.HasField("psi")
    # a rate needs two points of processor time
    assert s.cpu.HasField("usage_core_nano_seconds")


def test_the_rate_of_a_busy_container_is_known_after_a_while(containers):
    d = containers()
    pod = d.cri.pod()
    busy = d.cri.run_container(pod, BUSY, name="busy", resources={"cpu_period": 100000, "cpu_quota": 20000})
    idle = d.cri.run_container(pod, name="idle")

    def rates():
        found = {s.attributes.id: s.cpu for s in d.cri.call("ListContainerStats").stats}
        return [found[c].usage_nano_cores.value for c in (busy, idle) if found[c].HasField("usage_nano_cores")]
    wait_until(lambda: len(rates()) == 2)
    wait_until(lambda: (found := rates())[0] > 10_000_000 > found[1])
    assert rates()[0] < 400_000_000  # a fifth of a processor, and what the machine's load adds
    wait_until(lambda: pod_stats(d, pod).linux.cpu.usage_nano_cores.value > 10_000_000)


def test_the_list_has_containers_that_run_and_filters_them(containers):
    d = containers()
    one, other = d.cri.pod("one"), d.cri.pod("other")
    a = d.cri.run_container(one, name="a", labels={"app": "x", "n": "1"})
    b = d.cri.run_container(one, name="b", labels={"app": "x"})
    c = d.cri.run_container(other, name="c")
    created = d.cri.create(other, name="created", labels={"app": "x"})
    ended = d.cri.run_to_end(other, ["/bin/true"], name="ended").id
    assert listed(d) == sorted([a, b, c])
    assert sorted(s.attributes.id for s in d.cri.call("ListContainerStats").stats) == sorted([a, b, c])
    assert listed(d, pod_sandbox_id=one) == sorted([a, b]) and listed(d, pod_sandbox_id=other) == [c]
    assert listed(d, label_selector={"app": "x"}) == sorted([a, b])
    assert listed(d, label_selector={"app": "x", "n": "1"}) == [a] and not listed(d, label_selector={"app": "y"})
    assert listed(d, id=a) == listed(d, id=a[:20]) == listed(d, id=a, pod_sandbox_id=one) == [a]
    assert not listed(d, id=a, pod_sandbox_id=other) and not listed(d, id="0" * 64)
    # by its ID, a container is listed in every state
    for container in (created, ended):
        assert listed(d, id=container) == [container]
        s = stats(d, container)
        assert s.attributes.id == container and not s.HasField("cpu") and not s.HasField("memory")
        assert s.writable_layer.inodes_used.value >= 1


def test_streams_have_the_same_items_as_the_lists(containers):
    d = containers()
    pod = d.cri.pod(labels={"app": "x"})
    other = d.cri.pod("b")
    ids = sorted(d.cri.run_container(pod, name="c%d" % i) for i in range(3))
    found = [s for m in stream(d, "StreamContainerStats") for s in m.container_stats]
    assert sorted(s.attributes.id for s in found) == ids and all(s.cpu.timestamp for s in found)
    assert not stream(d, "StreamContainerStats", filter={"id": "0" * 64})
    found = [s for m in stream(d, "StreamPodSandboxStats") for s in m.pod_sandbox_stats]
    assert sorted(s.attributes.id for s in found) == sorted([pod, other])
    found = [s for m in stream(d, "StreamPodSandboxStats", filter={"label_selector": {"app": "x"}})
             for s in m.pod_sandbox_stats]
    assert [s.attributes.id for s in found] == [pod]
    assert sorted(s.attributes.id for s in found[0].linux.containers) == ids


@pytest.mark.parametrize("name,field", [("ContainerStats", "container_id"), ("PodSandboxStats", "pod_sandbox_id")])
def test_an_unknown_id_is_not_found_and_a_missing_one_is_invalid(containers, name, field):
    d = containers()
    assert refused(d.cri.call, name, **{field: "0" * 64})[0] == "NOT_FOUND"
    assert refused(d.cri.call, name) == ("INVALID_ARGUMENT", field + " is missing")


def test_a_pod_has_the_usage_of_its_cgroup_and_its_containers(containers):
    d = containers()
    pod = d.cri.pod(labels={"app": "x"}, annotations={"note": "y"})
    ids = sorted(d.cri.run_server(pod, LARGE, name="c%d" % i) for i in range(2))
    ended = d.cri.run_to_end(pod, ["/bin/true"], name="ended").id
    s = pod_stats(d, pod)
    assert s.attributes.id == pod and s.attributes.metadata.name == "a" and s.attributes.metadata.namespace == "default"
    assert s.attributes.labels == {"app": "x"} and s.attributes.annotations == {"note": "y"}
    found = {c.attributes.id: c for c in s.linux.containers}
    assert sorted(found) == ids and ended not in found
    assert s.linux.memory.rss_bytes.value >= 16 * MIB
    assert s.linux.cpu.usage_core_nano_seconds.value > 0 and s.linux.cpu.timestamp > 0
    assert s.linux.process.process_count.value >= 2 and s.linux.process.timestamp > 0
    assert not s.linux.HasField("network")  # it uses the host's


def test_pods_are_listed_while_they_are_ready_and_found_by_id_after_that(containers):
    d = containers()
    a, b = d.cri.pod("a", labels={"app": "x"}), d.cri.pod("b")
    assert pods_listed(d) == sorted([a, b]) and pods_listed(d, label_selector={"app": "x"}) == [a]
    assert pods_listed(d, id=b) == pods_listed(d, id=b[:20]) == [b] and not pods_listed(d, id="0" * 64)
    d.cri.stop(a)
    assert pods_listed(d) == [b] and pods_listed(d, id=a) == [a]
    s = pod_stats(d, a)
    assert s.attributes.id == a and not s.linux.HasField("cpu") and not s.linux.containers


def test_a_pod_has_the_traffic_of_each_interface(containers):
    d = containers()
    pod = d.cri.pod(network=0)
    before = pod_stats(d, pod).linux.network
    assert before.default_interface.name == "eth0" and before.timestamp > 0 and not before.interfaces
    address = d.cri.address(pod)
    assert connect("host", pod, address, 8080)
    after = pod_stats(d, pod).linux.network.default_interface
    assert after.rx_bytes.value > before.default_interface.rx_bytes.value
    assert after.tx_bytes.value > before.default_interface.tx_bytes.value
    assert after.rx_errors.value == after.tx_errors.value == 0


def test_a_pod_whose_interface_was_renamed_has_no_traffic(containers):
    d = containers()
    pod = d.cri.pod(network=0)
    assert pod_stats(d, pod).linux.HasField("network")
    namespaces = {n["type"]: n["path"] for n in d.cri.info(pod)["runtimeSpec"]["linux"]["namespaces"]}
    in_namespace(namespaces["network"], "ip", "link", "set", "eth0", "down")
    in_namespace(namespaces["network"], "ip", "link", "set", "eth0", "name", "other")
    # a kubelet crashes if there is a network without a default interface
    assert not pod_stats(d, pod).linux.HasField("network")
    (listed,) = d.cri.call("ListPodSandboxStats").stats
    assert not listed.linux.HasField("network")


def test_what_a_container_has_written_is_counted_again(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    first = stats(d, container).writable_layer
    d.cri.sh(container, "mkdir /more && head -c 3000000 /dev/zero > /more/a && ln /more/a /more/b")
    wait_until(lambda: stats(d, container).writable_layer.timestamp > first.timestamp
               and stats(d, container).writable_layer.used_bytes.value >= 3000000)
    second = stats(d, container).writable_layer
    assert second.used_bytes.value - first.used_bytes.value < 3100000
    assert second.inodes_used.value == first.inodes_used.value + 2


def test_image_fs_info_counts_what_containers_have_written(containers):
    d = containers()

    def written():
        (usage,) = d.cri.call("ImageFsInfo").container_filesystems
        assert usage.fs_id.mountpoint == str(d.dir / "root") and usage.timestamp > 0
        return usage.used_bytes.value
    assert written() == 0
    (images,) = d.cri.call("ImageFsInfo").image_filesystems
    assert images.used_bytes.value > 0
    pod = d.cri.pod()
    container = d.cri.run_container(pod, ["/bin/sh", "-c", "head -c 2000000 /dev/zero > /a; sleep 100000"])
    wait_until(lambda: written() >= 2000000)
    assert d.cri.call("ImageFsInfo").image_filesystems[0].used_bytes.value == images.used_bytes.value
    d.cri.stop_container(container)
    d.cri.remove_container(container)
    assert written() == 0


def test_statistics_can_be_read_while_containers_come_and_go(containers):
    d = containers()
    pod = d.cri.pod()
    done = []

    def change():
        client = d.client()
        client.configs = d.cri.configs
        for i in range(5):
            client.remove_container(client.run_container(pod, name="x", attempt=i))
        done.append(True)

    def read():
        client = d.client()
        while not done:
            for s in client.call("ListContainerStats").stats:
                assert s.attributes.metadata.name == "x"
            for s in client.call("ListPodSandboxStats").stats:
                assert s.attributes.id == pod
    in_threads(change, read, read)


def test_statistics_are_read_after_a_restart_of_the_daemon(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), FOREVER)
    before = stats(d, container)
    d.restart()
    after = stats(d, container)
    assert after.cpu.usage_core_nano_seconds.value >= before.cpu.usage_core_nano_seconds.value > 0
    assert after.writable_layer.inodes_used.value == before.writable_layer.inodes_used.value >= 1
    assert pathlib.Path("/proc/%d" % d.main(container)).exists()
