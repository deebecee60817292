# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_logs.py - logs of hawser-cri's containers
"""
import os
import time

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import containers, read_log  # noqa: F401, containers is a fixture
from poddaemon import refused
from waiting import wait_until


def sh(script):
    return ["/bin/sh", "-c", script]


def counter(text="line"):
    """Prints numbered lines without end."""
    pause = "sleep 0.02"  # the interval of the lines
    return sh("n=0; while :; do n=$((n+1)); echo %s $n; %s; done" % (text, pause))


def test_a_log_has_both_streams_in_the_format_of_cri(containers):
    d = containers()
    before = time.time()
    status = d.cri.run_to_end(d.cri.pod(), sh("echo one; echo two >&2; printf 'tab\\there\\n\\n'"), log_path="0.log")
    assert status.log_path == str(d.logs / "a/0.log")
    lines = read_log(status.log_path)
    assert sorted(line[1:] for line in lines if line[1] == "stdout") == sorted(
        [("stdout", "F", "one"), ("stdout", "F", "tab\there"), ("stdout", "F", "")])
    assert [line[1:] for line in lines if line[1] == "stderr"] == [("stderr", "F", "two")]
    for when, *_ in lines:
        seconds = time.mktime(time.strptime(when[:19], "%Y-%m-%dT%H:%M:%S"))
        assert before - 86400 < seconds < time.time() + 86400
        assert len(when.partition(".")[2].rstrip("Z").partition("+")[0]) == 9
    assert oct(os.stat(status.log_path).st_mode)[-3:] in ("600", "640", "644")


def test_a_line_without_a_newline_is_marked_as_a_part(containers):
    d = containers()
    status = d.cri.run_to_end(d.cri.pod(), sh("printf 'no newline'"))
    assert [line[1:] for line in read_log(status.log_path)] == [("stdout", "P", "no newline")]


def test_a_long_line_is_split_and_nothing_of_it_is_lost(containers):
    d = containers()
    status = d.cri.run_to_end(d.cri.pod(), sh("head -c 100000 /dev/zero | tr '\\0' x; echo; echo end"))
    lines = read_log(status.log_path)
    assert {tag for _, _, tag, _ in lines[:-2]} == {"P"} and lines[-1][2:] == ("F", "end")
    assert "".join(text for *_, text in lines[:-1]) == "x" * 100000
    assert max(len(text) for *_, text in lines) <= 16384


def test_bytes_that_are_not_text_are_kept(containers):
    d = containers()
    status = d.cri.run_to_end(d.cri.pod(), sh("printf '\\377\\000\\033[1mx\\n'"))
    ((*_, text),) = read_log(status.log_path)
    assert text.encode(errors="surrogateescape") == b"\xff\0\x1b[1mx"


def test_all_output_is_in_the_log_when_the_container_has_exited(containers):
    d = containers()
    pod = d.cri.pod()
    for i in range(5):
        status = d.cri.run_to_end(pod, sh("seq 1 5000; seq 1 5000 >&2"), name="c%d" % i)
        lines = read_log(status.log_path)
        for stream in ("stdout", "stderr"):
            text = "".join(t + "\n" * (tag == "F") for _, s, tag, t in lines if s == stream)
            assert text.split() == [str(n) for n in range(1, 5001)]


def test_a_log_is_rotated_by_a_rename_and_a_reopen(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), counter())
    path = d.cri.container(container).log_path
    for i in range(3):
        wait_until(lambda: len(read_log(path)) > 2)
        os.rename(path, "%s.%d" % (path, i))
        d.cri.call("ReopenContainerLog", container_id=container)
        assert os.path.exists(path)
        size = os.path.getsize("%s.%d" % (path, i))
    wait_until(lambda: len(read_log(path)) > 2)
    assert os.path.getsize(path + ".2") == size
    d.cri.stop_container(container)
    numbers = [int(text.split()[1]) for file in ("%s.0" % path, "%s.1" % path, "%s.2" % path, path)
               for *_, text in read_log(file)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_reopen_after_a_restart_of_the_daemon_works(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), counter())
    path = d.cri.container(container).log_path
    d.restart()
    os.rename(path, path + ".old")
    d.cri.call("ReopenContainerLog", container_id=container)
    wait_until(lambda: len(read_log(path)) > 2)


def test_a_reopen_needs_a_container_that_runs_and_has_a_log(containers):
    d = containers()
    pod = d.cri.pod()
    exited = d.cri.run_to_end(pod, ["/bin/true"], name="exited")
    os.unlink(exited.log_path)
    assert refused(d.cri.call, "ReopenContainerLog", container_id=exited.id) == (
        "FAILED_PRECONDITION", "container %s is exited, not running" % exited.id)
    assert not os.path.exists(exited.log_path)
    none = d.cri.run_container(pod, name="none", log_path="")
    assert d.cri.container(none).log_path == ""
    assert refused(d.cri.call, "ReopenContainerLog", container_id=none) == (
        "FAILED_PRECONDITION", "container %s has no log" % none)


def test_a_reopen_without_a_monitor_is_refused(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod())
    (d.bundle(container) / "ctl").unlink()  # as when conmon has just ended
    code, text = refused(d.cri.call, "ReopenContainerLog", container_id=container)
    assert code == "FAILED_PRECONDITION" and "the monitor does not run" in text


def test_a_container_without_a_log_path_or_log_directory_runs(containers):
    d = containers()
    script = sh("seq 1 100000; exit 4")
    assert d.cri.run_to_end(d.cri.pod("a"), script, log_path="").exit_code == 4
    assert d.cri.run_to_end(d.cri.pod("b", log_directory=""), script, log_path="x.log").exit_code == 4
    assert not list(d.dir.glob("**/*.log"))


def test_the_directory_of_a_log_is_created(containers):
    d = containers()
    status = d.cri.run_to_end(d.cri.pod(), ["/bin/echo", "x"], log_path="deep/er/0.log")
    assert status.log_path == str(d.logs / "a/deep/er/0.log") and len(read_log(status.log_path)) == 1


def test_a_log_stays_when_its_container_is_removed_and_the_next_attempt_has_its_own(containers):
    d = containers()
    pod = d.cri.pod()
    for attempt in range(2):
        status = d.cri.run_to_end(pod, ["/bin/echo", "attempt %d" % attempt], attempt=attempt,
                                  log_path="c/%d.log" % attempt)
        d.cri.remove_container(status.id)
    d.cri.remove(pod)
    assert [read_log(d.logs / "a/c" / ("%d.log" % n))[0][3] for n in range(2)] == ["attempt 0", "attempt 1"]


def test_a_container_continues_to_log_while_the_daemon_does_not_run(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), counter())
    path = d.cri.container(container).log_path
    d.kill()
    seen = len(read_log(path))
    wait_until(lambda: len(read_log(path)) > seen + 5)
    d.start()
    d.cri.stop_container(container)
    numbers = [int(text.split()[1]) for *_, text in read_log(path)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_terminal_has_one_stream(containers):
    d = containers()
    status = d.cri.run_to_end(d.cri.pod(), sh("echo out; echo err >&2; tty; echo $TERM"), tty=True)
    lines = read_log(status.log_path)
    assert {stream for _, stream, *_ in lines} == {"stdout"}
    assert [text.rstrip("\r") for *_, text in lines] == ["out", "err", "/dev/pts/0", "xterm"]
