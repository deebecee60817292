# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_inspect.py - hawser pods, inspect and rm, with hawser-cri and Debian's containerd
"""
import json

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from nodes import image_server, module_node, node  # noqa: F401, fixtures
from poddaemon import refused
from test_hawser_cli import complete


def rows(node):
    """The first four columns of the table of pods."""
    return [line.split()[:4] for line in node.run("pods").splitlines()[1:]]


# ---- pods ------------------------------------------------------------------------------------------

def test_pods_are_listed_with_addresses(node):
    assert rows(node) == []
    pod = node.cri.pod("web", network=0)
    assert rows(node) == [[pod[:12], "web", "default", "ready"]]
    assert node.run("pods").splitlines()[1].split()[4] == node.cri.address(pod)
    assert node.run("pods", "-q") == pod + "\n"
    found = json.loads(node.run("pods", "--json"))["items"][0]
    assert (found["id"], found["state"]) == (pod, "SANDBOX_READY")
    assert found["network"]["ip"] == node.cri.address(pod)


# ---- inspect ---------------------------------------------------------------------------------------

def test_a_pod_and_its_container_are_inspected(node):
    pod = node.cri.pod("web")
    container = node.cri.run_server(pod)
    for word in ("web", "default/web", pod, pod[:12]):
        found = json.loads(node.run("inspect", word))
        assert found["status"]["id"] == pod and found["status"]["metadata"]["name"] == "web"
        assert isinstance(found["info"]["info"], dict)
    for word in ("main", "web/main", container[:12]):
        found = json.loads(node.run("inspect", word))
        assert found["status"]["id"] == container and found["status"]["state"] == "CONTAINER_RUNNING"
        assert found["info"]["info"]["pid"] > 0
    status, text, errors = node.hawser("inspect", "none")
    assert (status, text) == (1, "") and errors.splitlines() == [
        'hawser: pod or container "none": not found',
        'hint: run "hawser pods" and "hawser ps -a" for lists of pods and containers']


def test_a_name_stands_for_the_pod_rather_than_for_its_container(node):
    pod = node.cri.pod("web")
    container = node.cri.create(pod, name="web")
    assert json.loads(node.run("inspect", "web"))["status"]["id"] == pod
    assert json.loads(node.run("inspect", "web/web"))["status"]["id"] == container


def test_pods_and_containers_are_completed_by_name(node):
    pod = node.cri.pod("web")
    node.cri.create(pod)
    assert sorted(complete(*node.words, "inspect", "")) == ["main", "web"]
    assert complete(*node.words, "rm", "we") == ["web"]


# ---- rm --------------------------------------------------------------------------------------------

def test_what_runs_is_removed_only_with_force(node):
    pod = node.cri.pod("web")
    container = node.cri.run_server(pod)
    hint = 'hint: stop it with "hawser stop", or use --force to kill it'
    for word, kind in ("web", "pod"), ("main", "container"):
        status, text, errors = node.hawser("rm", word)
        assert (status, text) == (1, "") and errors.splitlines() == [
            'hawser: remove %s "%s": container %s is running' % (kind, word, container[:12]), hint]
    assert node.run("rm", "-f", "main") == "main\n" and node.cri.container_ids() == []
    node.cri.run_server(pod, attempt=1)
    assert node.run("rm", "-f", "web") == "web\n" and node.pods() == []


def test_a_stopped_container_and_an_idle_pod_are_removed(node):
    pod = node.cri.pod("web", network=0)
    container = node.cri.run_server(pod)
    node.run("stop", "main")
    assert json.loads(node.run("rm", "--json", "web/main")) == {"removed": [container]}
    assert refused(node.cri.container, container)[0] == "NOT_FOUND"
    assert node.run("rm", pod[:12]) == pod[:12] + "\n" and node.pods() == []


def test_the_others_are_removed_if_one_does_not_exist(node):
    node.cri.pod("one")
    node.cri.pod("two")
    status, text, errors = node.hawser("rm", "one", "none", "two")
    assert (status, text) == (1, "one\ntwo\n") and errors.startswith('hawser: pod or container "none": not found\n')
    assert node.pods() == []


# ---- what containerd lacks -------------------------------------------------------------------------

@pytest.mark.parametrize("words", [["network", "ls"], ["network", "gc"], ["network", "gc", "pods"],
                                   ["network", "check"], ["network", "check", "web"]])
def test_commands_for_networks_need_hawser_cri(node, words):
    node.cri.pod("web", network=0)
    status, _, errors = node.hawser(*words)
    if hasattr(node.daemon, "ctr"):
        assert status == 1 and "%s: not supported by containerd " % " ".join(words[:2]) in errors
    else:
        assert (status, errors) == (0, "")
