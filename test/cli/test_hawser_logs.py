# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_logs.py - hawser logs, with hawser-cri, with containerd, and with logs written by the test

How:   in tests of the format the runtime is a fake whose container has a log that the test writes.
"""
import os
import re
import subprocess
import threading

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CREATED, EXITED, RUNNING
from fakeruntime import runtime  # noqa: F401, a fixture
from hawsercli import HAWSER, LONG, message
from nodes import image_server, module_node, node  # noqa: F401, fixtures

ID = "aa11" + "0" * 60
TIME = "2026-11-15T12:00:00.%09dZ"


class Log:
    """A fake container and its log."""

    def __init__(self, runtime, path):
        self.runtime, self.path, self.state = runtime, path, EXITED
        metadata = (3, message((1, "web")))
        runtime.methods["ListContainers"] = lambda request, context: message(
            (1, message((1, ID), (2, "pod"), metadata)))
        runtime.methods["ContainerStatus"] = lambda request, context: message(
            (1, message((1, ID), (3, self.state), (15, str(self.path)))))

    def write(self, *entries, mode="a", raw=""):
        """entries: (stream, tag, text)"""
        with open(self.path, mode, newline="\n") as log:
            for i, (stream, tag, text) in enumerate(entries):
                log.write("%s %s %s %s\n" % (TIME % i, stream, tag, text))
            log.write(raw)

    def run(self, *words):
        return self.runtime.run("logs", "web", *words)

    def follow(self, *words):
        return subprocess.Popen([HAWSER, "--runtime", "unix:" + self.runtime.path, "logs", "-f", *words, "web"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def log(runtime, tmp_path):
    return Log(runtime, tmp_path / "0.log")


def lines(*texts, stream="stdout"):
    return [(stream, "F", text) for text in texts]


# ---- format ------------------------------------------------------------------------------------

def test_lines_go_to_the_stream_that_the_container_wrote_to(log):
    log.write(*lines("one", " two "), *lines("error", stream="stderr"), *lines("", "\x1b[1mthree"))
    assert log.run() == (0, "one\n two \n\n\x1b[1mthree\n", "error\n")


def test_parts_of_a_line_are_joined_in_each_stream(log):
    log.write(("stdout", "P", "a"), ("stderr", "P", "1"), ("stdout", "P", "b"), ("stderr", "F", "2"),
              ("stdout", "F", "c"), ("stdout", "P", "no newline"))
    assert log.run() == (0, "abc\nno newline", "12\n")


def test_timestamps_are_printed_once_for_each_line(log):
    log.write(("stdout", "P", "a"), ("stderr", "F", "error"), ("stdout", "F", "b"), ("stdout", "F", "c"))
    assert log.run("-t") == (0, "%s ab\n%s c\n" % (TIME % 0, TIME % 3), "%s error\n" % (TIME % 1))


@pytest.mark.parametrize("tail, expected", [("0", ""), ("1", "no newline"), ("2", "cd\nno newline"),
                                            ("3", "b\ncd\nno newline"), ("9", "a\nb\ncd\nno newline")])
def test_tail_counts_lines_not_parts(log, tail, expected):
    log.write(*lines("a", "b"), ("stdout", "P", "c"), ("stdout", "F", "d"), ("stdout", "P", "no newline"))
    assert log.run("--tail", tail) == (0, expected, "")


def test_tail_counts_a_line_whose_parts_are_mixed_with_the_other_stream_once(log):
    log.write(*lines("a"), ("stdout", "P", "b"), ("stderr", "F", "error"), ("stdout", "F", "c"), *lines("d"))
    assert log.run("--tail", "2") == (0, "d\n", "error\n")
    assert log.run("--tail", "3") == (0, "bc\nd\n", "error\n")


def test_malformed_lines_are_left_out_and_reported(log):
    log.write(*lines("one"), raw="bogus\n\0\0\0\n")
    log.write(*lines("two"), raw="an incomplete line")
    for tail in ((), ("--tail", "9")):
        status, text, errors = log.run(*tail)
        assert (status, text) == (1, "one\ntwo\n")
        assert errors == "hawser: log %s: 2 lines are not in the log format of CRI\n" % log.path
    log.write(mode="w", raw="x" * (2 << 20))
    status, _, errors = log.run()
    assert status == 1 and "line too long" in errors


def test_a_large_log_is_printed_completely(log):
    log.write(*lines(*("%d %s" % (i, "x" * 100) for i in range(50000))))
    text = log.run()[1]
    assert text.count("\n") == 50000 and text.endswith("\n49999 %s\n" % ("x" * 100))
    assert log.run("--tail", "2")[1] == "".join("%d %s\n" % (i, "x" * 100) for i in (49998, 49999))


def test_a_missing_log_is_an_error_unless_the_container_has_not_run_yet(log):
    status, text, errors = log.run()
    assert (status, text) == (1, "") and 'container "web": log %s does not exist' % log.path in errors
    log.state = CREATED
    assert log.run() == (0, "", "")
    log.path = ""
    status, _, errors = log.run()
    assert status == 1 and 'container "web" has no log: ' in errors
    log.path = "/dev/zero"
    status, _, errors = log.run()
    assert status == 1 and "log /dev/zero: not a regular file" in errors


# ---- follow ------------------------------------------------------------------------------------

def expect(process, *expected):
    timer = threading.Timer(LONG, process.kill)
    timer.start()
    for line in expected:
        assert process.stdout.readline() == line + "\n"
    timer.cancel()


def end(process, log):
    """End the container. Returns the rest of the output."""
    log.state = EXITED
    rest, errors = process.communicate(timeout=LONG)
    assert (process.returncode, errors) == (0, "")
    return rest


def test_a_log_is_followed_until_the_container_has_ended(log):
    log.state = RUNNING
    log.write(*lines("one", "two"))
    process = log.follow("--tail", "1")
    expect(process, "two")
    log.write(raw=TIME % 1 + " stdout F thr")
    log.write(raw="ee\n")
    expect(process, "three")
    log.write(*lines("last"))
    assert end(process, log) == "last\n"


def test_a_log_is_followed_from_before_it_exists(log):
    log.state = CREATED
    process = log.follow()
    log.write(*lines("one"))
    expect(process, "one")
    assert end(process, log) == ""


def test_a_rotated_log_is_followed_without_a_loss(log):
    log.state = RUNNING
    log.write(*lines("one"))
    process = log.follow()
    expect(process, "one")
    for i in range(5):
        os.rename(log.path, "%s.%d" % (log.path, i))
        with open("%s.%d" % (log.path, i), "a") as old:  # the runtime has not opened the new file yet
            old.write("%s stdout F old %d\n" % (TIME % i, i))
        expect(process, "old %d" % i)
        log.write(*lines("new %d" % i))
        expect(process, "new %d" % i)
    log.write(*lines("s"), mode="w")  # truncated in place
    expect(process, "s")
    assert end(process, log) == ""


def test_a_reader_that_goes_away_ends_the_command(log):
    log.state = RUNNING
    log.write(*lines("one"))
    process = log.follow()
    expect(process, "one")
    process.stdout.close()
    log.write(*lines("two"))
    assert process.wait(LONG) == 1 and "Broken pipe" in process.stderr.read()
    process.stderr.close()


# ---- real runtimes -----------------------------------------------------------------------------

def test_the_log_of_a_real_container_is_printed(node):
    pod = node.cri.pod("shop")
    script = "echo out; echo err >&2; head -c 100000 /dev/zero | tr '\\0' x; echo; printf end"
    node.cri.run_to_end(pod, ["/bin/sh", "-c", script], name="web")
    status, text, errors = node.hawser("logs", "web")
    assert (status, errors) == (0, "err\n") and text == "out\n%s\nend" % ("x" * 100000)
    # With one stream: runtimes write lines of two streams in any order.
    node.cri.run_to_end(pod, ["/bin/sh", "-c", script.replace("echo err >&2;", "")], name="out")
    text = node.run("logs", "--tail", "2", "--timestamps", "shop/out")
    assert re.fullmatch(r"\S+T\S+ x{100000}\n\S+T\S+ end", text)


def test_the_log_of_a_real_container_is_followed_over_a_rotation(node):
    script = "mkfifo /tmp/in; while :; do read -r x < /tmp/in && echo $x; done"
    container = node.cri.run_container(node.cri.pod("shop"), ["/bin/sh", "-c", script], name="rotated")
    with subprocess.Popen([HAWSER, *node.words, "logs", "-f", "rotated"], stdout=subprocess.PIPE, text=True) as logs:
        for i in range(3):
            node.cri.sh(container, "echo before %d > /tmp/in" % i)
            expect(logs, "before %d" % i)
            path = node.cri.container(container).log_path
            os.rename(path, "%s.%d" % (path, i))
            node.cri.call("ReopenContainerLog", container_id=container)
            node.cri.sh(container, "echo after %d > /tmp/in" % i)
            expect(logs, "after %d" % i)
        node.cri.stop_container(container)
        assert logs.wait(LONG) == 0
