# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_plugins.py - pods whose plugins fail, hang, die or print too much; DEL without what ADD had
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from hawsercli import HAWSER, hawser
from poddaemon import (NETNS, NOTREADY, READY, both_plugins, pods, refused,
                       run)  # noqa: F401, pods is a fixture
from waiting import LONG, wait_until


# ---- DEL without what ADD had ----------------------------------------------------------------------

def lose_namespace(d, pod):
    run("umount", NETNS / ("hawser-" + pod))
    (NETNS / ("hawser-" + pod)).unlink()


def lose_pin(d, pod):
    """The file stays, and is no namespace any more."""
    run("umount", NETNS / ("hawser-" + pod))


def lose_configuration(d, pod):
    (d.net / "10-pods.conflist").unlink()


def break_configuration(d, pod):
    d.write_network("{")


def replace_configuration(d, pod):
    d.write_network(d.conflist(plugins=[{"type": "loopback"}]))


def lose_cache(d, pod):
    shutil.rmtree(d.dir / "cache")


def lose_everything(d, pod):
    lose_namespace(d, pod)
    lose_configuration(d, pod)
    lose_cache(d, pod)


@both_plugins
@pytest.mark.parametrize("lose", [lose_namespace, lose_pin, lose_configuration, break_configuration,
                                  replace_configuration, lose_cache, lose_everything])
def test_a_pod_is_stopped_and_removed_without(pods, plugins, lose):
    d = pods(plugins=plugins, start=False)
    conf = d.conflist()
    conf["plugins"][0]["ipMasq"] = plugins == "ours"  # upstream leaves the rules if the namespace is gone
    d.write_network(conf)
    d.start()
    ports = [{"host_port": 8080, "container_port": 80}]
    pod = d.cri.run("a", port_mappings=ports)
    other = d.cri.run("b")
    lose(d, pod)
    d.cri.stop(pod)
    assert d.leased() == [d.cri.address(other)] and d.cri.status(pod).state == NOTREADY
    d.cri.remove(pod)
    assert d.cri.ids() == [other]


def test_plugins_get_the_result_of_add_from_the_database_if_the_cache_is_lost(pods):
    d = pods()
    pod = d.cri.run()
    lose_cache(d, pod)
    assert hawser("--runtime", "unix:" + d.socket, "network", "check", pod)[0] == 0
    d.cri.stop(pod)
    for command in ("CHECK", "DEL"):
        result = d.called(command)["conf"]["prevResult"]
        assert result["ips"][0]["address"].startswith("10.88."), command


def test_a_check_ends_with_its_client(pods):
    d = pods()
    pod = d.cri.run()
    d.direct("CHECK.hang")
    with subprocess.Popen([HAWSER, "--runtime", "unix:" + d.socket, "network", "check", pod]) as client:
        d.wait_for_call("CHECK")
        client.kill()
    # the timeout of a CHECK is longer than that
    d.cri.start("StopPodSandbox", timeout=LONG / 2, pod_sandbox_id=pod).result()
    assert not os.path.exists("/proc/%d" % d.called("CHECK")["pid"])


# ---- DEL that fails --------------------------------------------------------------------------------

def test_a_failed_del_is_returned_and_repeated_in_the_background(pods):
    d = pods()
    pod = d.cri.run(pid=0)
    d.direct("DEL.fail", "the switch is away")
    code, text = refused(d.cri.stop, pod)
    assert code == "INTERNAL" and text == (
        'pod %s: network "pods": plugin type="control" failed (delete): the switch is away' % pod)
    assert d.cri.status(pod).state == NOTREADY
    info = d.cri.info(pod)
    assert info["state"] == "stopping" and info["message"] == text
    assert d.leased() == [d.cri.address(pod)] and (NETNS / ("hawser-" + pod)).exists()
    tries = d.calls("DEL", pod)
    d.wait_for_call("DEL", tries + 1)
    d.undirect()
    wait_until(lambda: d.cri.info(pod)["state"] == "stopped")
    assert d.cri.info(pod)["message"] == "" and d.leased() == []
    d.cri.remove(pod)


def test_a_failed_remove_is_completed_in_the_background(pods):
    d = pods()
    pod = d.cri.run()
    d.direct("DEL.fail", "the switch is away")
    assert refused(d.cri.remove, pod)[0] == "INTERNAL"
    assert refused(d.cri.remove, pod)[0] == "INTERNAL"
    d.undirect()
    d.cri.remove(pod)
    assert not d.leftovers()


def test_a_plugin_that_is_missing_at_del_is_waited_for(pods):
    d = pods()
    pod = d.cri.run()
    (d.bin / "portmap").rename(d.dir / "portmap")
    code, text = refused(d.cri.stop, pod)
    assert code == "INTERNAL" and 'failed to find plugin "portmap"' in text
    (d.dir / "portmap").rename(d.bin / "portmap")
    wait_until(lambda: d.cri.info(pod)["state"] == "stopped")


