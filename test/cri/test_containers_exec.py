# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_exec.py - ExecSync: commands in hawser-cri's containers
"""
import pathlib
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CONTAINER, NODE, POD, RUNNING, containers  # noqa: F401, a fixture
from poddaemon import in_threads, refused
from waiting import wait_until

MB = 1 << 20


def running(word):
    """The processes with this word in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word in (path / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                found.append(int(path.name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("pid", [POD, CONTAINER, NODE])
def test_output_and_exit_code_of_a_command_are_returned(containers, pid):
    d = containers()
    container = d.cri.run_container(d.cri.pod(pid=pid), pid=pid)
    answer = d.cri.exec_sync(container, "/bin/sh", "-c", "echo out; echo err >&2; exit 3")
    assert (answer.stdout, answer.stderr, answer.exit_code) == (b"out\n", b"err\n", 3)
    answer = d.cri.exec_sync(container, "echo", "-n", "hello", timeout=10)
    assert (answer.stdout, answer.stderr, answer.exit_code) == (b"hello", b"", 0)
    assert d.cri.exec_sync(container, "/bin/sh", "-c", "kill -9 $$").exit_code == 137
    assert d.cri.exec_sync(container, "printf", "\\377\\000").stdout == b"\xff\0"


def test_a_command_has_the_environment_user_and_rights_of_the_container(containers):
    d = containers()
    container = d.cri.run_container(
        d.cri.pod(), run_as_user={"value": 1000}, run_as_group={"value": 1001}, supplemental_groups=[5],
        working_dir="/tmp", envs=[{"key": "A", "value": b"b"}], capabilities={"drop_capabilities": ["ALL"]})
    assert d.cri.sh(container, "echo $(id -u) $(id -g) $(id -G) $A $PWD").split() == [
        "1000", "1001", "1001", "5", "b", "/tmp"]
    assert "CapBnd:\t0000000000000000\n" in d.cri.sh(container, "cat /proc/self/status")
    assert d.cri.sh(container, "cat /proc/self/cgroup") == d.cri.sh(container, "cat /proc/1/cgroup")


def test_a_command_that_cannot_be_started_is_an_error_with_the_text_of_the_runtime(containers):
    d = containers()
    pod = d.cri.pod()
    container = d.cri.run_container(pod)
    code, text = refused(d.cri.exec_sync, container, "/bin/missing")
    assert code == "INVALID_ARGUMENT" and "missing" in text
    assert refused(d.cri.exec_sync, container) == ("INVALID_ARGUMENT", "cmd is missing")
    created = d.cri.create(pod, name="created")
    assert refused(d.cri.exec_sync, created, "true") == (
        "FAILED_PRECONDITION", "container %s is created, not running" % created)
    d.cri.stop_container(container)
    assert refused(d.cri.exec_sync, container, "true") == (
        "FAILED_PRECONDITION", "container %s is exited, not running" % container)


def test_output_is_bounded_and_the_command_continues(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    answer = d.cri.exec_sync(container, "/bin/sh", "-c", "head -c %d /dev/zero; echo done >/tmp/done; exit 5" % (40 * MB))
    assert answer.exit_code == 5 and 15 * MB < len(answer.stdout) <= 16 * MB
    assert d.cri.sh(container, "cat /tmp/done") == "done\n"
    answer = d.cri.exec_sync(container, "/bin/sh", "-c", "head -c %d /dev/zero; head -c %d /dev/zero >&2" % (
        20 * MB, 20 * MB))
    assert 15 * MB < len(answer.stdout) + len(answer.stderr) <= 16 * MB and min(
        len(answer.stdout), len(answer.stderr)) > 7 * MB


@pytest.mark.parametrize("pid", [POD, CONTAINER])
def test_a_timeout_kills_the_command_with_its_whole_process_group(containers, pid):
    d = containers()
    container = d.cri.run_container(d.cri.pod(pid=pid), pid=pid)
    begin = time.monotonic()
    code, text = refused(d.cri.exec_sync, container, "/bin/sh", "-c", "sleep 98765 & trap '' TERM; sleep 98765; true",
                         timeout=1)
    assert (code, text) == ("DEADLINE_EXCEEDED", "command timed out: timeout 1s exceeded")
    assert 1 <= time.monotonic() - begin < 20
    wait_until(lambda: not running("98765"))
    assert d.cri.container(container).state == RUNNING and d.cri.sh(container, "echo ok") == "ok\n"


def test_a_background_process_that_holds_the_output_does_not_delay_the_answer(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    begin = time.monotonic()
    answer = d.cri.exec_sync(container, "/bin/sh", "-c", "setsid sleep 98765 & echo started")
    assert answer.stdout == b"started\n" and time.monotonic() - begin < 20
    wait_until(lambda: running("98765"))
    assert d.cri.container(container).state == RUNNING
    d.cri.stop_container(container)
    assert not running("98765")


def test_a_command_is_killed_when_its_client_leaves(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    client = d.client()
    call = client.start("ExecSync", container_id=container, cmd=["/bin/sleep", "98765"])
    wait_until(lambda: running("98765"))
    call.cancel()
    wait_until(lambda: not running("98765"))
    call = client.start("ExecSync", container_id=container, cmd=["/bin/sleep", "98765"])
    wait_until(lambda: running("98765"))
    client.channel.close()
    wait_until(lambda: not running("98765"))


def test_the_deadline_of_the_call_ends_the_command(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    call = d.cri.start("ExecSync", timeout=1, container_id=container, cmd=["/bin/sleep", "98765"])
    assert call.exception().code().name == "DEADLINE_EXCEEDED"
    wait_until(lambda: not running("98765"))


def test_commands_of_a_killed_daemon_are_ended_by_the_next_one(containers):
    daemon = containers()
    cri = daemon.cri
    container = cri.run_server(cri.pod())
    call = cri.start("ExecSync", container_id=container, cmd=["/bin/sh", "-c", "sleep 7654 & wait"])
    wait_until(lambda: running("7654") and list(daemon.bundle(container).glob("exec.*/pid")), daemon.log)
    daemon.restart()
    call.cancel()
    wait_until(lambda: not running("7654"), daemon.log)
    assert not list(daemon.bundle(container).glob("exec.*"))
    assert daemon.cri.sh(container, "echo hello") == "hello\n"


def test_commands_in_a_container_run_at_the_same_time(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    clients = [d.client() for _ in range(8)]
    poll = "sleep 0.02"  # the interval of the polls
    script = "echo $0 >/tmp/$0; until [ $(ls /tmp | wc -l) = 8 ]; do %s; done; echo $0" % poll
    answers = in_threads(*[lambda n=n, c=c: c.exec_sync(container, "/bin/sh", "-c", script, "n%d" % n)
                           for n, c in enumerate(clients)])
    assert [a.stdout for a in answers] == [b"n%d\n" % n for n in range(8)]


def test_commands_end_with_their_container(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    call = d.client().start("ExecSync", container_id=container, cmd=["/bin/sleep", "98765"])
    wait_until(lambda: running("98765"))
    d.cri.remove_container(container)
    if call.exception():
        assert call.code().name == "INTERNAL"
    else:
        assert call.result().exit_code == 137
    assert not running("98765")


def test_a_command_leaves_no_file_in_the_bundle(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    before = sorted(f.name for f in d.bundle(container).iterdir())
    d.cri.sh(container, "true")
    refused(d.cri.exec_sync, container, "/bin/missing")
    refused(d.cri.exec_sync, container, "/bin/sleep", "98765", timeout=1)
    assert sorted(f.name for f in d.bundle(container).iterdir()) == before
