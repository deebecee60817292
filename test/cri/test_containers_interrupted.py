# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_interrupted.py - operations on containers that a kill of hawser-cri interrupts
"""
import os
import signal

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import CREATED, EXITED, RUNNING, containers, has_ended  # noqa: F401, containers is a fixture
from poddaemon import refused
from slowcrun import Crun
from waiting import wait_until


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
