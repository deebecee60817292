# SPDX-License-Identifier: Apache-2.0
#
# Sandbox: --shared
"""
test/cri/test_containers_mounts.py - mounts of hawser-cri's containers, on a host whose mounts propagate
"""
import contextlib
import os
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import RUNNING, containers  # noqa: F401, a fixture
from poddaemon import refused, run

PRIVATE, HOST_TO_CONTAINER, BIDIRECTIONAL = range(3)


def mount(host, container="/mnt", **more):
    return {"host_path": str(host), "container_path": container, **more}


@pytest.fixture
def volume(tmp_path):
    """A directory with a file, on a mount of its own that is shared."""
    path = tmp_path / "volume"
    path.mkdir()
    run("mount", "-t", "tmpfs", "volume", path)
    run("mount", "--make-rshared", path)
    (path / "file").write_text("text\n")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@contextlib.contextmanager
def mounted(path):
    """Mounts a tmpfs with a file on the host."""
    path.mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "inner", path)
    (path / "inner-file").write_text("inner\n")
    try:
        yield path
    finally:
        run("umount", path)


def test_a_directory_and_a_file_are_mounted(containers, volume):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), mounts=[mount(volume), mount(volume / "file", "/etc/one-file")])
    assert d.cri.sh(container, "cat /mnt/file /etc/one-file; echo new >/mnt/new") == "text\ntext\n"
    assert (volume / "new").read_text() == "new\n"


def test_the_target_of_a_symbolic_link_is_mounted_and_the_link_is_reported(containers, volume, tmp_path):
    d = containers()
    (tmp_path / "dir").symlink_to(volume)
    (tmp_path / "link").symlink_to(tmp_path / "dir/file")
    mounts = [mount(tmp_path / "dir"), mount(tmp_path / "link", "/file")]
    container = d.cri.run_container(d.cri.pod(), mounts=mounts)
    assert d.cri.sh(container, "cat /mnt/file /file") == "text\ntext\n"
    assert [m.host_path for m in d.cri.container(container).mounts] == [str(tmp_path / "dir"), str(tmp_path / "link")]


def test_a_host_path_that_does_not_exist_is_created(containers, tmp_path):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), mounts=[mount(tmp_path / "a/b")])
    d.cri.sh(container, "touch /mnt/file")
    assert (tmp_path / "a/b/file").exists() and oct((tmp_path / "a/b").stat().st_mode)[-3:] == "755"


def test_a_host_path_that_cannot_be_used_is_refused_by_name(containers, tmp_path):
    d = containers()
    pod = d.cri.pod()
    (tmp_path / "file").touch()
    for path, text in ((tmp_path / "file/x", "Not a directory"), (tmp_path / ("x" * 300), "File name too long")):
        assert refused(d.cri.create, pod, mounts=[mount(tmp_path), mount(path, "/other")]) == (
            "INVALID_ARGUMENT", "mounts[1].host_path: resolve %s: %s" % (path, text))


def test_a_readonly_mount_cannot_be_written_but_mounts_below_it_can(containers, volume):
    d = containers()
    with mounted(volume / "below"):
        container = d.cri.run_container(d.cri.pod(), mounts=[mount(volume, readonly=True)])
        assert "Read-only file system" in d.cri.sh(container, "(echo x >/mnt/file) 2>&1 || true")
        assert d.cri.sh(container, "touch /mnt/below/x; ls /mnt/below") == "inner-file\nx\n"
        d.cri.remove_container(container)


def test_a_recursively_readonly_mount_cannot_be_written_anywhere(containers, volume):
    d = containers()
    pod = d.cri.pod()
    with mounted(volume / "below"):
        container = d.cri.run_container(pod, mounts=[mount(volume, readonly=True, recursive_read_only=True)])
        assert "Read-only file system" in d.cri.sh(container, "touch /mnt/below/x 2>&1 || true")
        assert d.cri.container(container).mounts[0].recursive_read_only
        d.cri.remove_container(container)
    for more in ({"readonly": False}, {"readonly": True, "propagation": HOST_TO_CONTAINER},
                 {"readonly": True, "propagation": BIDIRECTIONAL}):
        assert refused(d.cri.create, pod, mounts=[mount(volume, recursive_read_only=True, **more)])[0] == (
            "INVALID_ARGUMENT")


def test_recursively_readonly_mounts_depend_on_the_handler(containers, volume, tmp_path):
    program = tmp_path / "old"
    program.write_text("""#!/bin/sh
case $1 in --version) echo "crun version 1.3" ;; features) exit 1 ;; *) exec crun "$@" ;; esac
""")
    program.chmod(0o755)
    d = containers("--runtime-handler", "old=%s" % program)
    features = {h.name: h.features for h in d.cri.call("Status").runtime_handlers}
    assert features[""].recursive_read_only_mounts and not features["old"].recursive_read_only_mounts
    pod = d.cri.pod(handler="old")
    assert refused(d.cri.create, pod, mounts=[mount(volume, readonly=True, recursive_read_only=True)]) == (
        "FAILED_PRECONDITION", "RROUnsupported: mount /mnt: recursively read-only mounts are not supported")
    assert refused(d.cri.create, pod, mounts=[mount(volume, recursive_read_only=True)])[0] == "INVALID_ARGUMENT"
    d.cri.run_container(pod, mounts=[mount(volume, readonly=True)])


