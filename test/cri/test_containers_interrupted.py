# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_interrupted.py - containers and operations on them that a kill of the daemon or a reboot interrupts
"""
import contextlib
import os
import pathlib
import shutil
import signal
import time
import uuid

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import (CONTAINER, CREATED, EXITED, POD, RUNNING, SERVER, containers,  # noqa: F401, a fixture
                        has_ended)
from poddaemon import CGROUPS, NETNS, NOTREADY, READY, refused, run
from slowcrun import Crun
from waiting import LONG, wait_until


@pytest.fixture
def crun(tmp_path):
    return Crun(tmp_path)


@pytest.fixture
def daemon(containers, crun):
    return containers("--runtime-handler", "slow=%s" % crun.program)


def interrupt_start(d, crun, *words, **more):
    """Returns the ID of a container whose start a kill of the daemon has interrupted."""
    container = d.cri.create(d.cri.pod(handler="slow"), *words, **more)
    crun.delay("start")
    start = d.client().start("StartContainer", container_id=container)
    wait_until(lambda: crun.times("start") == 1)
    d.restart()
    assert start.exception()
    return container


def test_a_start_that_was_interrupted_is_completed(daemon, crun):
    container = interrupt_start(daemon, crun)
    wait_until(lambda: crun.times("start") >= 2)
    assert daemon.cri.container(container).state == CREATED
    crun.go_on("start")
    wait_until(lambda: daemon.cri.container(container).state == RUNNING)


def test_a_stop_also_ends_a_container_whose_start_was_interrupted(daemon, crun):
    container = interrupt_start(daemon, crun)
    wait_until(lambda: crun.times("start") >= 2)
    stop = daemon.cri.start_stop(container, 0)
    crun.go_on("start")
    stop.result()
    assert daemon.cri.container(container).state == EXITED


@pytest.mark.parametrize("code,reason", [(0, "Completed"), (7, "Error")])
def test_a_container_that_ends_before_its_start_is_repeated_keeps_its_exit_code(daemon, crun, code, reason):
    container = interrupt_start(daemon, crun, ["/bin/sh", "-c", "exit %d" % code])
    wait_until(lambda: crun.times("start") >= 2)
    run("crun", "--root", daemon.state / "crun", "start", container)  # as the crun of the killed daemon might
    wait_until(lambda: has_ended(daemon.monitor(container)))
    crun.go_on("start")
    assert refused(daemon.cri.call, "UpdateContainerResources", container_id=container) == (
        "FAILED_PRECONDITION", "container %s is exited" % container)  # it waits for the end of the start
    status = daemon.cri.container(container)
    assert (status.exit_code, status.reason, status.message) == (code, reason, "") and status.started_at


# ---- while no daemon runs --------------------------------------------------------------------------

@pytest.mark.parametrize("pid", [POD, CONTAINER])
def test_a_container_that_runs_is_the_same_process_after_a_restart(containers, pid):
    d = containers()
    container = d.cri.run_server(d.cri.pod(pid=pid), SERVER, pid=pid)
    main, started_at = d.main(container), d.cri.container(container).started_at
    for _ in range(2):
        d.restart()
        status = d.cri.container(container)
        assert (status.state, status.started_at, status.finished_at) == (RUNNING, started_at, 0)
        assert d.main(container) == main and not has_ended(main)
    d.cri.stop_container(container, 60)
    assert d.cri.container(container).exit_code == 0 and has_ended(main)


@pytest.mark.parametrize("number,code", [(signal.SIGTERM, 5), (signal.SIGKILL, 137)])
def test_a_container_that_ended_meanwhile_has_its_own_exit_code_and_time(containers, number, code):
    d = containers()
    container = d.cri.run_server(d.cri.pod(), ["/bin/sh", "-c", SERVER[2].replace("exit 0", "exit 5")])
    main, monitor = d.main(container), d.monitor(container)
    d.kill()
    os.kill(main, number)
    wait_until(lambda: has_ended(monitor))
    ended_at = time.time_ns()
    d.start()
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.reason, status.message) == (EXITED, code, "Error", "")
    assert status.started_at < status.finished_at <= ended_at


def test_a_container_that_was_oom_killed_meanwhile_is_reported_as_such(containers):
    d = containers()
    script = "until [ -e /go ]; do sleep 0.05; done; exec dd if=/dev/zero of=/dev/null bs=40M"  # the interval of a poll
    container = d.cri.run_container(d.cri.pod(), ["/bin/sh", "-c", script], resources={"memory_limit_in_bytes": 15 << 20})
    monitor = d.monitor(container)
    d.kill()
    (d.bundle(container) / "rootfs/go").touch()
    wait_until(lambda: has_ended(monitor))
    d.start()
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.reason) == (EXITED, 137, "OOMKilled")


@pytest.mark.parametrize("start", [False, True])
def test_a_container_whose_monitor_was_killed_meanwhile_has_ended(containers, start):
    d = containers()
    container = d.cri.create(d.cri.pod())
    if start:
        d.cri.start_container(container)
    main, monitor = d.main(container), d.monitor(container)
    d.kill()
    os.kill(monitor, signal.SIGKILL)
    d.start()
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.reason) == (EXITED, 255, "Error") and "monitor" in status.message
    assert refused(d.cri.start_container, container)[0] == "FAILED_PRECONDITION"
    wait_until(lambda: has_ended(main))


def test_a_container_whose_monitor_cannot_be_found_at_the_start_runs_on_and_is_watched_later(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod())
    main, file = d.main(container), d.bundle(container) / "conmon.pid"
    d.kill()
    pid = file.read_text()
    file.unlink()
    file.mkdir()
    d.start()
    d.logged("not cleaned up, trying again later id=" + container)
    assert d.cri.container(container).state == RUNNING and not has_ended(main)
    file.rmdir()
    file.write_text(pid)
    os.kill(main, signal.SIGTERM)
    assert d.cri.wait_for_exit(container).exit_code == 0


@pytest.mark.skipif(not (CGROUPS / "freezer").exists(), reason="there is no freezer of cgroup v1")
def test_a_container_that_a_killed_daemon_has_left_frozen_runs_on(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod())
    freezer, = CGROUPS.glob("freezer/**/%s/freezer.state" % container)
    freezer.write_text("FROZEN")
    wait_until(lambda: freezer.read_text() == "FROZEN\n")
    d.restart()
    d.cri.stop_container(container, LONG)
    assert d.cri.container(container).exit_code == 0


# ---- a reboot --------------------------------------------------------------------------------------

@contextlib.contextmanager
def another_boot(tmp_path):
    """The kernel has another boot ID."""
    path, boot = "/proc/sys/kernel/random/boot_id", tmp_path / "boot_id"
    boot.write_text(str(uuid.uuid4()) + "\n")
    run("mount", "--bind", boot, path)
    yield
    run("umount", path)


def lose_power(d, processes):
    """Kill the daemon and these processes, and remove all that a kernel keeps only while it runs."""
    d.kill()
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(has_ended(pid) for pid in processes))
    for line in reversed(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
        where = line.split()[4]
        if where.startswith((str(d.dir) + "/", str(NETNS) + "/")):
            run("umount", "--lazy", where)
    for file in NETNS.glob("hawser-*"):
        file.unlink()
    for directory in sorted(CGROUPS.glob("**/hawser/**/"), key=lambda path: -len(path.parts)):
        directory.rmdir()
    shutil.rmtree(d.state)


def test_after_a_reboot_containers_have_ended_and_their_files_are_not_used_again(containers, tmp_path):
    d = containers()
    pod = d.cri.pod(network=POD)
    running, created = d.cri.run_container(pod, name="running"), d.cri.create(pod, name="created")
    exited = d.cri.run_to_end(pod, ["/bin/sh", "-c", "exit 4"], name="exited").id
    d.cri.sh(running, "echo old >/file")
    assert "volatile" in next(line for line in open("/proc/self/mountinfo") if "%s/rootfs " % running in line)
    lose_power(d, [pid for c in (running, created) for pid in (d.monitor(c), d.main(c))])
    with another_boot(tmp_path):
        d.start()
        wait_until(lambda: d.cri.status(pod).state == NOTREADY and not d.leased(), d.log)
        for container in (running, created):
            status = d.cri.container(container)
            assert (status.state, status.exit_code, status.reason) == (EXITED, 255, "Error")
            assert "a restart of the node" in status.message and status.finished_at
            assert refused(d.cri.start_container, container)[0] == "FAILED_PRECONDITION"
            assert str(d.dir / "root/containers" / container) not in pathlib.Path("/proc/self/mountinfo").read_text()
        assert d.cri.container(exited).exit_code == 4
        again = d.cri.pod(network=POD, attempt=1)
        assert d.cri.status(again).state == READY
        assert d.cri.sh(d.cri.run_container(again, name="running"), "ls /file 2>&1 || true") != "/file\n"
        d.cri.remove(pod)
        assert d.cri.ids() == [again] and {path.name for path in (d.dir / "root/containers").iterdir()} == set(
            d.cri.container_ids())
        d.cri.remove(again)
