# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_gc.py - attachments that no pod has any more are deleted when the daemon starts
"""
import json
import os
import shutil

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from cridaemon import BUILD
from hawsercli import hawser
from poddaemon import NETNS, READY, connect, leases, pods, run  # noqa: F401, pods is a fixture
from test_pods_network import BUILT_IN_LEASES
from waiting import LONG, wait_until


def forget(d, pod):
    """After this, only the plugins and their cache know the pod, as after a restored backup of the disk."""
    with d.database() as db:
        db.execute("DELETE FROM pods WHERE id = ?", (pod,))
        db.commit()
    run("umount", NETNS / ("hawser-" + pod))
    (NETNS / ("hawser-" + pod)).unlink()
    for name in ("shm", "ipc", "uts"):
        run("umount", d.state / "pods" / pod / name)
    shutil.rmtree(d.state / "pods" / pod)


def cnitool(d, command, name):
    """Another runtime, which uses the same networks and the same cache."""
    words = [BUILD / "bin/cnitool", "--cache-dir", d.dir / "cache", command, "pods", "/run/netns/" + name]
    env = {**os.environ, "NETCONFPATH": str(d.net), "CNI_PATH": str(d.bin), "HAWSER_STATE": str(d.state)}
    run(*words, env=env)


def killed(d, *pods_):
    """Kills the daemon and removes the traces of pods."""
    d.kill()
    for pod in pods_:
        forget(d, pod)


def test_attachments_of_pods_that_are_gone_are_deleted_and_no_others(pods):
    d = pods(config="gc-networks: [pods]\n")
    gone, kept = d.cri.run("a"), d.cri.run("b")
    run("ip", "netns", "add", "theirs")
    cnitool(d, "add", "theirs")
    before = d.leased()
    address = d.cri.address(gone)
    killed(d, gone)
    d.start()
    wait_until(lambda: address not in d.leased(), d.log)
    assert d.leased() == sorted(set(before) - {address}) and len(before) == 3
    assert connect("host", kept, d.cri.address(kept), 80)
    assert d.cri.ids() == [kept] and d.calls("DEL", gone) == 1 and d.calls("DEL", kept) == 0
    cnitool(d, "del", "theirs")
    run("ip", "netns", "delete", "theirs")


def test_networks_that_are_not_listed_are_left_alone(pods):
    d = pods()
    pod = d.cri.run()
    address = d.cri.address(pod)
    killed(d, pod)
    d.start()
    d.cri.run("b")
    assert d.calls("DEL", pod) == 0 and address in d.leased()
    d.config.write_text("gc-networks: [pods]\n")
    d.restart()
    wait_until(lambda: address not in d.leased(), d.log)


def test_an_unknown_network_is_reported_and_the_others_are_collected(pods):
    d = pods(config="gc-networks: [none, pods]\n")
    pod = d.cri.run()
    killed(d, pod)
    d.start()
    wait_until(lambda: d.leased() == [], d.log)
    assert 'no net configuration with name "none"' in d.log()


def test_attachments_of_the_built_in_network_are_collected_without_being_listed(pods):
    d = pods("--default-network", "true", network=False)
    pod = d.cri.run()
    assert len(leases(BUILT_IN_LEASES)) == 2
    killed(d, pod)
    d.start()
    wait_until(lambda: leases(BUILT_IN_LEASES) == [], d.log)
    run("ip", "link", "delete", "hawser0")


def test_attachments_of_the_network_from_the_template_are_collected_without_being_listed(pods):
    d = pods(network=False, start=False)
    conf = d.conflist("rendered")
    del conf["plugins"][0]["capabilities"]["ipRanges"]
    (d.dir / "template").write_text(json.dumps(conf).replace(d.subnet, "{{.PodCIDR}}"))
    d.command += ["--cni-conf-template", d.dir / "template"]
    d.start()
    d.cri.call("UpdateRuntimeConfig", runtime_config={"network_config": {"pod_cidr": "10.97.0.0/24"}})
    wait_until(lambda: d.network()[0])
    pod, kept = d.cri.run("a"), d.cri.run("b")
    assert d.cri.address(pod).startswith("10.97.0.")
    killed(d, pod)
    d.start()
    wait_until(lambda: d.leased() == [d.cri.address(kept)], d.log)


def test_a_pod_whose_create_runs_during_the_collection_keeps_its_attachments(pods):
    d = pods(config="gc-networks: [pods]\n")
    gone = d.cri.run("a")
    killed(d, gone)
    d.direct("DEL.pause")
    d.start()
    d.wait_for_call("DEL")
    new = d.cri.start_run("b")
    d.undirect()
    pod = new.result(LONG).pod_sandbox_id
    wait_until(lambda: d.leased() == [d.cri.address(pod)], lambda: "%s\n%s" % (d.leased(), d.log()))
    assert connect("host", pod, d.cri.address(pod), 80) and d.calls("DEL", pod) == 0


def test_a_del_that_hangs_during_the_collection_delays_no_other_pod(pods):
    d = pods(config="gc-networks: [pods]\n")
    gone, other = d.cri.run("a"), d.cri.run("b")
    address = d.cri.address(gone)
    killed(d, gone)
    d.direct("DEL.hang")
    d.start()
    d.wait_for_call("DEL")
    d.undirect()
    assert d.cri.status(d.cri.run("c")).state == READY
    d.cri.remove(other)
    assert d.calls("DEL", gone) == 1 and address in d.leased()
    d.logged("delete attachment %s eth0: network \"pods\": " % gone)  # the plugin was killed
    assert hawser("--runtime", "unix:" + d.socket, "network", "gc")[0] == 0
    assert d.calls("DEL", gone) == 2 and address not in d.leased()


def test_a_plugin_that_hangs_in_the_collection_delays_other_pods_for_seconds_only(pods):
    d = pods(config="gc-networks: [pods]\n")
    d.write_network(d.conflist(cniVersion="1.1.0"))  # plugins of earlier versions have no GC
    d.direct("GC.hang")
    d.restart()
    d.wait_for_call("GC")
    wait_until(lambda: d.network()[0], d.log)
    pod = d.cri.start_run(timeout=25).result().pod_sandbox_id  # the plugin alone would hold the network for 30 s
    d.logged('GC of network "pods": failed to GC plugin control: ')
    d.cri.start("StopPodSandbox", timeout=25, pod_sandbox_id=pod).result()
    status, _, errors = hawser("--runtime", "unix:" + d.socket, "network", "gc")
    assert status == 1 and "failed to GC plugin control" in errors and d.calls("GC") == 2
    d.undirect()
    assert hawser("--runtime", "unix:" + d.socket, "network", "gc")[0] == 0 and d.calls("GC") == 3


def test_the_daemon_stops_in_time_while_a_del_of_the_collection_hangs(pods):
    d = pods(config="gc-networks: [pods]\n")
    killed(d, *[d.cri.run(name) for name in "abc"])
    d.direct("DEL.hang")
    d.start()
    d.wait_for_call("DEL")
    d.process.terminate()
    assert d.process.wait(20) == 0, d.log()
    d.process = None
    d.undirect()
    d.start()
    wait_until(lambda: d.leased() == [], d.log)