@pytest.mark.parametrize("propagation", [PRIVATE, HOST_TO_CONTAINER, BIDIRECTIONAL])
def test_mounts_propagate_as_requested(containers, volume, propagation):
    d = containers()
    context = {"privileged": True, "namespace_options": {"pid": 1, "network": 2}}
    pod = d.cri.pod(linux={"security_context": context})
    container = d.cri.run_container(pod, privileged=True, mounts=[mount(volume, propagation=propagation)])
    with mounted(volume / "later"):
        seen = d.cri.sh(container, "ls /mnt/later")
        assert seen == ("" if propagation == PRIVATE else "inner-file\n")
    d.cri.sh(container, "mkdir /mnt/own; mount -t tmpfs own /mnt/own; touch /mnt/own/file")
    assert os.path.exists(volume / "own/file") == (propagation == BIDIRECTIONAL)
    assert d.cri.container(container).mounts[0].propagation == propagation
    d.cri.sh(container, "umount /mnt/own")
    d.cri.remove_container(container)


def test_propagation_needs_a_source_that_propagates(containers, volume, tmp_path):
    d = containers()
    pod = d.cri.pod()
    run("mount", "--make-private", volume)
    for propagation, text in ((BIDIRECTIONAL, "not shared"), (HOST_TO_CONTAINER, "not shared or a slave")):
        assert refused(d.cri.create, pod, mounts=[mount(volume, propagation=propagation)]) == (
            "INVALID_ARGUMENT", "mounts[0].host_path: %s is on a mount that is %s" % (volume, text))
    assert refused(d.cri.create, pod, mounts=[mount(volume, propagation=7)]) == (
        "INVALID_ARGUMENT", "mounts[0].propagation: unknown value 7")


def test_the_status_has_the_requested_mounts_and_no_others(containers, volume):
    d = containers()
    pod = d.cri.pod()
    mounts = [mount(volume, "/deep/er", readonly=True), mount(volume, "/deep", propagation=HOST_TO_CONTAINER),
              mount(volume / "file", "/etc/hosts", selinux_relabel=True), mount(volume, "/opt", mount_options=["noexec"])]
    container = d.cri.run_container(pod, mounts=mounts)
    expected = [d.cri.types["Mount"](**m) for m in mounts]
    assert list(d.cri.container(container).mounts) == expected
    d.restart()
    assert list(d.cri.container(container).mounts) == expected
    assert list(d.cri.container(d.cri.create(pod, name="none")).mounts) == []


def test_mounts_of_the_request_replace_those_of_the_runtime(containers, volume):
    d = containers()
    (volume / "hosts").write_text("192.0.2.7 here\n")
    mounts = [mount(volume / "hosts", "/etc/hosts"), mount(volume, "/dev/shm"), mount(volume, "/deep//er/../er/")]
    container = d.cri.run_container(d.cri.pod(), mounts=mounts)
    assert d.cri.sh(container, "cat /etc/hosts /dev/shm/file /deep/er/file") == "192.0.2.7 here\ntext\ntext\n"


def test_options_of_a_mount_are_applied(containers, volume):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod, mounts=[mount(volume, mount_options=["noexec", "nosuid", "nodev"])])
    options = d.cri.sh(container, "grep ' /mnt ' /proc/mounts").split()[3].split(",")
    assert {"noexec", "nosuid", "nodev", "rw"} <= set(options)
    assert refused(d.cri.create, pod, name="x", mounts=[mount(volume, mount_options=["suid"])]) == (
        "INVALID_ARGUMENT", "mount /mnt: unknown mount option suid")


def test_a_mount_stays_when_the_daemon_restarts_and_ends_with_the_container(containers, volume):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), mounts=[mount(volume, propagation=HOST_TO_CONTAINER)])
    d.restart()
    with mounted(volume / "later"):
        assert d.cri.container(container).state == RUNNING and d.cri.sh(container, "ls /mnt/later") == "inner-file\n"
    d.cri.remove_container(container)
    assert str(volume) not in "".join(m for m in open("/proc/self/mountinfo") if str(d.state) in m)


def test_a_removal_deletes_nothing_in_mounted_directories(containers, volume):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod, mounts=[mount(volume), mount(volume, "/deep")])
    d.cri.sh(container, "mkdir -p /mnt/a/b; touch /mnt/a/b/c /own")
    d.cri.remove_container(container)
    d.cri.remove(pod)
    assert (volume / "a/b/c").exists() and (volume / "file").read_text() == "text\n"
