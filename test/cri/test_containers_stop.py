# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_stop.py - how containers of hawser-cri end: signals, grace, exit codes, out of memory
"""
import ctypes
import os
import pathlib
import signal
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import (CONTAINER, CREATED, EXITED, FOREVER, IDLE, NODE, POD, RUNNING, SERVER,
                        containers, has_ended)  # noqa: F401, a fixture
from poddaemon import refused
from waiting import wait_until

SYS_PIDFD_GETFD = 438  # on every architecture

# Prints the signals that it gets, and ends with none of them.
LISTENER = ["/bin/sh", "-c",
            "for s in TERM QUIT HUP INT USR1; do trap \"echo $s\" $s; done; echo ready; " + IDLE]
# Starts processes that ignore signals and leave its session, and ends on SIGTERM.
FORKING = ["/bin/sh", "-c", "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 100000; done' & "
           "trap 'exit 3' TERM; echo ready; " + IDLE]


def in_cgroup(pid):
    """All processes in the cgroups of a process."""
    for line in pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines():
        _, names, path = line.split(":", 2)
        if "pids" in names.split(",") or names == "":
            root = pathlib.Path("/sys/fs/cgroup") / (names or "")
            file = pathlib.Path(str(root) + path) / "cgroup.procs"
            if file.exists():
                return {int(p) for p in file.read_text().split()}
    raise AssertionError("process %d is in no cgroup" % pid)


def alive(pids):
    return {p for p in pids if not has_ended(p)}


# ---- signals and grace -----------------------------------------------------------------------------

@pytest.mark.parametrize("of_image,of_request,expected", [
    ("", 0, "TERM"), ("SIGQUIT", 0, "QUIT"), ("HUP", 0, "HUP"), ("2", 0, "INT"), ("SIGQUIT", "SIGNAL_SIGUSR1", "USR1"),
    ("nonsense", 0, "TERM")])
def test_a_stop_sends_the_signal_of_the_request_or_the_image_or_sigterm(containers, of_image, of_request, expected):
    d = containers()
    image = d.load("hawser.test/signal:1", StopSignal=of_image) if of_image else d.load("hawser.test/signal:1")
    more = {"stop_signal": of_request} if of_request else {}
    container = d.cri.run_server(d.cri.pod(), LISTENER, image=image, **more)
    name = d.cri.types["ContainerStatus"].DESCRIPTOR.fields_by_name["stop_signal"].enum_type
    assert name.values_by_number[d.cri.container(container).stop_signal].name == "SIGNAL_SIG" + expected
    stop = d.client().start_stop(container, 60)
    wait_until(lambda: d.cri.printed(container)[1:] == [expected], lambda: d.cri.printed(container))
    d.cri.stop_container(container)
    stop.result()
    assert d.cri.container(container).exit_code == 128 + signal.SIGKILL


def test_a_stop_sends_a_real_time_signal_that_the_image_names(containers):
    d = containers()
    image = d.load("hawser.test/signal:1", StopSignal="SIGRTMIN+3")
    container = d.cri.run_container(d.cri.pod(), pid=NODE, image=image)
    d.cri.stop_container(container, 60)
    assert d.cri.container(container).exit_code == 128 + signal.SIGRTMIN + 3


@pytest.mark.parametrize("pid", [POD, CONTAINER, NODE])
def test_a_process_that_ignores_signals_is_killed_after_the_grace(containers, pid):
    d = containers()
    container = d.cri.run_server(d.cri.pod(pid=pid),
                                 ["/bin/sh", "-c", "trap '' TERM; echo ready; " + IDLE], pid=pid)
    begin = time.monotonic()
    d.cri.stop_container(container, 1)
    assert 1 <= time.monotonic() - begin < 20
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.reason) == (EXITED, 137, "Error")


def test_without_a_grace_a_container_is_killed_at_once(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod(), LISTENER)
    d.cri.stop_container(container, 0)
    assert d.cri.container(container).exit_code == 137 and d.cri.printed(container) == ["ready"]


def test_a_second_stop_can_only_shorten_the_wait_and_sends_no_second_signal(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod(), LISTENER)
    first = d.client().start_stop(container, 50)
    wait_until(lambda: d.cri.printed(container)[1:] == ["TERM"])
    longer = d.client().start_stop(container, 100)
    begin = time.monotonic()
    d.cri.stop_container(container, 1)
    first.result()
    longer.result()
    assert time.monotonic() - begin < 30
    assert d.cri.printed(container) == ["ready", "TERM"] and d.cri.container(container).exit_code == 137


def test_a_stop_with_a_grace_delays_neither_probes_nor_other_containers(containers):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_server(pod, LISTENER)
    stop = d.client().start_stop(container, 50)
    wait_until(lambda: "TERM" in d.cri.printed(container))
    assert d.cri.sh(container, "echo still here") == "still here\n"
    other = d.cri.run_server(pod, name="other")
    d.cri.stop_container(other, 50)
    d.cri.remove_container(other)
    assert d.cri.container(container).state == RUNNING and not stop.done()
    d.cri.remove_container(container)
    stop.result()


def test_a_container_that_ends_during_the_grace_keeps_its_exit_code(containers):
    d = containers()
    shutdown = "trap 'sleep 0.3; exit 7' TERM; echo ready; "  # the interval of the shutdown
    container = d.cri.run_server(d.cri.pod(), ["/bin/sh", "-c", shutdown + IDLE])
    d.cri.stop_container(container, 50)
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.reason) == (EXITED, 7, "Error")


def test_the_client_of_a_stop_may_leave(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod(), LISTENER)
    client = d.client()
    stop = client.start_stop(container, 1)
    wait_until(lambda: "TERM" in d.cri.printed(container))
    stop.cancel()
    client.channel.close()
    assert d.cri.wait_for_exit(container).exit_code == 137


def test_a_stop_whose_deadline_is_too_short_fails_and_can_be_repeated(containers):
    d = containers()
    container = d.cri.run_server(d.cri.pod(), LISTENER)
    stop = d.client().start_stop(container, 50, timeout=0.3)
    assert stop.exception().code().name == "DEADLINE_EXCEEDED"
    assert d.cri.container(container).state == RUNNING
    d.cri.stop_container(container, 0)
    assert d.cri.container(container).state == EXITED


# ---- everything in its cgroup ----------------------------------------------------------------------

@pytest.mark.parametrize("pid", [POD, CONTAINER, NODE])
@pytest.mark.parametrize("how", ["stop", "remove", "stop the pod"])
def test_all_processes_of_a_container_end_with_it(containers, pid, how):
    d = containers()
    pod = d.cri.pod(pid=pid)
    container = d.cri.run_server(pod, FORKING, pid=pid)
    wait_until(lambda: len(in_cgroup(d.main(container))) >= 4)
    processes = in_cgroup(d.main(container))
    if how == "stop":
        d.cri.stop_container(container, 50)
        assert d.cri.container(container).exit_code == 3
    elif how == "remove":
        d.cri.remove_container(container)
    else:
        d.cri.stop(pod)
    assert not alive(processes)


@pytest.mark.parametrize("pid", [POD, NODE])
def test_processes_that_outlive_the_first_one_are_killed(containers, pid):
    d = containers()
    pod = d.cri.pod(pid=pid)
    neighbour = d.cri.run_container(pod, FOREVER, name="neighbour", pid=pid)
    container = d.cri.run_server(pod, FORKING, pid=pid)
    wait_until(lambda: len(in_cgroup(d.main(container))) >= 4)
    processes = in_cgroup(d.main(container))
    os.kill(d.main(container), signal.SIGTERM)
    assert d.cri.wait_for_exit(container).exit_code == 3
    wait_until(lambda: not alive(processes))
    assert d.cri.container(neighbour).state == RUNNING


# ---- exit codes ------------------------------------------------------------------------------------

@pytest.mark.parametrize("script,code,reason", [
    ("exit 0", 0, "Completed"), ("exit 3", 3, "Error"), ("exit 255", 255, "Error"), ("kill -9 $$", 137, "Error"),
    ("kill -SEGV $$", 139, "Error")])
def test_the_status_has_exit_code_and_reason(containers, script, code, reason):
    d = containers()
    before = time.time_ns()
    status = d.cri.run_to_end(d.cri.pod(pid=POD), ["/bin/sh", "-c", script], pid=POD)
    assert (status.state, status.exit_code, status.reason, status.message) == (EXITED, code, reason, "")
    assert before <= status.created_at <= status.started_at <= status.finished_at <= time.time_ns()


def test_times_are_set_when_their_event_has_happened(containers):
    d = containers()
    container = d.cri.create(d.cri.pod())
    status = d.cri.container(container)
    assert status.created_at and not status.started_at and not status.finished_at and status.exit_code == 0
    d.cri.start_container(container)
    status = d.cri.container(container)
    assert status.started_at > status.created_at and not status.finished_at
    d.cri.stop_container(container)
    assert d.cri.container(container).finished_at >= status.started_at  # the clock of files ticks every few ms


def test_a_container_that_needs_too_much_memory_is_oom_killed(containers):
    d = containers()
    limits = {"memory_limit_in_bytes": 15 << 20}
    status = d.cri.run_to_end(d.cri.pod(), ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=40M"], resources=limits)
    assert (status.state, status.exit_code, status.reason) == (EXITED, 137, "OOMKilled")


def test_a_container_of_which_only_a_child_was_oom_killed_has_its_own_exit_code(containers):
    d = containers()
    status = d.cri.run_to_end(d.cri.pod(), ["/bin/sh", "-c", "dd if=/dev/zero of=/dev/null bs=40M; exit 5"],
                              resources={"memory_limit_in_bytes": 15 << 20})
    assert (status.exit_code, status.reason) == (5, "Error")


def test_a_container_that_was_killed_without_a_lack_of_memory_is_not_oom_killed(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), resources={"memory_limit_in_bytes": 15 << 20})
    os.kill(d.main(container), signal.SIGKILL)
    assert d.cri.wait_for_exit(container).reason == "Error"


def test_a_container_that_cannot_be_started_has_a_start_error(containers):
    d = containers()
    container = d.cri.create(d.cri.pod())
    (d.state / "crun" / container / "status").unlink()
    code, text = refused(d.cri.start_container, container)
    status = d.cri.container(container)
    assert code == "INTERNAL" and (status.state, status.reason, status.exit_code) == (EXITED, "StartError", 128)
    assert status.message and status.message in text and status.finished_at
    d.cri.remove_container(container)


def test_a_container_whose_start_could_not_be_stored_is_not_started_by_its_stop(containers):
    d = containers()
    container = d.cri.create(d.cri.pod(), SERVER)
    with d.database() as db:  # as a backup might
        db.execute("BEGIN IMMEDIATE")
        assert "database is locked" in refused(d.cri.start_container, container)[1]
    d.cri.stop_container(container, 10)
    assert d.cri.container(container).state == CREATED and d.cri.printed(container) == []
    d.cri.start_container(container)
    d.cri.wait_for_line(container, "ready")


# ---- the monitor -----------------------------------------------------------------------------------

def duplicate_pidfd(process, target):
    """Duplicates the descriptor that a process has for another process, as a fork does for a moment."""
    for file in pathlib.Path("/proc/%d/fdinfo" % process).iterdir():
        if "Pid:\t%d\n" % target in file.read_text():
            fd = ctypes.CDLL(None).syscall(SYS_PIDFD_GETFD, os.pidfd_open(process), int(file.name), 0)
            assert fd >= 0
            return fd
    raise AssertionError("no descriptor of process %d" % target)


@pytest.mark.parametrize("how", ["stop", "stop the pod", "in the background"])
def test_a_container_whose_monitor_hangs_can_be_stopped_and_removed(containers, how):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod)
    main, monitor = d.main(container), d.monitor(container)
    os.kill(monitor, signal.SIGSTOP)
    if how == "stop":
        d.cri.stop_container(container, 0)
    elif how == "stop the pod":
        d.cri.stop(pod)
    else:
        call = d.client().start("StopPodSandbox", pod_sandbox_id=pod)
        wait_until(lambda: has_ended(main), lambda: call)
        d.restart()
        wait_until(lambda: d.cri.container(container).state == EXITED, d.log)
    status = d.cri.container(container)
    assert (status.state, status.exit_code, status.message) == (EXITED, 255, "conmon has ended unexpectedly")
    assert has_ended(main) and has_ended(monitor)


def test_the_end_of_a_monitor_is_noticed_once_if_its_descriptor_has_a_duplicate(containers):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod)
    fd = duplicate_pidfd(d.process.pid, d.monitor(container))
    d.cri.stop_container(container)
    d.cri.remove_container(container)
    assert d.cri.run_to_end(pod, ["/bin/true"], name="next").exit_code == 0
    os.close(fd)
    assert d.process.poll() is None


def test_a_container_whose_exit_code_is_malformed_has_ended_with_an_unknown_one(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    (d.bundle(container) / "exit").write_text("1 2")
    os.kill(d.monitor(container), signal.SIGKILL)
    status = d.cri.wait_for_exit(container)
    assert (status.exit_code, status.message) == (255, "conmon has ended unexpectedly")
    assert "malformed file exit" in d.log()


def test_an_exit_code_that_cannot_be_read_is_read_again_later(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    exit_file = d.bundle(container) / "exit"
    exit_file.mkdir()
    os.kill(d.monitor(container), signal.SIGKILL)
    d.logged("not cleaned up, trying again later id=" + container)
    assert d.cri.container(container).state == RUNNING
    exit_file.rmdir()
    exit_file.write_text("7")
    assert d.cri.wait_for_exit(container).exit_code == 7
