# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_network.py - hawser network ls, check and gc, with hawser-cri and real pods
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from cridaemon import BUILD
from hawsercli import hawser
from poddaemon import NETNS, pods, run  # noqa: F401, pods is a fixture
from test_hawser_cli import complete
from waiting import wait_until

PLUGINS = ["bridge", "portmap", "control"]


def command(d, *words):
    return hawser("--runtime", "unix:" + d.socket, *words)


def networks(d):
    """The networks that are listed, by name; those without a name by file."""
    status, text, errors = command(d, "network", "ls", "--json")
    assert (status, errors) == (0, "")
    return {n["name"] or n["file"]: n for n in json.loads(text)["networks"]}


def other(d, name="blue", plugin="ptp", subnet="10.91.0.0/24", **more):
    return {"cniVersion": "1.0.0", "name": name, "plugins": [{"type": plugin, "ipam": {
        "type": "host-local", "dataDir": str(d.leases), "subnet": subnet}}], **more}


def row(d, name):
    """The columns of a row of the table: a list."""
    (line,) = [line for line in command(d, "network", "ls")[1].splitlines() if line.startswith(name + " ")]
    return re.split(r"  +", line)


# ---- ls --------------------------------------------------------------------------------------------

def test_the_network_in_use_is_listed_with_its_plugins_file_and_pods(pods):
    d = pods()
    file = d.net / "10-pods.conflist"
    assert networks(d) == {"pods": {
        "name": "pods", "file": str(file), "cniVersion": "1.0.0", "plugins": PLUGINS, "inUse": True, "ready": True,
        "message": "", "pods": 0}}
    pod = d.cri.run()
    d.cri.run("host", network=2)
    assert row(d, "pods") == ["pods", "in use", "1", " ".join(PLUGINS), str(file)]
    d.cri.stop(pod)
    assert networks(d)["pods"]["pods"] == 0


def test_a_network_with_a_missing_plugin_is_listed_as_not_ready_with_the_reason(pods):
    d = pods()
    (d.bin / "portmap").rename(d.dir / "portmap")
    wait_until(lambda: not d.network()[0])
    reason = '%s: plugin "portmap" not found in %s' % (d.net / "10-pods.conflist", d.bin)
    assert networks(d)["pods"]["message"] == reason and networks(d)["pods"]["plugins"] == PLUGINS
    assert row(d, "pods")[1] == "in use, not ready"
    assert command(d, "network", "ls")[1].endswith("\n\npods: %s\n" % reason)
    (d.dir / "portmap").rename(d.bin / "portmap")


def test_files_besides_that_of_the_network_in_use_are_listed(pods):
    d = pods()
    d.write_network(other(d), "50-blue.conflist")
    d.write_network(other(d, "red", "none"), "60-red.conflist")
    d.write_network(other(d, "pods"), "70-again.conflist")
    d.write_network("{", "80-bad.conflist")
    listed = json.loads(command(d, "network", "ls", "--json")[1])["networks"]
    assert [(n["name"], n["file"], n["ready"], n["inUse"]) for n in listed] == [
        (name, str(d.net / file), ready, i == 0) for i, (name, file, ready) in enumerate([
            ("pods", "10-pods.conflist", True), ("blue", "50-blue.conflist", True), ("red", "60-red.conflist", False),
            ("pods", "70-again.conflist", False), ("", "80-bad.conflist", False)])]
    assert listed[2]["message"] == '%s: plugin "none" not found in %s' % (d.net / "60-red.conflist", d.bin)
    assert listed[3]["message"] == 'network "pods" is defined in %s' % (d.net / "10-pods.conflist")
    assert listed[4]["message"].startswith("%s: " % (d.net / "80-bad.conflist"))
    assert [row(d, name)[1] for name in ("blue", "red", "-")] == ["ready", "not ready", "invalid"]


def test_a_broken_file_is_listed_beside_the_network_that_stays_in_use(pods):
    d = pods()
    d.write_network("{")
    d.logged("invalid network configuration")
    listed = networks(d)
    assert listed["pods"]["inUse"] and listed["pods"]["ready"] and listed["pods"]["plugins"] == PLUGINS
    assert not listed[str(d.net / "10-pods.conflist")]["ready"]


def test_a_network_whose_file_was_deleted_is_listed_while_pods_are_attached(pods):
    d = pods()
    d.write_network(other(d), "50-blue.conflist")
    pod = d.cri.run(annotations={"io.hawser.networks": "blue"})
    (d.net / "50-blue.conflist").unlink()
    blue = networks(d)["blue"]
    assert (blue["file"], blue["plugins"], blue["pods"], blue["ready"]) == ("", ["ptp"], 1, False)
    assert "\n\nblue: no file defines it any more\n" in command(d, "network", "ls")[1]
    d.cri.stop(pod)
    assert list(networks(d)) == ["pods"]


def test_without_a_configuration_the_built_in_network_is_listed_or_none(pods):
    assert command(pods(network=False), "network", "ls") == (0, "NETWORK  STATE  PODS  PLUGINS  FILE\n", "")
    d = pods("--default-network", "true", name="two", network=False)
    hawser_network = networks(d)["hawser"]
    assert hawser_network["file"] == "built in" and hawser_network["plugins"] == [
        "bridge", "portmap", "firewall", "bandwidth"]


# ---- check -----------------------------------------------------------------------------------------

