# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_systemd.py - containers of hawser-cri with the cgroup driver systemd

How:   the machines that run tests have no systemd. A program that is used instead of crun notes its arguments and the
       configuration of the container. Then it calls crun without --systemd-cgroup, with the cgroup that systemd
       would have created for the scope: so everything after that is real.
"""
import json
import pathlib
import shutil

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CONTAINER, CREATED, EXITED, FOREVER, POD, RUNNING, containers  # noqa: F401, a fixture
from poddaemon import CGROUPS

SLICE = "kubepods-burstable-pod12.slice"
SLICE_PATH = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12.slice"

CRUN = """#!/usr/bin/python3 -IS
import json, os, sys
words, crun, here = sys.argv[1:], "%(crun)s", "%(dir)s"
with open(here + "/calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[0] not in ("--version", "features"):
    words.remove("--systemd-cgroup")
if "create" in words:
    file = words[words.index("--bundle") + 1] + "/config.json"
    with open(file) as text:
        spec = json.load(text)
    with open(here + "/spec", "w") as copy:
        json.dump(spec, copy)
    unit, prefix, name = spec["linux"]["cgroupsPath"].split(":")
    parts = unit[:-len(".slice")].split("-")
    slices = ["-".join(parts[:n]) + ".slice" for n in range(1, len(parts) + 1)]
    spec["linux"]["cgroupsPath"] = "/%%s/%%s-%%s.scope" %% ("/".join(slices), prefix, name)
    with open(file, "w") as changed:
        json.dump(spec, changed)
os.execv(crun, [crun] + words)
"""


@pytest.fixture
def slices():
    """Removes slices at the end of a test, as systemd removes those that are empty."""
    yield
    for directory in sorted(CGROUPS.glob("**/*.slice"), key=lambda d: -len(d.parts)):
        directory.rmdir()


@pytest.fixture
def daemon(slices, containers, tmp_path):
    (tmp_path / "crun").write_text(CRUN % {"crun": shutil.which("crun"), "dir": tmp_path})
    (tmp_path / "crun").chmod(0o755)
    return containers("--cgroup-driver", "systemd", "--runtime-handler", "noting=%s" % (tmp_path / "crun"))


def calls(tmp_path):
    """The arguments of all calls of crun for containers."""
    found = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    return [words for words in found if words[0] not in ("--version", "features")]


def cgroups_of(pid):
    lines = pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines()
    return {line.split(":", 2)[2] for line in lines if not line.startswith("0:")}


@pytest.mark.parametrize("parent,slice,path", [
    (SLICE, SLICE, SLICE_PATH), (SLICE_PATH, SLICE, SLICE_PATH),
    ("", "hawser-%s.slice", "/hawser.slice/hawser-%s.slice")])
def test_crun_is_asked_for_a_scope_in_the_slice_of_the_pod(daemon, tmp_path, parent, slice, path):
    pod = daemon.cri.pod(handler="noting", linux={"cgroup_parent": parent})
    slice, path = (text % pod if "%s" in text else text for text in (slice, path))
    container = daemon.cri.create(pod)
    linux = json.loads((tmp_path / "spec").read_text())["linux"]
    assert linux["cgroupsPath"] == "%s:hawser:%s" % (slice, container)
    assert daemon.cri.info(pod)["runtimeSpec"]["linux"]["cgroupsPath"] == path
    assert cgroups_of(daemon.main(container)) == {"%s/hawser-%s.scope" % (path, container)}


@pytest.mark.parametrize("pid", [POD, CONTAINER])
def test_a_container_in_a_scope_runs_and_all_its_processes_end_with_it(daemon, tmp_path, pid):
    pod = daemon.cri.pod(handler="noting", pid=pid, linux={"cgroup_parent": SLICE})
    container = daemon.cri.create(pod, FOREVER, pid=pid)
    assert daemon.cri.container(container).state == CREATED
    daemon.cri.start_container(container)
    assert daemon.cri.container(container).state == RUNNING
    daemon.cri.sh(container, "sleep 100000 &")
    daemon.cri.stop_container(container)
    assert daemon.cri.container(container).state == EXITED
    scope = "**/hawser-%s.scope" % container
    assert not [p for d in CGROUPS.glob(scope) for p in (d / "cgroup.procs").read_text().split()]
    daemon.cri.remove(pod)
    assert not list(CGROUPS.glob(scope))
    verbs = {word for words in calls(tmp_path) for word in words if word in ("create", "start", "exec", "delete")}
    assert verbs == {"create", "start", "exec", "delete"}
    assert all("--systemd-cgroup" in words for words in calls(tmp_path))