def test_no_plugin_runs_while_serve_cannot_be_started(pods):
    d = pods()
    pod = d.cri.run()
    before = d.calls("")
    program = d.bin / "hawser-plugin"
    program.rename(d.dir / "hawser-plugin")
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    for code, text in (refused(d.cri.stop, pod), refused(d.cri.run, "b")):
        assert code == "UNAVAILABLE" and "hawser-plugin serve did not become ready" in text, text
        assert "it is started again after 5 s" in text
    assert d.calls("") == before  # a plugin of a killed daemon would be unknown to the next one
    (d.dir / "hawser-plugin").rename(program)
    wait_until(lambda: d.cri.info(pod)["state"] == "stopped" and d.cri.ids() == [pod], d.log)
    d.cri.run("b")


@contextlib.contextmanager
def locked(d):
    """Another program has locked the database, as a backup might."""
    with d.database() as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.rollback()


@pytest.mark.parametrize("what", ["stop", "failed create"])
def test_the_last_step_is_repeated_in_the_background_if_it_cannot_be_stored(pods, what):
    d = pods()
    pod = d.cri.run("a")
    d.direct("DEL.pause")
    d.direct("ADD.fail", "no more room")
    call = d.cri.start("StopPodSandbox", pod_sandbox_id=pod) if what == "stop" else d.cri.start_run("b")
    d.wait_for_call("DEL", 1)
    with locked(d):
        d.undirect()
        assert ("no more room" if what == "failed create" else "database is locked") in call.exception(60).details()
        d.logged("database is locked")
    if what == "stop":
        wait_until(lambda: d.cri.info(pod)["state"] == "stopped", d.log)
    else:
        wait_until(lambda: d.cri.ids() == [pod], d.log)


def test_plugins_that_hang_in_the_background_do_not_delay_other_work_there(pods):
    d = pods()
    hung, other = [d.cri.run("hung%d" % i) for i in range(12)], d.cri.run("other", pid=0)
    d.direct("DEL.fail", "not now")
    for pod in hung:
        assert refused(d.cri.stop, pod)[0] == "INTERNAL"
    before = d.calls("DEL")
    d.direct("DEL.hang")
    d.wait_for_call("DEL", before + 6)  # more of them do not run at once
    os.kill(d.cri.info(other)["pid"], signal.SIGKILL)
    wait_until(lambda: d.cri.status(other).state == NOTREADY, d.log)
    d.undirect()
    # the plugins that hang are killed
    for pod in (*hung, other):
        wait_until(lambda pod=pod: d.cri.info(pod)["state"] == "stopped", d.log)


# ---- plugins that misbehave ------------------------------------------------------------------------

BAD = {"die": ("", "killed"), "flood": (str(100 << 20), "output"), "print": ("{", "")}


@pytest.mark.parametrize("how", BAD)
def test_a_create_fails_and_leaves_nothing_if_a_plugin(pods, how):
    d = pods()
    d.direct("ADD." + how, BAD[how][0])
    before = rss(d)
    code, text = refused(d.cri.run)
    assert code == "INTERNAL" and text.startswith('network "pods": ') and BAD[how][1] in text
    assert rss(d) < before + (20 << 10) and not d.leftovers()
    d.undirect()
    d.cri.run()


@pytest.mark.parametrize("how", ["die", "flood"])
def test_a_stop_fails_and_can_be_repeated_if_a_plugin(pods, how):
    d = pods()
    pod = d.cri.run()
    d.direct("DEL." + how, BAD[how][0])
    assert refused(d.cri.stop, pod)[0] == "INTERNAL"
    d.undirect()
    d.cri.stop(pod)


def rss(d):
    """Resident memory of the daemon, in KB."""
    status = pathlib.Path("/proc/%d/status" % d.process.pid).read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def test_a_plugin_that_hangs_is_killed_after_the_timeout(pods):
    d = pods("--network-timeout", "1")
    d.direct("ADD.hang")
    code, text = refused(d.cri.run)
    assert code == "INTERNAL" and "timed out" in text
    assert not os.path.exists("/proc/%d" % d.called("ADD")["pid"]) and not d.leftovers()


def test_a_create_whose_plugin_hangs_in_every_command_returns_the_first_error_in_time(pods):
    d = pods("--network-timeout", "1")
    d.direct("ADD.hang")
    d.direct("DEL.hang")
    call = d.cri.start_run(timeout=20)  # a plugin has longer than that for a DEL, but not before the answer
    error = call.exception(LONG)
    assert error.code().name == "INTERNAL" and error.details().startswith(
        'network "pods": plugin type="control" failed (add): netplugin failed with no error message: timed out'), error
    (pod,) = d.cri.ids()
    assert d.cri.info(pod)["state"] == "removing"
    d.undirect()
    kill_hanging(d)
    wait_until(lambda: not d.cri.ids(), d.log)
    assert not d.leftovers()


