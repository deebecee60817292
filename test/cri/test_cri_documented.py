# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_documented.py - docs/cri.md against the definition of CRI, and against the daemon

What:  each call and each field of the described messages has one row, each row exists in the protocol and names a test.
       No field of a request is dropped silently: each field of a container is refused by name, stored, or in the list of
       ignored fields.
"""
import json

import grpc
import pytest

pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
import cridocs
from cridocs import leaves, rows_of
from containers import FOREVER, IMAGE, NODE, POD, containers  # noqa: F401, a fixture
from poddaemon import config
from waiting import LONG

import cri

MESSAGES = ("ContainerConfig", "LinuxContainerSecurityContext", "LinuxContainerResources", "LinuxSandboxSecurityContext")
REFUSED = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND")
KINDS = {"applied", "accepted", "refused"}


def fields(message, prefix=""):
    """The paths of all fields of a message, also of fields inside its fields."""
    for field in message.DESCRIPTOR.fields if hasattr(message, "DESCRIPTOR") else message.fields:
        yield prefix + field.name
        if field.message_type and not field.message_type.GetOptions().map_entry:
            yield from fields(field.message_type, prefix + field.name + ".")


def test_every_call_has_one_row_under_its_service():
    for service, number in (("RuntimeService", 37), ("ImageService", 6)):
        calls = sorted(m for m, s in cri.services().items() if s == service)
        assert len(calls) == number
        assert sorted(row[0] for row in rows_of(service)) == calls


@pytest.mark.parametrize("message", MESSAGES)
def test_every_field_has_one_row_and_every_row_is_a_field(message):
    descriptor = cri.classes()[message].DESCRIPTOR
    rows = [row[0] for row in rows_of(message)]
    assert len(set(rows)) == len(rows)
    assert set(rows) <= set(fields(descriptor))
    for field in descriptor.fields:
        inner = [field.name + "." + f.name for f in field.message_type.fields] if field.message_type else []
        covered = [f for f in inner if f in rows]
        assert (field.name in rows) != bool(covered), field.name
        assert not covered or covered == inner, set(inner) - set(covered)


def test_every_row_says_what_happens_and_names_a_test():
    tests = cridocs.test_names()
    for message in MESSAGES:
        for name, kind, _, test in rows_of(message):
            assert kind in KINDS and test in tests, (name, kind, test)
    for service in ("RuntimeService", "ImageService"):
        for name, semantics, _, test in rows_of(service):
            assert semantics and test in tests, (name, test)


def test_every_ignored_field_exists():
    for name, reason in rows_of("Ignored fields"):
        message, field = name.split(".")
        assert field in cri.classes()[message].DESCRIPTOR.fields_by_name and reason


# ---- no field is dropped -----------------------------------------------------------------------------

def dropped(message, create):
    """Gives each field of a message a value, and creates an object with it. Returns the fields that were neither refused by
    name nor stored. create: calls a function with a new message, creates the object, returns what is stored of it."""
    ignored = {row[0] for row in rows_of("Ignored fields")}
    base, found = create(0, lambda config: None), []
    for n, leaf in enumerate(leaves(cri.classes()[message].DESCRIPTOR), 1):
        if leaf.owner in ignored or leaf.path == "metadata.name":
            continue
        try:
            stored = create(n, leaf.set)
        except grpc.RpcError as e:
            if e.code().name not in REFUSED or not cridocs.names_field(e.details(), leaf.path):
                found.append("%s: %s: %s" % (leaf.path, e.code().name, e.details()))
            continue
        if {**stored, "name": ""} == {**base, "name": ""}:
            found.append(leaf.path)
    assert n > 60
    return found


def test_each_field_of_a_container_is_refused_by_name_or_stored_or_known_to_be_ignored(containers):
    d = containers()
    pod = d.cri.pod(pid=POD)

    def create(n, change):
        request = d.cri.request("CreateContainer", pod_sandbox_id=pod, config={
            "image": {"image": IMAGE}, "command": FOREVER, "metadata": {"name": "c%d" % n}})
        change(request.config)
        container = d.cri.method("CreateContainer")(request, timeout=LONG).container_id
        return json.loads(d.cri.call("ContainerStatus", container_id=container, verbose=True).info["info"])["config"]
    found = dropped("ContainerConfig", create)
    assert not found, "\n".join(found)


def test_each_field_of_a_pod_is_refused_by_name_or_stored(containers):
    d = containers(load=False)

    def create(n, change):
        request = d.cri.request("RunPodSandbox", config=config("p%d" % n, pid=NODE, network=NODE, ipc=NODE))
        request.config.metadata.uid = "the same"
        change(request.config)
        return d.cri.info(d.cri.method("RunPodSandbox")(request, timeout=LONG).pod_sandbox_id)["config"]
    found = dropped("PodSandboxConfig", create)
    assert not found, "\n".join(found)
