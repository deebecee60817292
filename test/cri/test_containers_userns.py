# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_userns.py - pods with user namespaces, and their containers
"""
import fcntl
import os
import pathlib

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CONTAINER, NODE, POD, RUNNING, TARGET, containers  # noqa: F401, a fixture
from poddaemon import refused

FIRST, LENGTH = 100000, 65536
USERNS = "linux.security_context.namespace_options.userns_options"
NS_GET_USERNS = 0xb701


def mapping(host=FIRST, container=0, length=LENGTH):
    return {"host_id": host, "container_id": container, "length": length}


def userns(mode=POD, uids=None, gids=None):
    uids = [mapping()] if uids is None else uids
    return {"mode": mode, "uids": uids, "gids": uids if gids is None else gids}


def pod(d, name="a", user=None, network=POD, pid=CONTAINER, handler="", **more):
    options = {"network": network, "pid": pid, "userns_options": userns() if user is None else user, **more}
    return d.cri.pod(name, handler, linux={"security_context": {"namespace_options": options}})


@pytest.fixture
def reachable(tmp_path):
    """Other users can enter the directories above those of the daemon, as on a real node."""
    for directory in (tmp_path, *tmp_path.parents[:-2]):
        directory.chmod(directory.stat().st_mode | 0o111)


@pytest.fixture
def node(reachable, containers):
    return containers("--default-network", "true")


def namespace(pid, kind):
    return os.stat("/proc/%d/ns/%s" % (pid, kind)).st_ino


def owner(pid, kind):
    """The user namespace that a namespace belongs to."""
    with open("/proc/%d/ns/%s" % (pid, kind)) as ns:
        fd = fcntl.ioctl(ns, NS_GET_USERNS)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


@pytest.mark.parametrize("pid", [POD, CONTAINER])
def test_root_of_a_container_is_an_ordinary_user_of_the_node(node, pid):
    container = node.cri.run_container(pod(node, pid=pid), pid=pid)
    main = node.main(container)
    assert node.cri.sh(container, "id -u; id -g; cat /proc/self/uid_map").split() == ["0", "0", "0", str(FIRST), str(LENGTH)]
    assert os.stat("/proc/%d" % main).st_uid == FIRST
    for kind in ("net", "ipc", "uts", "pid", "mnt"):
        assert namespace(main, kind) != namespace(os.getpid(), kind) and owner(main, kind) == namespace(main, "user")


def test_files_of_the_image_belong_to_root_and_can_be_changed(node):
    image = node.load("hawser.test/files:1", files=[("own", b"text", {}), ("other", b"", {"uid": 1000, "gid": 5})])
    container = node.cri.run_container(pod(node), image=image)
    assert node.cri.sh(container, "stat -c '%u %g' /bin/sh /own /other /") == "0 0\n0 0\n1000 5\n0 0\n"
    node.cri.sh(container, "echo more >>/own; chown 7:8 /other; mkdir /new; touch /new/file; rm /bin/ls")
    upper = node.dir / "root/containers" / container / "upper"
    ids = {n: (os.stat(upper / n).st_uid - FIRST, os.stat(upper / n).st_gid - FIRST) for n in ("own", "other", "new/file")}
    assert ids == {"own": (0, 0), "other": (7, 8), "new/file": (0, 0)}
    assert [(f.stat().st_uid, f.read_text()) for f in (node.dir / "root/layers").glob("*/root/own")] == [(0, "text")]


def test_an_image_volume_has_the_owners_of_the_image(node):
    image = node.load("hawser.test/volume:1", files=[("file", b"text", {"mode": 0o600}), ("dir/x", b"", {"uid": 3})])
    mounts = [{"container_path": "/mnt", "image": {"image": image}, "readonly": True, "uidMappings": [mapping()],
               "gidMappings": [mapping()]}]
    in_pod = pod(node)
    container = node.cri.run_container(in_pod, mounts=mounts)
    assert node.cri.sh(container, "cat /mnt/file; stat -c %u /mnt/file /mnt/dir/x") == "text0\n3\n"
    mounts[0]["uidMappings"] = [mapping(5)]
    assert refused(node.cri.create, in_pod, name="x", mounts=mounts) == (
        "INVALID_ARGUMENT", "mounts[0].uidMappings: an image has the mappings of the pod")


def test_an_idmapped_volume_has_the_same_owners_on_the_node(node, tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "file").chmod(0o600)
    ids = {"uidMappings": [mapping()], "gidMappings": [mapping()]}
    mounts = [{"host_path": str(tmp_path), "container_path": "/mnt", **ids}]
    in_pod = pod(node)
    container = node.cri.run_container(in_pod, mounts=mounts)
    assert node.cri.sh(container, "cat /mnt/file; stat -c %u /mnt/file; touch /mnt/new; chown 5 /mnt/new") == "text0\n"
    assert os.stat(tmp_path / "new").st_uid == 5
    assert list(node.cri.container(container).mounts) == [node.cri.types["Mount"](**m) for m in mounts]
    plain = node.cri.run_container(in_pod, name="plain", mounts=[{**mounts[0], "uidMappings": [], "gidMappings": []}])
    assert node.cri.exec_sync(plain, "cat", "/mnt/file").exit_code != 0


@pytest.mark.parametrize("change,error", [
    ({"uidMappings": [mapping(5)]}, "FAILED_PRECONDITION"), ({"gidMappings": []}, "INVALID_ARGUMENT")])
def test_mappings_of_a_volume_that_crun_cannot_make_are_refused(node, tmp_path, change, error):
    mount = {"host_path": str(tmp_path), "container_path": "/mnt", "uidMappings": [mapping()], "gidMappings": [mapping()]}
    code, text = refused(node.cri.create, pod(node), mounts=[{**mount, **change}])
    assert code == error and text.startswith("mount /mnt: ") and "uidMappings" in text


@pytest.mark.parametrize("more", [{}, {"stdin": True}, {"stdin": True, "stdin_once": True}])
def test_the_null_device_of_the_node_keeps_its_owner(node, more):
    before = os.stat("/dev/null")
    container = node.cri.run_container(pod(node), **more)
    node.cri.sh(container, "true")
    after = os.stat("/dev/null")
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    fds = [os.stat("/proc/%d/fd/%d" % (node.main(container), fd)) for fd in range(3)]
    assert not any((s.st_dev, s.st_ino) == (after.st_dev, after.st_ino) for s in fds)


def test_a_terminal_is_refused(node):
    before = os.stat("/dev/null").st_uid
    assert refused(node.cri.create, pod(node), tty=True) == (
        "FAILED_PRECONDITION", "tty is not supported in a pod with a user namespace")
    assert os.stat("/dev/null").st_uid == before


def test_standard_input_ends_at_once(node):
    status = node.cri.run_to_end(pod(node), ["/bin/sh", "-c", "cat && echo end"])
    assert status.exit_code == 0 and node.cri.printed(status.id) == ["end"]


@pytest.mark.parametrize("pid", [POD, CONTAINER])
def test_a_pod_with_a_user_namespace_outlives_the_daemon(node, pid):
    in_pod = pod(node, pid=pid)
    container = node.cri.run_container(in_pod, pid=pid)
    before = node.cri.call("PodSandboxStatus", pod_sandbox_id=in_pod).status.linux.namespaces.options
    assert [(m.host_id, m.container_id, m.length) for m in before.userns_options.uids] == [(FIRST, 0, LENGTH)]
    node.kill()
    node.start()
    assert node.cri.call("PodSandboxStatus", pod_sandbox_id=in_pod).status.linux.namespaces.options == before
    assert node.cri.container(container).state == RUNNING and node.cri.sh(container, "id -u") == "0\n"
    second = node.cri.run_container(in_pod, name="second", pid=pid)
    assert namespace(node.main(container), "user") == namespace(node.main(second), "user")


def test_process_1_of_a_shared_pid_namespace_is_root_of_the_user_namespace(node):
    container = node.cri.run_container(pod(node, pid=POD), pid=POD, capabilities={"add_capabilities": ["ALL"]})
    assert node.cri.sh(container, "stat -c %u /proc/1; cat /proc/1/comm; ls /proc/1/root/ 2>&1 | grep -c etc || true") == (
        "0\nhawser-pause\n0\n")


def test_a_container_cannot_write_what_belongs_to_root_of_the_node(node, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("text")
    secret.chmod(0o600)
    mounts = [{"host_path": str(secret), "container_path": "/secret"}]
    container = node.cri.run_container(pod(node), mounts=mounts, capabilities={"add_capabilities": ["ALL"]})
    for script in ("cat /secret", "echo x >/secret", "chown 0 /secret", "echo 1 >/proc/sys/kernel/panic"):
        assert node.cri.exec_sync(container, "/bin/sh", "-c", script).exit_code != 0, script
    assert secret.read_text() == "text"
    node.cri.sh(container, "echo x >/dev/null; mount -t tmpfs t /mnt; hostname changed")


def test_the_network_of_the_node_can_be_combined_with_a_user_namespace(node):
    container = node.cri.run_container(pod(node, network=NODE))
    assert namespace(node.main(container), "net") == namespace(os.getpid(), "net")
    assert node.cri.sh(container, "id -u; ls /sys/class/net | grep -x lo") == "0\nlo\n"
    assert node.cri.exec_sync(container, "/bin/sh", "-c", "echo x >/sys/kernel/uevent_helper").exit_code != 0


@pytest.mark.parametrize("user,error", [
    (userns(uids=[mapping(), mapping(300000, 70000)]), ".uids: expected exactly one mapping"),
    (userns(uids=[], gids=[mapping()]), ".uids: expected exactly one mapping"),
    (userns(gids=[]), ".gids: expected exactly one mapping"),
    (userns(gids=[mapping(5)]), ": uids and gids differ"),
    (userns(uids=[mapping(container=1)]), ".uids: the mapping does not start at container_id 0"),
    (userns(uids=[mapping(0)]), ".uids: host_id 0 is root of the node"),
    (userns(uids=[mapping(length=0)]), ".uids: invalid length"),
    (userns(uids=[mapping(0xffffffff, length=1)]), ".uids: invalid length"),
    (userns(mode=NODE), ": the user namespace of the node has no mappings"),
    (userns(mode=CONTAINER), ": mode CONTAINER (1); expected POD or NODE"),
    (userns(mode=TARGET), ": mode TARGET (3); expected POD or NODE")])
def test_invalid_user_namespaces_are_refused_by_name(node, user, error):
    assert refused(pod, node, user=user) == ("INVALID_ARGUMENT", USERNS + error)
    in_pod = node.cri.pod("b")
    assert refused(node.cri.create, in_pod, userns_options=user) == ("INVALID_ARGUMENT", USERNS + error)


def test_users_and_groups_that_are_not_mapped_are_refused(node):
    in_pod = pod(node)
    for name, ids in (("user 65536", {"run_as_user": {"value": LENGTH}}),
                      ("group 70000", {"run_as_user": {"value": 1}, "run_as_group": {"value": 70000}}),
                      ("group 65536", {"supplemental_groups": [5, LENGTH]})):
        assert refused(node.cri.create, in_pod, **ids) == (
            "INVALID_ARGUMENT", name + " is not mapped by the pod's userns_options")
    container = node.cri.run_container(in_pod, run_as_user={"value": LENGTH - 1}, readonly_rootfs=True)
    assert node.cri.sh(container, "id -u; touch /x 2>/dev/null || echo read-only") == "65535\nread-only\n"


def test_a_user_namespace_excludes_some_namespaces_of_the_node(node):
    for kind in ("pid", "ipc"):
        assert refused(pod, node, **{kind: NODE}) == (
            "INVALID_ARGUMENT", USERNS + ": the pod uses the PID or IPC namespace of the node")


def test_a_container_has_the_user_namespace_of_its_pod(node):
    with_user, without = pod(node), node.cri.pod("b")
    for in_pod, user in ((with_user, {"mode": NODE}), (with_user, userns(uids=[mapping(5)])), (without, userns())):
        assert refused(node.cri.create, in_pod, userns_options=user) == (
            "INVALID_ARGUMENT", USERNS + ": differs from that of the pod")
    for n, (in_pod, user) in enumerate(((with_user, userns()), (without, {"mode": NODE}))):
        node.cri.run_container(in_pod, name="c%d" % n, userns_options=user)


def test_user_namespaces_are_advertised_for_handlers_that_have_idmapped_mounts(containers, tmp_path):
    program = tmp_path / "old"
    program.write_text("""#!/bin/sh
case $1 in --version) echo "crun version 1.4" ;; features) exit 1 ;; *) exec crun "$@" ;; esac
""")
    program.chmod(0o755)
    d = containers("--runtime-handler", "old=%s" % program)
    status = d.cri.call("Status")
    features = {h.name: h.features.user_namespaces for h in status.runtime_handlers}
    assert features == {"": True, "old": False} and status.features.user_namespaces_host_network
    assert refused(pod, d, network=NODE, handler="old") == (
        "FAILED_PRECONDITION", USERNS + ': handler "old" has no idmapped mounts')
    assert not pathlib.Path(d.state / "userns-probe").exists()
