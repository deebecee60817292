# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods.py - pods of hawser-cri: their life, namespaces, files, sysctls, handlers and cgroups
"""
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from poddaemon import (CGROUPS, NETNS, NOTREADY, READY, both_plugins, connect, in_namespace,
                       namespace, pods, processes, refused, run)  # noqa: F401, pods is a fixture
from waiting import wait_until

KINDS = {"network": "net", "ipc": "ipc", "uts": "uts", "pid": "pid"}


def paths(client, pod):
    """The namespaces of a pod: {type: path}."""
    return {n["type"]: n["path"] for n in client.info(pod)["runtimeSpec"]["linux"]["namespaces"]}


def pod_file(daemon, pod, name):
    return (daemon.state / "pods" / pod / name).read_text()


# ---- life ------------------------------------------------------------------------------------------

@both_plugins
def test_a_pod_is_created_reached_stopped_and_removed(pods, plugins):
    d = pods(plugins=plugins)
    ports = [{"host_port": 8080, "container_port": 80}, {"host_port": 0, "container_port": 90}]
    a, b = d.cri.run("a", port_mappings=ports), d.cri.run("b")
    assert len(a) == 64 and sorted(d.cri.ids()) == sorted([a, b])
    status = d.cri.status(a)
    assert status.state == READY and status.network.ip in d.leased() and status.created_at > 10**18
    assert connect("host", a, status.network.ip, 80) == "10.88.0.1"
    assert connect(b, a, status.network.ip, 80) == d.cri.address(b)
    assert connect("host", a, "10.88.0.1", 8080, 80)
    d.cri.stop(a)
    assert d.cri.status(a).state == NOTREADY and d.cri.ids(state={"state": NOTREADY}) == [a]
    assert not (NETNS / ("hawser-" + a)).exists() and d.leased() == [d.cri.address(b)]
    d.cri.remove(a)
    assert d.cri.ids() == [b]
    assert refused(d.cri.status, a) == ("NOT_FOUND", "no pod sandbox " + a)


def test_stop_and_remove_may_be_repeated_and_ignore_unknown_pods(pods):
    d = pods()
    pod = d.cri.run()
    for _ in range(2):
        d.cri.stop(pod)
    for _ in range(2):
        d.cri.remove(pod)
        d.cri.stop(pod)
    d.cri.stop("0123")
    for method in ("StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus"):
        assert refused(d.cri.call, method) == ("INVALID_ARGUMENT", "pod_sandbox_id is missing")


def test_a_ready_pod_is_removed_without_a_stop(pods):
    d = pods()
    d.cri.remove(d.cri.run(pid=0))
    assert not d.leftovers()


def test_an_id_may_be_shortened_if_it_is_unambiguous(pods):
    d = pods()
    pod = d.cri.run(network=2)
    assert d.cri.status(pod[:12]).id == pod
    d.cri.stop(pod[:12])
    assert d.cri.status(pod).state == NOTREADY
    d.cri.remove(pod[:12])
    assert d.cri.ids() == []


def test_metadata_labels_and_annotations_are_echoed(pods):
    d = pods()
    labels = {"z": "1", "a/b": "", "name": "Ünïcødé", "": "empty key"}
    annotations = {"note": "two\nlines", "n": "0" * 1000}
    pod = d.cri.run("named", attempt=7, labels=labels, annotations=annotations)
    for seen in (d.cri.status(pod), d.cri.list()[0]):
        m = seen.metadata
        assert (m.name, m.uid, m.namespace, m.attempt) == ("named", "named-uid", "default", 7)
        assert dict(seen.labels) == labels and dict(seen.annotations) == annotations
        assert seen.id == pod and seen.runtime_handler == ""
    d.restart()
    assert dict(d.cri.status(pod).labels) == labels and dict(d.cri.list()[0].annotations) == annotations


# ---- lists -----------------------------------------------------------------------------------------

def test_lists_are_filtered_by_id_state_and_labels(pods):
    d = pods()
    all_labels = {"one": {"app": "x", "n": "1"}, "two": {"app": "x", "n": "2"}, "three": {}}
    one, two, three = (d.cri.run(n, network=2, labels=v) for n, v in all_labels.items())
    d.cri.stop(two)
    ids = lambda **f: set(d.cri.ids(**f))  # noqa: E731
    assert ids() == {one, two, three}
    assert ids(id=one) == ids(id=one[:10]) == {one} and ids(id="xyz") == set()
    assert ids(label_selector={"app": "x"}) == {one, two}
    assert ids(label_selector={"app": "x", "n": "2"}) == {two} and ids(label_selector={"app": "y"}) == set()
    assert ids(state={"state": READY}) == {one, three} and ids(state={"state": NOTREADY}) == {two}
    assert ids(state={"state": READY}, label_selector={"app": "x"}) == {one}
    assert ids(id=two[:10], state={"state": READY}) == set()


def test_a_stream_has_every_pod_once_in_several_messages(pods):
    d = pods()
    stream = lambda **f: [[p.id for p in m.pod_sandboxes] for m in d.cri.method(  # noqa: E731
        "StreamPodSandboxes", stream=True)(d.cri.request("StreamPodSandboxes", **f), timeout=60)]
    assert stream() == []
    all_pods = [d.cri.run("p%d" % i, network=2, ipc=2, labels={"even": str(i % 2 == 0)}) for i in range(210)]
    messages = stream()
    assert len(messages) > 1 and sorted(sum(messages, [])) == sorted(all_pods)
    (few,) = stream(filter={"label_selector": {"even": "True"}})
    assert sorted(few) == sorted(all_pods[::2])
    assert stream(filter={"id": "none"}) == []


# ---- namespaces ------------------------------------------------------------------------------------

MODES = [(network, pid, ipc) for network in (0, 2) for pid in (0, 1, 2) for ipc in (0, 2)]


@pytest.mark.parametrize("network,pid,ipc", MODES)
def test_a_pod_has_exactly_the_namespaces_that_it_asks_for(pods, network, pid, ipc):
    d = pods()
    pod = d.cri.run(network=network, pid=pid, ipc=ipc, hostname="pod-host")
    expected = ({"network", "uts"} if network == 0 else set()) | ({"ipc"} if ipc == 0 else set()) | (
        {"pid"} if pid == 0 else set())
    found = paths(d.cri, pod)
    assert set(found) == expected
    for kind, path in found.items():
        assert namespace(path) != namespace("/proc/self/ns/" + KINDS[kind])
    options = d.cri.status(pod).linux.namespaces.options
    assert (options.network, options.pid, options.ipc) == (network, pid, ipc)
    assert bool(d.cri.info(pod)["pid"]) == bool(processes()) == (pid == 0)
    assert bool(d.cri.address(pod)) == (network == 0)
    assert (d.state / "pods" / pod / "shm").exists() == (ipc == 0)
    d.cri.stop(pod)
    assert paths(d.cri, pod) == {} and not processes() and d.cri.info(pod)["pid"] == 0


def oom_score(pid):
    return int(pathlib.Path("/proc/%d/oom_score_adj" % pid).read_text())


def has_sys_resource():
    """May this process lower an oom_score_adj?"""
    status = pathlib.Path("/proc/self/status").read_text()
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) & 1 << 24)


def test_a_pod_without_options_has_all_namespaces_and_a_pause_process(pods):
    d = pods()
    metadata = {"name": "a", "uid": "u", "namespace": "n"}
    pod = d.cri.call("RunPodSandbox", config={"metadata": metadata}).pod_sandbox_id
    found, info = paths(d.cri, pod), d.cri.info(pod)
    assert set(found) == set(KINDS) and info["netns"] == found["network"] == "/run/netns/hawser-" + pod
    assert namespace("/proc/%d/ns/pid" % info["pid"]) == namespace(found["pid"])
    assert pathlib.Path("/proc/%d/comm" % info["pid"]).read_text() == "hawser-pause\n"
    assert oom_score(info["pid"]) == (-998 if has_sys_resource() else max(-998, oom_score(d.process.pid)))
    assert "UP" in in_namespace(found["network"], "ip", "-br", "link", "show", "lo")


def test_stop_ends_processes_that_are_in_the_pid_namespace(pods):
    d = pods()
    pod = d.cri.run(pid=0)
    other = subprocess.Popen(["nsenter", "--pid=" + paths(d.cri, pod)["pid"], "sleep", "infinity"])
    wait_until(lambda: "sleep" in run("ps", "-o", "comm=", "--ppid", other.pid))
    d.cri.stop(pod)
    assert other.wait(60) != 0


# ---- host name, sysctls ----------------------------------------------------------------------------

def test_the_host_name_is_set_in_the_pod_only(pods):
    d = pods()
    name = os.uname().nodename
    pod, plain = d.cri.run("a", hostname="web-0.test"), d.cri.run("b")
    assert in_namespace(paths(d.cri, pod)["uts"], "uname", "-n", kind="uts") == "web-0.test\n"
    assert in_namespace(paths(d.cri, plain)["uts"], "uname", "-n", kind="uts") == name + "\n"
    assert pod_file(d, pod, "hostname") == "web-0.test\n" and pod_file(d, plain, "hostname") == name + "\n"
    assert os.uname().nodename == name


def sysctl(path, name, kind="net"):
    return in_namespace(path, "cat", "/proc/sys/" + name.replace(".", "/"), kind=kind).strip()


def test_sysctls_are_set_also_those_of_an_interface_that_add_creates(pods):
    d = pods()
    before = pathlib.Path("/proc/sys/kernel/shmmni").read_text()
    pod = d.cri.run(linux={"sysctls": {
        "net.ipv4.ip_local_port_range": "2000\t3000", "net/ipv4/conf/eth0/rp_filter": "2",
        "net.ipv4.conf.eth0.arp_notify": "1", "kernel.shmmni": "77", "kernel.shm_rmid_forced": "1",
        "fs.mqueue.msg_max": "33"}})
    found = paths(d.cri, pod)
    assert sysctl(found["network"], "net.ipv4.ip_local_port_range") == "2000\t3000"
    assert sysctl(found["network"], "net.ipv4.conf.eth0.rp_filter") == "2"
    assert sysctl(found["network"], "net.ipv4.conf.eth0.arp_notify") == "1"
    assert sysctl(found["ipc"], "kernel.shmmni", "ipc") == "77"
    assert sysctl(found["ipc"], "kernel.shm_rmid_forced", "ipc") == "1"
    assert pathlib.Path("/proc/sys/kernel/shmmni").read_text() == before


def test_default_sysctls_are_set_unless_the_pod_has_another_value(pods):
    d = pods("--default-sysctls", "net.ipv4.ip_unprivileged_port_start=7",
             "--default-sysctls", "net.ipv4.ip_default_ttl=33")
    name = "net.ipv4.ip_unprivileged_port_start"
    pod, other = d.cri.run("a"), d.cri.run("b", linux={"sysctls": {name: "99"}})
    assert sysctl(paths(d.cri, pod)["network"], name) == "7"
    assert sysctl(paths(d.cri, other)["network"], name) == "99"
    assert sysctl(paths(d.cri, other)["network"], "net.ipv4.ip_default_ttl") == "33"
    d.cri.run("host", network=2)


# ---- files -----------------------------------------------------------------------------------------

def test_resolv_conf_has_the_dns_configuration_of_the_pod(pods):
    d = pods()
    dns = {"servers": ["10.0.0.10", "fd00::10"], "searches": ["a.test", "b.test"], "options": ["ndots:5"]}
    pod = d.cri.run("a", dns_config=dns)
    assert pod_file(d, pod, "resolv.conf") == ("search a.test b.test\nnameserver 10.0.0.10\nnameserver fd00::10\n"
                                               "options ndots:5\n")
    host = pathlib.Path("/etc/resolv.conf")
    assert pod_file(d, d.cri.run("b"), "resolv.conf") == (host.read_text() if host.exists() else "")


def test_hosts_has_the_addresses_of_the_pod_or_is_that_of_the_host(pods):
    d = pods()
    pod = d.cri.run("a", hostname="web")
    text = pod_file(d, pod, "hosts")
    assert "127.0.0.1\tlocalhost\n" in text and "%s\tweb\n" % d.cri.address(pod) in text
    host = d.cri.run("b", network=2, hostname="ignored")
    assert pod_file(d, host, "hosts") == pathlib.Path("/etc/hosts").read_text()
    assert pod_file(d, host, "hostname") == os.uname().nodename + "\n"


def test_shm_is_a_tmpfs_for_everyone(pods):
    d = pods()
    pod = d.cri.run()
    shm = d.state / "pods" / pod / "shm"
    assert run("findmnt", "-no", "FSTYPE,SIZE", shm).split() == ["tmpfs", "64M"]
    assert stat.S_IMODE(shm.stat().st_mode) == 0o1777
    assert {"nosuid", "nodev", "noexec"} <= set(run("findmnt", "-no", "OPTIONS", shm).strip().split(","))


def test_the_directory_for_logs_is_created_and_kept(pods):
    d = pods()
    logs = d.dir / "logs/default_a"
    d.cri.remove(d.cri.run(log_directory=str(logs)))
    assert logs.is_dir()


# ---- handlers --------------------------------------------------------------------------------------

def test_a_pod_uses_a_handler_that_is_configured_and_works(pods, tmp_path):
    crun = shutil.which("crun")
    d = pods("--runtime-handler", "other=" + crun, "--runtime-handler", "broken=/bin/false")
    handlers = [h.name for h in d.cri.call("Status").runtime_handlers]
    assert handlers == ["", "other"]
    pod = d.cri.run(handler="other")
    assert d.cri.status(pod).runtime_handler == d.cri.list()[0].runtime_handler == "other"
    assert d.cri.info(pod)["runtimeHandler"] == "other"
    assert refused(d.cri.run, "b", handler="none") == (
        "INVALID_ARGUMENT", 'runtime_handler: unknown handler "none"')
    code, text = refused(d.cri.run, "b", handler="broken")
    assert code == "FAILED_PRECONDITION" and text.startswith('runtime_handler: handler "broken" cannot be used: ')
    assert d.cri.ids() == [pod]


# ---- cgroups ---------------------------------------------------------------------------------------

def cgroups(path):
    """The hierarchies in which a cgroup exists."""
    return {d.parts[4] for d in CGROUPS.glob("*/" + path.strip("/"))}


@pytest.mark.skipif((CGROUPS / "cgroup.controllers").exists(), reason="this host has no cgroup v1")
def test_pause_is_in_a_cgroup_below_the_parent_of_the_client(pods):
    d = pods("--cgroup-driver", "cgroupfs")
    for parent in CGROUPS.glob("*"):
        if (parent / "cgroup.procs").exists():
            (parent / "kubepods-test").mkdir()
    before = cgroups("/kubepods-test")
    pod = d.cri.run(pid=0, linux={"cgroup_parent": "/kubepods-test"})
    assert cgroups("/kubepods-test/" + pod) == before
    pid = d.cri.info(pod)["pid"]
    lines = pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines()
    assert {line.split(":", 2)[2] for line in lines if not line.startswith("0:")} == {"/kubepods-test/" + pod}
    assert d.cri.info(pod)["runtimeSpec"]["linux"]["cgroupsPath"] == "/kubepods-test"
    d.cri.remove(pod)
    assert cgroups("/kubepods-test/" + pod) == set() and cgroups("/kubepods-test") == before
    for parent in CGROUPS.glob("*/kubepods-test"):
        parent.rmdir()


def test_a_pod_without_a_parent_has_a_cgroup_of_its_own_that_is_removed(pods):
    d = pods("--cgroup-driver", "cgroupfs")
    pod = d.cri.run(pid=0)
    assert d.cri.info(pod)["runtimeSpec"]["linux"]["cgroupsPath"] == "/hawser/" + pod
    assert cgroups("/hawser/%s/%s" % (pod, pod))
    d.cri.remove(pod)
    assert not cgroups("/hawser/" + pod)


def test_with_the_systemd_driver_a_parent_is_a_slice(pods):
    d = pods("--cgroup-driver", "systemd")
    pod = d.cri.run("a", linux={"cgroup_parent": "kubepods-burstable-pod1.slice"})
    assert d.cri.info(pod)["runtimeSpec"]["linux"]["cgroupsPath"] == (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice")
    own = d.cri.run("b")
    assert d.cri.info(own)["runtimeSpec"]["linux"]["cgroupsPath"] == "/hawser.slice/hawser-%s.slice" % own
    code, text = refused(d.cri.run, "c", linux={"cgroup_parent": "/kubepods/pod1"})
    assert code == "INVALID_ARGUMENT" and text.startswith("linux.cgroup_parent: ") and "slice" in text


# ---- verbose status --------------------------------------------------------------------------------

def test_a_verbose_status_has_what_tools_look_for(pods):
    d = pods()
    pod = d.cri.run(pid=0, hostname="web", labels={"a": "b"})
    info = d.cri.info(pod)
    assert info["pid"] > 1 and info["state"] == "ready" and info["message"] == ""
    assert info["runtimeSpec"]["hostname"] == "web"
    assert info["config"]["labels"] == {"a": "b"} and info["config"]["name"] == "a"
    (ip,) = info["cniResult"]["eth0"]["ips"]
    assert ip["address"] == d.cri.address(pod) + "/16" and ip["gateway"] == "10.88.0.1"
    assert not d.cri.call("PodSandboxStatus", pod_sandbox_id=pod).info