def test_check_tells_which_pods_have_a_changed_network(pods):
    d = pods()
    web = d.cri.run("web")
    d.cri.run("host", network=2)
    assert sorted(command(d, "network", "check")[1].splitlines()) == [
        "host: not checked: it has no network with CHECK", "web: unchanged (pods)"]
    run("ip", "-n", "hawser-" + web, "address", "flush", "dev", "eth0")
    status, text, errors = command(d, "network", "check")
    assert (status, text) == (1, "host: not checked: it has no network with CHECK\n")
    assert errors.startswith('hawser: pod "web": network "pods": ') and len(errors.splitlines()) == 1
    assert command(d, "network", "check", "web")[0] == 1 and command(d, "network", "check", "host")[0] == 0


def test_check_names_the_networks_that_it_has_checked(pods):
    d = pods()
    d.write_network(other(d), "50-blue.conflist")
    d.write_network(other(d, "red", subnet="10.92.0.0/24", disableCheck=True), "60-red.conflist")
    pod = d.cri.run("web", annotations={"io.hawser.networks": "blue,red"})
    assert command(d, "network", "check", pod[:12]) == (0, "%s: unchanged (pods blue)\n" % pod[:12], "")
    assert json.loads(command(d, "network", "check", "--json")[1]) == {
        "unchanged": [{"networks": ["pods", "blue"], "id": pod}]}


def test_check_of_a_stopped_pod_fails_and_without_a_name_it_is_left_out(pods):
    d = pods()
    pod = d.cri.run("web")
    d.cri.stop(pod)
    status, text, errors = command(d, "network", "check", "web", "none")
    assert (status, text) == (1, "") and 'hawser: pod "web": pod %s is stopped\n' % pod in errors
    assert 'hawser: pod "none": not found\n' in errors
    assert command(d, "network", "check") == (0, "", "")


# ---- gc --------------------------------------------------------------------------------------------

def lose(d, pod):
    """Kills the daemon, and removes everything of a pod but its attachment."""
    d.kill()
    with d.database() as db:
        db.execute("DELETE FROM pods WHERE id = ?", (pod,))
        db.commit()
    directory = d.state / "pods" / pod
    for pin in (NETNS / ("hawser-" + pod), *directory.iterdir()):
        subprocess.run(["umount", pin], stderr=subprocess.DEVNULL)
    (NETNS / ("hawser-" + pod)).unlink()
    shutil.rmtree(directory)
    d.start()


@contextlib.contextmanager
def attachment_of_another_runtime(d):
    """Attaches a namespace with cnitool, which shares directories with the daemon. Returns its address."""
    env = {**os.environ, "CNI_PATH": str(d.bin), "NETCONFPATH": str(d.net), "HAWSER_STATE": str(d.state)}
    tool = [BUILD / "bin/cnitool", "--cache-dir", d.dir / "cache"]
    run("ip", "netns", "add", "foreign")
    result = run(*tool, "add", "pods", "/run/netns/foreign", env=env)
    yield json.loads(result)["ips"][0]["address"].partition("/")[0]
    run(*tool, "del", "pods", "/run/netns/foreign", env=env)
    run("ip", "netns", "delete", "foreign")


def test_gc_deletes_only_attachments_that_no_pod_and_no_other_runtime_has(pods):
    d = pods()
    dead = d.cri.run("dead")
    address = d.cri.address(dead)
    lose(d, dead)
    pod = d.cri.run("alive")
    with attachment_of_another_runtime(d) as foreign:
        assert sorted(d.leased()) == sorted([address, d.cri.address(pod), foreign])
        assert command(d, "network", "gc", "pods") == (0, "collected pods\n", "")
        assert sorted(d.leased()) == sorted([d.cri.address(pod), foreign])
        assert json.loads(command(d, "network", "gc", "--json", "pods")[1]) == {"networks": ["pods"]}


def test_without_a_name_gc_collects_the_networks_of_hawser_cri(pods):
    d = pods()
    dead = d.cri.run("dead")
    lose(d, dead)
    status, text, errors = command(d, "network", "gc")
    assert (status, errors) == (0, "") and text.startswith("no network belongs to hawser-cri alone: ")
    assert d.leased()
    d.config.write_text("gc-networks: [pods]\n")
    d.signal(signal.SIGHUP)
    d.logged("configuration reloaded")
    assert command(d, "network", "gc") == (0, "collected pods\n", "") and not d.leased()


def test_gc_of_an_unknown_network_fails_and_the_others_are_collected(pods):
    d = pods()
    status, text, errors = command(d, "network", "gc", "none", "pods")
    assert (status, text) == (1, "collected pods\n")
    assert errors.startswith("hawser: ") and '"none"' in errors
    d.direct("DEL.fail", "the switch is away")
    dead = d.cri.run("dead")
    lose(d, dead)
    status, text, errors = command(d, "network", "gc", "pods")
    assert (status, text) == (1, "") and "the switch is away" in errors
    d.undirect()
    assert command(d, "network", "gc", "pods")[0] == 0


# ---- completion ------------------------------------------------------------------------------------

def test_networks_are_completed_by_name(pods):
    d = pods()
    d.write_network(other(d), "50-blue.conflist")
    d.write_network("{", "80-bad.conflist")
    given = ["--runtime", "unix:" + d.socket, "network"]
    assert complete(*given, "gc", "") == ["pods", "blue"] and complete(*given, "gc", "bl") == ["blue"]
