# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_devices.py - devices of hawser-cri's containers: nodes, directories, and CDI
"""
import json
import os
import pathlib
import stat

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import containers  # noqa: F401, a fixture
from poddaemon import refused

DIRECTORIES = [pathlib.Path("/etc/cdi"), pathlib.Path("/var/run/cdi")]  # those of the sandbox
NULL, ZERO = os.makedev(1, 3), os.makedev(1, 5)


@pytest.fixture
def nodes(tmp_path):
    """A directory with device nodes: zero, sub/null."""
    (tmp_path / "nodes/sub").mkdir(parents=True)
    os.mknod(tmp_path / "nodes/zero", stat.S_IFCHR | 0o666, ZERO)
    os.mknod(tmp_path / "nodes/sub/null", stat.S_IFCHR | 0o640, NULL)
    (tmp_path / "nodes/zero").chmod(0o666)  # whatever the umask is
    return tmp_path / "nodes"


@pytest.fixture
def cdi():
    """A function that writes a CDI file with the device v.com/c=one."""
    def write(directory, edits, name="one.json", **more):
        directory.mkdir(exist_ok=True)
        devices = [{"name": "one", "containerEdits": edits}]
        (directory / name).write_text(json.dumps({"cdiVersion": "0.6.0", "kind": "v.com/c", "devices": devices, **more}))
    yield write
    for directory in DIRECTORIES:
        for file in directory.glob("*"):
            file.unlink()


ONE = [{"name": "v.com/c=one"}]
TYPES = "stat -c '%n %t %T %a' "


def test_all_nodes_of_a_directory_are_created(containers, nodes):
    d = containers()
    (nodes.parent / "link").symlink_to(nodes)
    devices = [{"host_path": str(nodes.parent / "link"), "container_path": "/dev/all", "permissions": "r"}]
    container = d.cri.run_container(d.cri.pod(), devices=devices)
    assert d.cri.sh(container, TYPES + "/dev/all/zero /dev/all/sub/null") == "/dev/all/zero 1 5 666\n/dev/all/sub/null 1 3 640\n"


def test_a_device_that_does_not_exist_is_refused(containers, nodes):
    d = containers()
    code, text = refused(d.cri.create, d.cri.pod(), devices=[{"host_path": str(nodes / "none"), "container_path": "/dev/x"}])
    assert code == "INTERNAL" and text.startswith("device %s/none: " % nodes)


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_a_device_of_cdi_is_used_by_the_containers_that_name_it(containers, cdi, nodes, directory):
    d = containers()
    (nodes.parent / "file").write_text("text")
    cdi(directory, {"env": ["FROM_CDI=1"], "deviceNodes": [{"path": "/dev/cdi", "hostPath": str(nodes / "zero")}],
                    "mounts": [{"hostPath": str(nodes), "containerPath": "/mnt", "options": ["ro", "rbind"]},
                               {"hostPath": str(nodes.parent / "file"), "containerPath": "/dev/cdi-file"}]})
    pod = d.cri.pod()
    container = d.cri.run_container(pod, CDI_devices=ONE, envs=[{"key": "FROM_CDI", "value": b"0"}])
    assert d.cri.sh(container, "echo $FROM_CDI; head -c 3 /dev/cdi | wc -c; ls /mnt") == "1\n3\nsub\nzero\n"
    assert list(d.cri.container(container).mounts) == []
    assert d.cri.sh(container, "cat /dev/cdi-file") == "text"
    other = d.cri.run_container(pod, name="other")
    assert d.cri.sh(other, "echo ${FROM_CDI:-none}; ls /dev/cdi 2>/dev/null || echo none") == "none\nnone\n"


def test_devices_of_cdi_that_cannot_be_used_are_refused_by_name(containers, cdi):
    d = containers()
    pod = d.cri.pod()
    assert refused(d.cri.create, pod, CDI_devices=ONE) == (
        "NOT_FOUND", "CDI_devices[0]: v.com/c=one: no such device on this node")
    assert refused(d.cri.create, pod, CDI_devices=[{"name": "one"}]) == (
        "INVALID_ARGUMENT", 'CDI_devices[0]: "one": expected VENDOR/CLASS=DEVICE')
    cdi(DIRECTORIES[0], {"hooks": [{"hookName": "createContainer", "path": "/bin/touch", "args": ["touch", "/hooked"]}]})
    assert refused(d.cri.create, pod, CDI_devices=ONE) == (
        "INVALID_ARGUMENT", "CDI_devices[0]: v.com/c=one: /etc/cdi/one.json: containerEdits.hooks is not supported")
    assert d.cri.container_ids() == []


def test_a_device_of_cdi_works_in_a_user_namespace(containers, cdi, nodes, tmp_path):
    for directory in (tmp_path, *tmp_path.parents[:-2]):
        directory.chmod(directory.stat().st_mode | 0o111)
    d = containers()
    ids = [{"host_id": 100000, "container_id": 0, "length": 65536}]
    options = {"network": 2, "pid": 1, "userns_options": {"mode": 0, "uids": ids, "gids": ids}}
    cdi(DIRECTORIES[0], {"deviceNodes": [{"path": "/dev/cdi", "hostPath": "/dev/zero"}]})
    pod = d.cri.pod(linux={"security_context": {"namespace_options": options}})
    container = d.cri.run_container(pod, CDI_devices=ONE)
    assert d.cri.sh(container, "head -c 3 /dev/cdi | wc -c") == "3\n"