def test_a_stop_that_cancels_a_create_does_not_wait_for_an_undo_that_hangs(pods):
    d = pods()
    d.direct("ADD.hang")
    d.direct("DEL.hang")
    call = d.cri.start_run(timeout=2 * LONG)
    d.wait_for_call("ADD")
    (pod,) = d.cri.ids()
    stop = d.cri.start("StopPodSandbox", timeout=2 * LONG, pod_sandbox_id=pod)
    d.wait_for_call("DEL", 1)
    kill_hanging(d)  # the undo by the library; the next one is by the daemon
    d.wait_for_call("DEL", 2)
    assert call.exception(LONG).code().name == "CANCELLED"  # the undo would have minutes otherwise
    d.undirect()
    kill_hanging(d)
    wait_until(lambda: not d.cri.ids(), d.log)
    assert stop.exception(LONG) is None or stop.exception().code().name == "INTERNAL"


@pytest.mark.parametrize("command", ["ADD", "DEL"])
def test_plugins_that_hang_delay_no_other_pod(pods, command):
    d = pods()
    waiting = []
    if command == "DEL":
        hung = [d.cri.run("hung%d" % i) for i in range(20)]
        d.direct("DEL.hang")
        waiting = [d.cri.start("StopPodSandbox", pod_sandbox_id=pod) for pod in hung]
    else:
        d.direct("ADD.hang")
        waiting = [d.cri.start_run("hung%d" % i) for i in range(20)]
        wait_until(lambda: len(d.cri.ids()) == 20)
        hung = d.cri.ids()
    d.wait_for_call(command, 20)
    d.undirect()
    pod = d.cri.run("free")
    assert d.cri.status(pod).state == READY and len(d.cri.list()) == 21
    assert d.cri.run("free") == pod
    d.cri.stop(pod)
    d.cri.remove(pod)
    assert not any(w.done() for w in waiting)
    if command == "ADD":
        for pod in hung:
            d.cri.stop(pod)
        assert {w.exception(60).code().name for w in waiting} == {"CANCELLED"}
    else:
        kill_hanging(d)
        for pod in hung:
            d.cri.remove(pod)


def test_creates_that_hang_leave_room_for_every_other_call(pods):
    d = pods("--long-calls", "40")
    other = d.cri.run("other")
    d.direct("ADD.hang")
    waiting = [d.cri.start_run("hung%d" % i) for i in range(50)]
    wait_until(lambda: sum(w.done() for w in waiting) + d.calls("ADD") - 1 == len(waiting), d.log)
    assert {w.code().name for w in waiting if w.done()} == {"RESOURCE_EXHAUSTED"}
    assert d.cri.status(other).state == READY
    d.cri.stop(other)
    d.cri.remove(other)
    for pod in d.cri.ids():
        d.cri.remove(pod)
    assert {w.exception(60).code().name for w in waiting} == {"RESOURCE_EXHAUSTED", "CANCELLED"}


def kill_hanging(d):
    """Kills all plugins that hang."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(d.bin / "control") in (path / "cmdline").read_text():
                os.kill(int(path.name), 9)
        except OSError:
            pass


def test_a_stop_that_waits_for_another_operation_ends_at_its_deadline(pods):
    d = pods()
    pod = d.cri.run()
    d.direct("DEL.hang")
    first = d.cri.start("StopPodSandbox", pod_sandbox_id=pod)
    d.wait_for_call("DEL")
    second = d.cri.start("StopPodSandbox", timeout=0.5, pod_sandbox_id=pod)
    assert second.exception(60).code().name == "DEADLINE_EXCEEDED"
    d.undirect()
    kill_hanging(d)
    assert first.exception(60).code().name == "INTERNAL"
    d.cri.stop(pod)


# ---- the end of the daemon -------------------------------------------------------------------------

@pytest.mark.parametrize("command", ["ADD", "DEL", "DEL in the background"])
def test_the_daemon_stops_in_time_while_a_plugin_hangs(pods, command):
    # the daemon does not wait for its threads, because some of them hang
    leak = {"TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0"}
    d = pods("--drain-timeout", "0", env=leak)
    waiting = None
    if command == "ADD":
        d.direct("ADD.hang")
        waiting = d.cri.start_run()
    else:
        pod = d.cri.run()
        d.direct("DEL.fail", "not now")
        assert refused(d.cri.stop, pod)
        tries = d.calls("DEL")
        d.undirect()
        d.direct("DEL.hang")
        if command == "DEL":
            waiting = d.cri.start("StopPodSandbox", pod_sandbox_id=pod)
    d.wait_for_call(command[:3], 1 if command == "ADD" else tries + 1)
    pid = d.called(command[:3])["pid"]
    d.process.terminate()
    assert d.process.wait(20) == 0, d.log()
    d.process = None
    assert not waiting or waiting.exception(60)
    wait_until(lambda: not os.path.exists("/proc/%d" % pid))
    d.undirect()
    d.start()
    if command == "ADD":
        wait_until(lambda: not d.leftovers())
    else:
        wait_until(lambda: d.cri.info(pod)["state"] == "stopped")
