# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_mutations.py - every call with each field missing, empty, huge, and of another wire type

What:  a valid request of each call is changed in one field at a time. A request is served, or refused with a code that
       says that the request is at fault, and with the name of the field. What it has created is removed, and then
       nothing is left. The daemon lives, and its memory is bounded.
How:   the fields come from the definition of the protocol, so a new one is tested without a change here. Another wire
       type is appended to the encoded request: in protobuf, the parts of a message that is sent twice are merged.
"""
import re

import grpc
import pytest

pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
import cridocs
from containers import FOREVER, IMAGE, NODE, containers, container_config  # noqa: F401, a fixture
from cridocs import give, is_map, rows_of, sample
from fetching import Image
from layers import SANITIZED
from poddaemon import config
from waiting import LONG

import cri

AT_FAULT = {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE",
            "ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED"}
ENDLESS = {"GetContainerEvents"}
HUGE = 1 << 20
MANY = 20000
GROWTH = 96 << 20  # of the memory of the daemon: a few requests at once, and what malloc keeps
UNKNOWN = "0" * 64


def fields_of(descriptor, ignored, steps=()):
    """The paths to all fields of a message, as tuples of descriptors."""
    for field in descriptor.fields:
        if "%s.%s" % (descriptor.name, field.name) in ignored:
            continue
        yield (*steps, field)
        if field.message_type and not is_map(field) and field.name != "windows":
            yield from fields_of(field.message_type, ignored, (*steps, field))


def parent_of(request, steps):
    """The message that contains the last field; it is created if necessary."""
    for step in steps[:-1]:
        inner = getattr(request, step.name)
        if step.label == step.LABEL_REPEATED:
            new = not inner
            inner = inner[0] if inner else inner.add()
        else:
            new = not request.HasField(step.name)
        inner.SetInParent()
        for name, text in cridocs.BESIDE.get(step.message_type.name, {}).items() if new else ():
            setattr(inner, name, text)
        request = inner
    return request


def is_present(request, steps):
    for step in steps:
        value = getattr(request, step.name)
        if step.label == step.LABEL_REPEATED:
            if not value:
                return False
            request = value[0] if not is_map(step) else value
        elif step.message_type:
            if not request.HasField(step.name):
                return False
            request = value
        elif not value:
            return False
    return True


def missing(request, steps):
    if not is_present(request, steps):
        return
    parent_of(request, steps).ClearField(steps[-1].name)
    yield


def empty(request, steps):
    field, parent = steps[-1], parent_of(request, steps)
    parent.ClearField(field.name)
    if is_map(field):
        getattr(parent, field.name)[""] = ""
    elif field.label == field.LABEL_REPEATED:
        values = getattr(parent, field.name)
        values.add() if field.message_type else values.append(type(sample(field))())
    elif field.message_type:
        getattr(parent, field.name).SetInParent()
    else:
        return
    yield


def huge(request, steps):
    field, parent = steps[-1], parent_of(request, steps)
    if field.message_type and not is_map(field):
        if field.label == field.LABEL_REPEATED:
            for _ in range(MANY):
                getattr(parent, field.name).add()
            yield
        return
    parent.ClearField(field.name)
    if is_map(field):
        getattr(parent, field.name).update({"key%d" % i: "x" for i in range(MANY)})
    elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        give(parent, field, sample(field) * HUGE)
    elif field.type == field.TYPE_BOOL:
        return
    else:
        bits = 64 if field.type in (field.TYPE_INT64, field.TYPE_UINT64) else 32
        unsigned = field.type in (field.TYPE_UINT32, field.TYPE_UINT64)
        for value in (2**bits - 1,) if unsigned else (2**(bits - 1) - 1, -2**(bits - 1), -1):
            parent.ClearField(field.name)
            give(parent, field, value)
            yield
        return
    yield


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def wrong_type(steps):
    """Encodes the field with another wire type, in the messages that contain it."""
    *outer, field = steps
    text = field.message_type or field.type in (field.TYPE_STRING, field.TYPE_BYTES)
    data = varint(field.number << 3 | 0) + b"\1" if text else varint(field.number << 3 | 2) + b"\2\xff\xff"
    for step in reversed(outer):
        data = varint(step.number << 3 | 2) + varint(len(data)) + data
    return data


# ---- valid requests ------------------------------------------------------------------------------------

POD = {"config": config("mutated", network=NODE, pid=NODE, ipc=NODE), "runtime_handler": ""}
LABELS = {"label_selector": {"a": "b"}}


CONTAINER = container_config(
    name="mutated", args=["/bin/true"], working_dir="/tmp", envs=[{"key": "a", "value": b"b"}], labels={"a": "b"}, annotations={"a": "b"},
    mounts=[{"container_path": "/x", "host_path": "/tmp"}], devices=[{"container_path": "/dev/x", "host_path": "/dev/null"}],
    resources={"cpu_shares": 100, "memory_limit_in_bytes": 64 << 20}, run_as_user={"value": 0}, masked_paths=["/proc/kcore"],
    capabilities={"drop_capabilities": ["ALL"]}, supplemental_groups=[5], stdin=True)


def requests_of(d, pod, container, image):
    """A valid request of each call, or one for an object that does not exist."""
    pod_id, container_id = {"pod_sandbox_id": UNKNOWN}, {"container_id": UNKNOWN}
    pods_filter = {"filter": {"id": "0", "state": {"state": 0}, **LABELS}}
    containers_filter = {"filter": {"id": "0", "state": {"state": 1}, "pod_sandbox_id": "0", **LABELS}}
    stats_filter = {"filter": {"id": "0", "pod_sandbox_id": "0", **LABELS}}
    pod_stats_filter = {"filter": {"id": "0", **LABELS}}
    resources = {"memory_limit_in_bytes": 64 << 20, "cpu_quota": 50000, "cpu_period": 100000}
    image_filter = {"filter": {"image": {"image": IMAGE}}}
    return {
        "RunPodSandbox": POD, "StopPodSandbox": pod_id, "RemovePodSandbox": pod_id, "PodSandboxStatus": {"pod_sandbox_id": pod},
        "ListPodSandbox": pods_filter, "StreamPodSandboxes": pods_filter,
        "CreateContainer": {"pod_sandbox_id": pod, "config": CONTAINER, "sandbox_config": POD["config"]},
        "StartContainer": container_id, "StopContainer": container_id, "RemoveContainer": container_id,
        "ContainerStatus": {"container_id": container}, "ListContainers": containers_filter, "StreamContainers": containers_filter,
        "UpdateContainerResources": {"container_id": container, "linux": resources},
        "ReopenContainerLog": {"container_id": container},
        "ExecSync": {"container_id": container, "cmd": ["/bin/true"], "timeout": 60},
        "UpdatePodSandboxResources": {"pod_sandbox_id": pod, "resources": resources, "overhead": resources},
        "UpdateRuntimeConfig": {"runtime_config": {"network_config": {"pod_cidr": "10.9.0.0/24"}}},
        "ContainerStats": {"container_id": container}, "PodSandboxStats": {"pod_sandbox_id": pod},
        "ListContainerStats": stats_filter, "StreamContainerStats": stats_filter,
        "ListPodSandboxStats": pod_stats_filter, "StreamPodSandboxStats": pod_stats_filter,
        "ListImages": image_filter, "StreamImages": image_filter, "ImageStatus": {"image": {"image": IMAGE}},
        "PullImage": {"image": {"image": image}}, "RemoveImage": {"image": {"image": "hawser.test/none:1"}},
    }


def implemented():
    return sorted(set(cri.services()) - cridocs.unimplemented() - ENDLESS)


# ---- the test ------------------------------------------------------------------------------------------

class Mutant:
    """Sends requests of one call, and collects what is wrong with the answers."""

    def __init__(self, d, method, base):
        self.d, self.name, self.wrong, self.sent = d, method, [], 0
        self.base = d.cri.request(method, **base)
        service, streams = cri.services()[method], any(
            row[1] == method and row[4] == "server-stream" for row in cri.rows("rpc"))
        make = d.cri.channel.unary_stream if streams else d.cri.channel.unary_unary
        call = make("/runtime.v1.%s/%s" % (service, method))
        self.call = (lambda data: b"".join(call(data, timeout=LONG))) if streams else lambda data: call(data, timeout=LONG)

    def send(self, kind, steps, data):
        path = ".".join(s.name for s in steps)
        self.sent += 1
        try:
            answer = self.call(data)
        except grpc.RpcError as e:
            code, text = e.code().name, e.details()
            named = kind == "wire" or code != "INVALID_ARGUMENT" or cridocs.names_field(text, path)
            if code not in AT_FAULT or not named or len(text) > 4096 or not steps and code != "NOT_FOUND":
                self.wrong.append("%s %s: %s: %s" % (kind, path, code, text[:300]))
        else:
            self.undo(answer)
        assert self.d.process.poll() is None, "%s %s: the daemon has ended\n%s" % (kind, path, self.d.log())

    def undo(self, answer):
        if self.name == "RunPodSandbox":
            self.d.cri.remove(cri.classes()["RunPodSandboxResponse"].FromString(answer).pod_sandbox_id)
        elif self.name == "CreateContainer":
            self.d.cri.remove_container(cri.classes()["CreateContainerResponse"].FromString(answer).container_id)

    def run(self, ignored):
        descriptor = self.base.DESCRIPTOR
        self.send("base", (), self.base.SerializeToString())
        for steps in fields_of(descriptor, ignored):
            for kind in (missing, empty, huge):
                request = type(self.base)()
                request.CopyFrom(self.base)
                for _ in kind(request, steps):
                    self.send(kind.__name__, steps, request.SerializeToString())
            self.send("wire", steps, self.base.SerializeToString() + wrong_type(steps))


def memory(d):
    status = open("/proc/%d/status" % d.process.pid).read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


def test_each_implemented_call_has_a_valid_request():
    given = requests_of(None, "", "", "")
    without = {m for m in implemented() if not cri.classes()[m + "Request"].DESCRIPTOR.fields}
    few = {"Version", "Status", "RuntimeConfig", "ImageFsInfo"} | without
    assert set(implemented()) <= set(given) | few | {"ListMetricDescriptors", "ListPodSandboxMetrics", "StreamPodSandboxMetrics"}


@pytest.mark.parametrize("method", implemented())
def test_a_field_that_is_at_fault_is_refused_by_name_and_leaves_nothing(containers, server, method):
    d = containers("--plain-http", server.host)
    pod = d.cri.pod(pid=0)
    container = d.cri.run_container(pod, FOREVER)
    served = Image()
    server.add(served)
    ignored = {row[0] for row in rows_of("Ignored fields")}
    before = memory(d)
    mutant = Mutant(d, method, requests_of(d, pod, container, server.host + "/app:latest").get(method, {}))
    mutant.run(ignored)
    assert not mutant.wrong, "%d of %d:\n%s" % (len(mutant.wrong), mutant.sent, "\n".join(mutant.wrong))
    assert d.cri.ids() == [pod] and d.cri.container_ids() == [container]
    assert SANITIZED or memory(d) < before + GROWTH  # a sanitizer keeps freed memory
    assert d.cri.sh(container, "echo works") == "works\n"
