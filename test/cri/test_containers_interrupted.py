# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_interrupted.py - operations on containers that a kill of hawser-cri interrupts
"""
import shutil

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CREATED, EXITED, RUNNING, containers  # noqa: F401, a fixture
from waiting import wait_until

# Runs crun. While the file of that name exists, a command of crun waits.
WRAPPER = """#!/bin/sh
for word in "$@"; do
	case $word in create|start|kill|delete|exec) break ;; esac
done
echo "$word" >>%(dir)s/commands
while [ -e "%(dir)s/$word.wait" ]; do sleep 0.02; done # the interval of the polls
exec %(crun)s "$@"
"""


class Crun:
    """An OCI runtime whose commands can be delayed."""

    def __init__(self, directory):
        self.dir = directory
        self.program = directory / "runtime"
        self.program.write_text(WRAPPER % {"dir": directory, "crun": shutil.which("crun")})
        self.program.chmod(0o755)

    def delay(self, command):
        (self.dir / (command + ".wait")).touch()

    def go_on(self, command):
        (self.dir / (command + ".wait")).unlink()

    def times(self, command):
        file = self.dir / "commands"
        return file.read_text().splitlines().count(command) if file.exists() else 0


@pytest.fixture
def crun(tmp_path):
    return Crun(tmp_path)


@pytest.fixture
def daemon(containers, crun):
    return containers("--runtime-handler", "slow=%s" % crun.program)


def interrupt_start(d, crun):
    """Returns the ID of a container whose start a kill of the daemon has interrupted."""
    container = d.cri.create(d.cri.pod(handler="slow"))
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
