# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_streams.py - tty, stdin and stdin_once of containers

How:   standard input is written as Attach will do it: through the socket of conmon in the bundle.
"""
import os
import signal
import socket

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import IDLE, RUNNING, containers, read_log  # noqa: F401, a fixture
from waiting import LONG, wait_until


def attach(d, container):
    """A connection to the standard streams of a container."""
    bundle = os.open(d.bundle(container), os.O_PATH)
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(LONG)
        s.connect("/proc/self/fd/%d/attach" % bundle)  # the path of the bundle may be too long
        return s
    finally:
        os.close(bundle)


def write(d, container, data):
    """Write to standard input, and close the connection. Returns when the container has got the data."""
    with attach(d, container) as s:
        s.sendall(data)


def lines(d, container):
    return [text.rstrip("\r") for text in d.cri.printed(container)]


@pytest.mark.parametrize("tty", [False, True])
def test_without_stdin_a_container_reads_nothing(containers, tty):
    d = containers()
    script = "cat; echo end; test -t 0 || echo no terminal"
    if tty:  # a terminal without a client has no end of input
        script = "test -t 0 && echo terminal"
    status = d.cri.run_to_end(d.cri.pod(), ["/bin/sh", "-c", script], tty=tty, stdin_once=True)
    assert status.exit_code == 0 and lines(d, status.id) == (["terminal"] if tty else ["end", "no terminal"])


@pytest.mark.parametrize("how", [None, signal.SIGKILL])
def test_stdin_stays_open_when_a_client_has_closed_it(containers, how):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), ["/bin/cat"], stdin=True)
    write(d, container, b"first\n")
    d.cri.wait_for_line(container, "first")
    if how:
        d.restart(how)
    write(d, container, b"second\n")
    d.cri.wait_for_line(container, "second")
    assert d.cri.container(container).state == RUNNING


def test_with_stdin_once_the_first_client_closes_stdin(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), ["/bin/sh", "-c", "cat; echo end"], stdin=True, stdin_once=True)
    assert d.cri.container(container).state == RUNNING
    write(d, container, b"only\n")
    assert d.cri.wait_for_exit(container).exit_code == 0
    assert lines(d, container) == ["only", "end"]


def test_a_terminal_has_input_and_one_stream_of_output(containers):
    d = containers()
    script = "stty -echo; echo ready; read line; echo got $line; echo error >&2; tty; " + IDLE
    container = d.cri.run_container(d.cri.pod(), ["/bin/sh", "-c", script], tty=True, stdin=True)
    wait_until(lambda: "ready" in lines(d, container))
    write(d, container, b"a line\n")
    wait_until(lambda: "/dev/pts/0" in lines(d, container), lambda: lines(d, container))
    assert lines(d, container) == ["ready", "got a line", "error", "/dev/pts/0"]
    assert {stream for _, stream, *_ in read_log(d.cri.container(container).log_path)} == {"stdout"}


def test_a_command_in_a_container_with_a_terminal_has_none(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), tty=True, stdin=True)
    answer = d.cri.exec_sync(container, "/bin/sh", "-c", "test -t 0 || test -t 1 || echo none; echo error >&2; cat")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (0, b"none\n", b"error\n")
