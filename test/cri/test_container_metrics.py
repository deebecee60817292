# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_container_metrics.py - ListMetricDescriptors, ListPodSandboxMetrics, StreamPodSandboxMetrics
"""
import os
import pathlib
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import IMAGE, V2, containers  # noqa: F401, a fixture
from poddaemon import connect
from waiting import LONG, wait_until

MIB = 1 << 20
BASE = ["id", "name", "image", "container", "namespace", "pod"]
# those that critest v1.36 expects, with the labels of each
NETWORK = ["network_%s_%s_total" % (way, what) for way in ("receive", "transmit")
           for what in ("bytes", "errors", "packets", "packets_dropped")]
DEVICES = ["fs_reads_bytes_total", "fs_reads_total", "fs_writes_bytes_total", "fs_writes_total"]
PRESSURE = ["pressure_%s_%s_seconds_total" % (what, how) for what in ("cpu", "io", "memory")
            for how in ("stalled", "waiting")]
HUGEPAGES = ["hugetlb_max_usage_bytes", "hugetlb_usage_bytes"]
PLAIN = """cpu_cfs_periods_total cpu_cfs_throttled_periods_total cpu_cfs_throttled_seconds_total cpu_system_seconds_total
    cpu_user_seconds_total file_descriptors fs_inodes_free fs_inodes_total fs_limit_bytes fs_usage_bytes last_seen
    memory_cache memory_failcnt memory_kernel_usage memory_mapped_file memory_max_usage_bytes memory_rss memory_swap
    memory_usage_bytes memory_working_set_bytes oom_events_total processes sockets spec_cpu_period spec_cpu_quota
    spec_cpu_shares spec_memory_limit_bytes spec_memory_swap_limit_bytes start_time_seconds threads
    threads_max""".split()
LABELS = {**{"container_" + n: [] for n in PLAIN + PRESSURE + ["spec_memory_reservation_limit_bytes"]},
          **{"container_" + n: ["interface"] for n in NETWORK}, **{"container_" + n: ["device"] for n in DEVICES},
          **{"container_" + n: ["pagesize"] for n in HUGEPAGES},
          "container_blkio_device_usage_total": ["device", "major", "minor", "operation"],
          "container_cpu_usage_seconds_total": ["cpu"], "container_memory_failures_total": ["failure_type", "scope"],
          "container_ulimits_soft": ["ulimit"]}
LIMITS = {"cpu_period": 100000, "cpu_quota": 20000, "cpu_shares": 1024, "memory_limit_in_bytes": 64 * MIB,
          "memory_swap_limit_in_bytes": 64 * MIB}
COUNTER, GAUGE = 0, 1


def descriptors(d):
    return {m.name: m for m in d.cri.call("ListMetricDescriptors").descriptors}


def read(d):
    """The metrics of each pod and container: ID → name → labels → metric."""
    keys = {name: list(m.label_keys) for name, m in descriptors(d).items()}
    found = {}

    def add(id, metrics):
        for m in metrics:
            assert len(m.label_values) == len(keys[m.name]), m
            labels = dict(zip(keys[m.name], m.label_values))
            assert labels["id"] == id
            values = found.setdefault(id, {}).setdefault(m.name, {})
            extra = tuple(labels[k] for k in keys[m.name] if k not in BASE)
            assert extra not in values, m
            values[extra] = (m, labels)
    for pod in d.cri.call("ListPodSandboxMetrics").pod_metrics:
        found[pod.pod_sandbox_id] = {}
        add(pod.pod_sandbox_id, pod.metrics)
        for container in pod.container_metrics:
            found[container.container_id] = {}
            add(container.container_id, container.metrics)
    return found


def value(metrics, name, *labels):
    return metrics["container_" + name][labels][0].value.value


def test_every_metric_has_a_description_and_labels(containers):
    d = containers()
    found = descriptors(d)
    assert {name: list(m.label_keys) for name, m in found.items()} == {n: BASE + l for n, l in LABELS.items()}
    assert len(found) == 56 and all(m.help.endswith(".") for m in found.values())


def test_a_container_has_all_metrics_that_the_kernel_provides(containers):
    d = containers()
    pod = d.cri.pod(network=0)
    container = d.cri.run_container(pod, ["/bin/sh", "-c", "x=$(head -c 9000000 /dev/zero | tr '\\0' x); "
                                          "sleep 100000 & echo ready; wait"], resources=LIMITS)
    d.cri.wait_for_line(container, "ready")
    before = int(time.time())
    found = read(d)
    assert set(found) == {pod, container}
    metrics = found[container]
    missing = {n for n in LABELS if n not in metrics and n not in found[pod]}
    optional = set(DEVICES + HUGEPAGES + ["blkio_device_usage_total", "spec_memory_reservation_limit_bytes",
                                          "fs_inodes_free", "fs_inodes_total"])
    assert missing <= {"container_" + n for n in optional | (set() if V2 else set(PRESSURE))}, missing
    assert not {"container_" + n for n in NETWORK} & set(metrics)
    assert value(metrics, "spec_cpu_period") == 100000 and value(metrics, "spec_cpu_quota") == 20000
    assert value(metrics, "spec_cpu_shares") == 1024
    assert value(metrics, "spec_memory_limit_bytes") == value(metrics, "spec_memory_swap_limit_bytes") == 64 * MIB
    assert 8 * MIB <= value(metrics, "memory_rss") <= value(metrics, "memory_usage_bytes") \
        <= value(metrics, "memory_max_usage_bytes") <= 64 * MIB
    assert value(metrics, "memory_working_set_bytes") <= value(metrics, "memory_usage_bytes")
    assert value(metrics, "memory_failures_total", "pgfault", "container") >= 2000
    assert value(metrics, "oom_events_total") == 0 and value(metrics, "cpu_usage_seconds_total", "total") < 60
    assert value(metrics, "processes") == value(metrics, "threads") == 2 and value(metrics, "threads_max") == 0
    assert abs(value(metrics, "start_time_seconds") - before) < 600
    assert before <= value(metrics, "last_seen") <= int(time.time())
    space = os.statvfs(d.dir / "root")
    assert value(metrics, "fs_limit_bytes") == space.f_blocks * space.f_frsize
    usage = metrics["container_fs_usage_bytes"][()][0]
    assert usage.timestamp > 0  # the others are as old as the response
    assert {m.timestamp for name in metrics for m, _ in metrics[name].values() if m is not usage} == {0}


def test_labels_name_the_container_and_the_pod(containers):
    d = containers()
    pod = d.cri.pod("web", network=0)
    container = d.cri.run_container(pod, name="server")
    found = read(d)
    for values in found[container].values():
        for _, labels in values.values():
            assert {k: labels[k] for k in BASE} == {
                "id": container, "name": "server", "image": IMAGE, "container": "server", "namespace": "default", "pod": "web"}
    for values in found[pod].values():
        for _, labels in values.values():
            assert {k: labels[k] for k in BASE} == {
                "id": pod, "name": "POD", "image": "", "container": "POD", "namespace": "default", "pod": "web"}


def test_counters_and_gauges_are_told_apart(containers):
    d = containers()
    found = read(d) if d.cri.run_container(d.cri.pod()) else {}
    for metrics in found.values():
        for name, values in metrics.items():
            counter = name.endswith("_total") and name != "container_fs_inodes_total" or name.endswith("failcnt")
            assert {m.metric_type for m, _ in values.values()} == {COUNTER if counter else GAUGE}, name


def test_limits_that_are_not_set_are_left_out(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    metrics = read(d)[container]
    for name in ("cpu_quota", "memory_limit_bytes", "memory_swap_limit_bytes"):
        assert "container_spec_" + name not in metrics
    assert "container_memory_usage_bytes" in metrics


def test_files_and_sockets_are_those_of_the_processes(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod(), ["/bin/sh", "-c", "exec 5</dev/null 6</dev/null; nc -l -p 7 & echo ready; wait"])

    def sockets(pid):
        return sum(os.readlink(f).startswith("socket:") for f in pathlib.Path("/proc/%d/fd" % pid).iterdir())

    def files():
        return sum(len(list(pathlib.Path("/proc/%d/fd" % pid).iterdir())) for pid in pids)
    main = d.main(container)
    pids = [main] + [int(p) for p in pathlib.Path("/proc/%d/task/%d/children" % (main, main)).read_text().split()]
    wait_until(lambda: sockets(pids[1]))  # nc opens no file after that
    metrics = read(d)[container]
    assert value(metrics, "processes") == len(pids) == 2
    assert value(metrics, "file_descriptors") == files() >= 5
    assert value(metrics, "sockets") == sum(sockets(pid) for pid in pids) >= 1
    limit = next(l.split()[3] for l in pathlib.Path("/proc/%d/limits" % main).read_text().splitlines() if "open files" in l)
    assert value(metrics, "ulimits_soft", "max_open_files") == int(limit)


def test_a_pod_has_the_traffic_of_its_interfaces(containers):
    d = containers()
    pod, other = d.cri.pod("a", network=0), d.cri.pod("b")
    before = read(d)
    assert connect("host", pod, d.cri.address(pod), 8080)
    after = read(d)
    assert not after[other]
    for name in ("receive_bytes", "receive_packets", "transmit_bytes", "transmit_packets"):
        name = "network_%s_total" % name
        assert list(after[pod]["container_" + name]) == [("eth0",)]
        assert value(after[pod], name, "eth0") > value(before[pod], name, "eth0")


def test_the_stream_has_the_pods_of_the_list(containers):
    d = containers()
    pods = [d.cri.pod("p%d" % i) for i in range(3)]
    ids = {pod: {d.cri.run_container(pod)} for pod in pods}
    d.cri.stop(pods[2])
    call = d.cri.method("StreamPodSandboxMetrics", stream=True)
    found = [p for m in call(d.cri.request("StreamPodSandboxMetrics"), timeout=LONG) for p in m.pod_sandbox_metrics]
    assert {p.pod_sandbox_id: {c.container_id for c in p.container_metrics} for p in found} == {
        pod: ids[pod] for pod in pods[:2]}
    assert all(c.metrics for p in found for c in p.container_metrics)
