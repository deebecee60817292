# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_requests.py - requests to create pods: invalid and large ones, repeated and concurrent ones, and
clients that leave
"""
import os
import signal

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from poddaemon import NOTREADY, READY, config, pods, refused  # noqa: F401, pods is a fixture
from waiting import wait_until

OPTIONS = "linux.security_context.namespace_options."


def metadata(**more):
    return {"metadata": {"name": "a", "uid": "u", "namespace": "n", **more}}


def namespaces(**options):
    return {"linux": {"security_context": {"namespace_options": options}}}


def annotations(key, value):
    return {"annotations": {key: value}}


INVALID = {
    "no metadata": ({"metadata": None}, "config.metadata is missing"),
    "no name": (metadata(name=""), "metadata.name is missing"),
    "no namespace": (metadata(namespace=""), "metadata.namespace is missing"),
    "no UID": (metadata(uid=""), "metadata.uid is missing"),
    "semicolon": (metadata(name="a;b"), "metadata.name: "),
    "equals sign": (metadata(namespace="a=b"), "metadata.namespace: "),
    "mode of the network": (namespaces(network=1), OPTIONS + "network: mode CONTAINER (1)"),
    "mode of IPC": (namespaces(ipc=1), OPTIONS + "ipc: mode CONTAINER (1)"),
    "mode TARGET": (namespaces(pid=3), OPTIONS + "pid: mode TARGET (3)"),
    "unknown mode": (namespaces(pid=9), OPTIONS + "pid: mode unknown (9)"),
    "target": (namespaces(target_id="x"), OPTIONS + "target_id: "),
    "user namespace": (namespaces(userns_options={"mode": 0}), OPTIONS + "userns_options.uids: "),
    "sysctl of the host": ({"linux": {"sysctls": {"kernel.panic": "1"}}}, "linux.sysctls: kernel.panic: "),
    "path in a sysctl": ({"linux": {"sysctls": {"net/../kernel/panic": "1"}}}, "linux.sysctls: "),
    "unknown sysctl": ({"linux": {"sysctls": {"net.ipv4.none": "1"}}}, "linux.sysctls: "),
    "unknown sysctl of IPC": ({"linux": {"sysctls": {"kernel.shm_none": "1"}}}, "linux.sysctls: "),
    "value of a sysctl": ({"linux": {"sysctls": {"net.ipv4.ip_default_ttl": "no"}}}, "linux.sysctls: "),
    "sysctl of the host's network": ({"linux": {"sysctls": {"net.ipv4.ip_forward": "1"}, **namespaces(
        network=2)["linux"]}}, "linux.sysctls: net.ipv4.ip_forward: "),
    "sysctl of the host's IPC": ({"linux": {"sysctls": {"kernel.shmmni": "1"}, **namespaces(ipc=2)["linux"]}},
                                 "linux.sysctls: kernel.shmmni: "),
    "slice": ({"linux": {"cgroup_parent": "kubepods.slice"}}, "linux.cgroup_parent: "),
    "cgroup outside": ({"linux": {"cgroup_parent": "/a/../../b"}}, "linux.cgroup_parent: "),
    "SELinux label": ({"linux": {"security_context": {"selinux_options": {"level": "s0"}}}},
                      "linux.security_context.selinux_options is not supported yet"),
    "Windows": ({"windows": {}}, "config.windows: "),
    "host name": ({"hostname": "a b"}, "hostname: "),
    "long host name": ({"hostname": "a" * 65}, "hostname: "),
    "port": ({"port_mappings": [{"host_port": 70000, "container_port": 80}]}, "port_mappings[0].host_port: "),
    "address of a port": ({"port_mappings": [{"host_port": 70, "container_port": 80, "host_ip": "x"}]},
                          "port_mappings[0].host_ip: "),
    "protocol": ({"port_mappings": [{"protocol": 9, "container_port": 80}]}, "port_mappings[0].protocol: "),
    "DNS server": ({"dns_config": {"servers": ["1.1.1.1\noptions x"]}}, "dns_config.servers[0]: "),
    "log directory": ({"log_directory": "logs"}, "log_directory: "),
    "bandwidth": (annotations("kubernetes.io/ingress-bandwidth", "fast"),
                  "annotations: kubernetes.io/ingress-bandwidth: "),
    "addresses": (annotations("io.hawser.ips", "10.1"), "annotations: io.hawser.ips: "),
    "MAC address": (annotations("io.hawser.mac", "00:11"), "annotations: io.hawser.mac: "),
    "unknown network": (annotations("io.hawser.networks", "none"), "annotations: io.hawser.networks: "),
    "interface twice": (annotations("io.hawser.networks", "a@net1,b@net1"), "annotations: io.hawser.networks: "),
    "labels above 1 MB": ({"labels": {"a": "x" * (1 << 19)}, "annotations": {"b": "y" * (1 << 19)}},
                          "labels and annotations: "),
}


def test_an_invalid_request_is_refused_by_field_and_changes_nothing(pods):
    d = pods("--cgroup-driver", "cgroupfs")
    logs = d.dir / "logs"
    for name, (fields, text) in INVALID.items():
        config = {**metadata(), "log_directory": str(logs), **fields}
        code, details = refused(d.cri.call, "RunPodSandbox", config=config)
        assert (code, details[:len(text)]) == ("INVALID_ARGUMENT", text), (name, details)
        assert not d.leftovers() and d.cri.ids() == [] and not logs.exists(), name
    assert refused(d.cri.call, "RunPodSandbox") == ("INVALID_ARGUMENT", "config is missing")
    assert d.calls("ADD") == 1  # the unknown sysctl could be of an interface that ADD creates


def test_ten_thousand_labels_are_accepted(pods):
    d = pods()
    labels = {"label-%d" % i: str(i) for i in range(10000)}
    pod = d.cri.run(labels=labels)
    assert dict(d.cri.status(pod).labels) == labels
    assert d.cri.ids(label_selector={"label-7": "7", "label-9999": "9999"}) == [pod]
    d.restart()
    assert dict(d.cri.list()[0].labels) == labels


def test_labels_of_one_megabyte_in_all_are_accepted(pods):
    d = pods()
    pod = d.cri.run(labels={"a": "x" * ((1 << 19) - 1)}, annotations={"b": "y" * ((1 << 19) - 1)})
    d.restart()
    assert len(d.cri.status(pod).annotations["b"]) == (1 << 19) - 1
    assert d.called("ADD")["conf"]["runtimeConfig"]["io.kubernetes.cri.pod-annotations"]["b"][:3] == "yyy"


def test_annotations_that_are_too_large_for_all_networks_are_refused(pods):
    d = pods()
    for i in range(6):
        d.write_network({"cniVersion": "1.0.0", "name": "n%d" % i, "plugins": [{"type": "loopback"}]},
                        "%d.conflist" % (20 + i))
    networks = ",".join("n%d" % i for i in range(6))
    code, text = refused(d.cri.run, annotations={"io.hawser.networks": networks, "b": "y" * 1000000})
    assert (code, text[:13]) == ("INVALID_ARGUMENT", "annotations: ") and d.cri.ids() == []


# ---- the same request again ------------------------------------------------------------------------

def test_an_equal_request_gets_the_pod_of_the_first_one(pods):
    d = pods()
    pod = d.cri.run("a", labels={"x": "1"})
    assert d.client().run("a", labels={"x": "1"}) == pod
    d.restart()
    assert d.cri.run("a", labels={"x": "1"}) == pod and d.calls("ADD") == 1 and d.cri.ids() == [pod]


def test_equal_requests_may_have_their_maps_in_another_order(pods):
    d = pods()
    entries = {"labels": 6, "annotations": 7}

    def request(names):
        """RunPodSandboxRequest with the entries of its maps in this order."""
        data = d.cri.types["PodSandboxConfig"](**config()).SerializeToString()
        for field in entries:
            for name in names:
                data += d.cri.types["PodSandboxConfig"](**{field: {name: "v" + name}}).SerializeToString()
        return b"\x0a" + bytes(varint(len(data))) + data

    def varint(n):
        while n > 0x7f:
            yield n & 0x7f | 0x80
            n >>= 7
        yield n

    create = d.cri.method("RunPodSandbox")
    pod = create(request("abc"), timeout=60).pod_sandbox_id
    assert create(request("cab"), timeout=60).pod_sandbox_id == pod
    assert create(request("bcaabc"), timeout=60).pod_sandbox_id == pod
    assert dict(d.cri.status(pod).labels) == {"a": "va", "b": "vb", "c": "vc"}
    with pytest.raises(grpc.RpcError) as info:
        create(request("ab"), timeout=60)
    assert info.value.code().name == "ALREADY_EXISTS"


def test_another_request_with_the_same_name_is_refused(pods):
    d = pods()
    pod = d.cri.run("a", hostname="one")
    code, text = refused(d.cri.run, "a", hostname="two")
    assert code == "ALREADY_EXISTS" and text == (
        "pod default/a with UID a-uid, attempt 0 exists with another configuration: " + pod)
    d.direct("ADD.hang")
    first = d.cri.start_run("b", hostname="one")
    d.wait_for_call("ADD", 2)
    assert refused(d.cri.run, "b", hostname="two")[0] == "ALREADY_EXISTS"
    d.cri.stop(d.cri.ids(state={"state": NOTREADY})[0])
    assert first.exception(60).code().name == "CANCELLED"


SECURITY = [{}, {"run_as_user": {"value": 0}}, {"run_as_user": {"value": 1}}, {"run_as_group": {"value": 1}},
            {"supplemental_groups": [1, 2]}, {"supplemental_groups": [2, 1]}, {"supplemental_groups_policy": 1},
            {"readonly_rootfs": True}, {"seccomp": {"profile_type": 1}}, {"apparmor": {"profile_type": 1}}]


def test_requests_that_differ_in_the_security_context_are_different(pods):
    d = pods()

    def create(n, fields):
        options = {"namespace_options": {"pid": 1}}
        return d.cri.run("a%d" % n, linux={"security_context": {**options, **fields}})
    made = [create(n, fields) for n, fields in enumerate(SECURITY)]
    d.restart()
    for n, pod in enumerate(made):
        assert create(n, SECURITY[n]) == pod
        assert refused(create, n, SECURITY[(n + 1) % len(SECURITY)])[0] == "ALREADY_EXISTS", SECURITY[n]


def test_a_stopped_pod_must_be_removed_before_an_equal_one_is_created(pods):
    d = pods()
    pod = d.cri.run("a")
    d.cri.stop(pod)
    code, text = refused(d.cri.run, "a")
    assert code == "ALREADY_EXISTS" and "is stopped and must be removed first: " + pod in text
    other = d.cri.run("a", attempt=1)
    assert other != pod
    d.cri.remove(pod)
    assert d.cri.run("a") not in (pod, other)


# ---- while a create is running ---------------------------------------------------------------------

@pytest.fixture
def hanging(pods):
    """A daemon with a create of pod "a" that hangs in a plugin, and the create."""
    d = pods("--drain-timeout", "1")
    d.direct("ADD.hang")
    first = d.cri.start_run("a")
    d.wait_for_call("ADD")
    return d, first


def release(d):
    """Lets the plugin that hangs fail; the next ones succeed."""
    d.undirect()
    os.kill(d.called("ADD")["pid"], signal.SIGKILL)


def test_a_pod_that_is_being_created_is_listed_as_not_ready(hanging):
    d, first = hanging
    (listed,) = d.cri.list()
    assert listed.state == NOTREADY and listed.metadata.name == "a"
    assert d.cri.info(listed.id)["state"] == "making" and d.cri.status(listed.id).network.ip == ""
    d.cri.remove(listed.id)
    assert first.exception(60).code().name == "CANCELLED"


def test_an_equal_request_waits_for_the_first_one_and_gets_its_error(hanging):
    d, first = hanging
    second = d.client().start_run("a")
    third = d.client().start_run("a", timeout=0.5)
    assert third.exception(60).code().name == "DEADLINE_EXCEEDED" and not second.done()
    release(d)
    errors = [f.exception(60) for f in (first, second)]
    assert errors[0].code() == errors[1].code() and errors[0].details() == errors[1].details()
    assert d.calls("ADD") == 1
    assert d.cri.run("a") and d.calls("ADD") == 2


def test_a_create_continues_when_its_client_disconnects(pods):
    d = pods()
    d.direct("ADD.pause")
    client = d.client()
    first = client.start_run("a")
    d.wait_for_call("ADD")
    first.cancel()
    client.channel.close()
    assert d.cri.list()[0].state == NOTREADY
    second = d.cri.start_run("a")
    (d.control / "ADD.pause").unlink()
    pod = second.result(60).pod_sandbox_id
    assert d.cri.status(pod).state == READY and d.cri.ids() == [pod] and d.calls("ADD") == 1


def test_a_create_continues_after_the_deadline_of_its_client(pods):
    d = pods()
    d.direct("ADD.pause")
    first = d.cri.start_run("a", timeout=0.5)
    assert first.exception(60).code().name == "DEADLINE_EXCEEDED"
    d.wait_for_call("ADD")
    (d.control / "ADD.pause").unlink()
    wait_until(lambda: d.cri.ids(state={"state": READY}))
    assert d.cri.run("a") == d.cri.ids()[0] and d.calls("ADD") == 1


@pytest.mark.parametrize("method", ["StopPodSandbox", "RemovePodSandbox"])
def test_stop_and_remove_end_a_create_that_hangs(hanging, method):
    d, first = hanging
    (pod,) = d.cri.ids()
    d.cri.call(method, pod_sandbox_id=pod)
    assert first.exception(60).code().name == "CANCELLED"
    assert d.cri.ids() == [] and not d.leftovers()
    d.undirect()
    assert d.cri.run("a") != pod


def test_a_failed_create_leaves_nothing(pods):
    d = pods()
    d.direct("ADD.fail", "no more room")
    code, text = refused(d.cri.run, pid=0)
    assert code == "INTERNAL" and 'network "pods": plugin type="control" failed (add): no more room' in text
    assert d.cri.ids() == [] and not d.leftovers() and d.calls("DEL") > 0


def test_a_failed_create_that_cannot_be_undone_is_removed_later(pods):
    d = pods()
    d.direct("ADD.fail", "no more room")
    d.direct("DEL.fail", "not now")
    assert "no more room" in refused(d.cri.run)[1]
    (pod,) = d.cri.list()
    assert pod.state == NOTREADY and "not now" in d.cri.info(pod.id)["message"]
    d.undirect()
    wait_until(lambda: d.cri.ids() == [])
    assert not d.leftovers()
