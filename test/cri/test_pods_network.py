# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_pods_network.py - the networks of pods: what plugins are told, further networks, the built-in network,
configurations that are broken or replaced
"""
import json
import pathlib

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from poddaemon import (NETNS, READY, connect, in_namespace, leases, pods, refused,
                       run)  # noqa: F401, pods is a fixture
from waiting import wait_until

BUILT_IN_LEASES = pathlib.Path("/var/lib/cni/networks")

SLOW = """#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exit 0
sleep 2 # the interval of an ADD
echo '{"cniVersion": "1.0.0"}'
"""


def links(pod):
    """The interfaces of a pod: {name: {"address": MAC address, "addr_info": ...}}."""
    text = in_namespace(NETNS / ("hawser-" + pod), "ip", "-j", "address")
    return {link["ifname"]: link for link in json.loads(text)}


# ---- arguments -------------------------------------------------------------------------------------

def test_plugins_get_the_arguments_of_the_pod(pods):
    d = pods()
    pod = d.cri.run("web")
    call = d.called("ADD")
    assert call["env"]["CNI_ARGS"] == (
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=%s;"
        "K8S_POD_UID=web-uid" % pod)
    assert call["env"]["CNI_CONTAINERID"] == pod and call["env"]["CNI_IFNAME"] == "eth0"
    assert call["env"]["CNI_NETNS"] == "/run/netns/hawser-" + pod
    assert call["env"]["HAWSER_STATE"] == str(d.state)
    d.cri.stop(pod)
    assert d.called("DEL")["env"]["CNI_ARGS"] == call["env"]["CNI_ARGS"]


def test_plugins_get_the_capabilities_that_they_declare(pods):
    d = pods("--cgroup-driver", "cgroupfs", start=False)
    conf = d.conflist()
    del conf["plugins"][0]["ipam"]["ranges"]  # the only range is that of the node
    d.write_network(conf)
    d.start()
    d.cri.call("UpdateRuntimeConfig", runtime_config={"network_config": {"pod_cidr": "10.99.7.0/24"}})
    dns = {"servers": ["10.0.0.10"], "searches": ["a.test"], "options": ["ndots:5"]}
    annotations = {"kubernetes.io/ingress-bandwidth": "1M", "kubernetes.io/egress-bandwidth": "80M"}
    ports = [{"host_port": 8080, "container_port": 80, "host_ip": "127.0.0.1"},
             {"host_port": 53, "container_port": 53, "protocol": 1}, {"host_port": 0, "container_port": 9}]
    pod = d.cri.run("web", hostname="host", dns_config=dns, annotations=annotations, port_mappings=ports)
    assert d.called("ADD")["conf"]["runtimeConfig"] == {
        "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "127.0.0.1"},
                         {"hostPort": 53, "containerPort": 53, "protocol": "udp"}],
        "bandwidth": {"ingressRate": 10**6, "ingressBurst": 2 << 20, "egressRate": 8 * 10**7,
                      "egressBurst": 10**7},
        "dns": dns, "ipRanges": [[{"subnet": "10.99.7.0/24"}]], "aliases": ["host", "web"],
        "cgroupPath": "/hawser/" + pod, "io.kubernetes.cri.pod-annotations": annotations}
    assert d.cri.address(pod).startswith("10.99.7.")


def test_a_pod_gets_the_addresses_and_the_mac_address_of_its_annotations(pods):
    d = pods()
    pod = d.cri.run(annotations={"io.hawser.ips": "10.88.3.3", "io.hawser.mac": "02:00:00:00:00:33"})
    assert d.cri.address(pod) == "10.88.3.3" and links(pod)["eth0"]["address"] == "02:00:00:00:00:33"


def test_a_pod_has_further_networks(pods):
    d = pods()
    for name, subnet in (("blue", "10.91.0.0/24"), ("red", "10.92.0.0/24")):
        d.write_network({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "ptp", "ipam": {
            "type": "host-local", "dataDir": str(d.leases), "subnet": subnet}}]}, "50-%s.conflist" % name)
    pod = d.cri.run(annotations={"io.hawser.networks": "blue,red@data"},
                    port_mappings=[{"host_port": 8080, "container_port": 80}])
    assert set(links(pod)) == {"lo", "eth0", "net1", "data"}
    assert set(d.cri.info(pod)["cniResult"]) == {"eth0", "net1", "data"}
    assert d.cri.address(pod).startswith("10.88.") and not d.cri.status(pod).network.additional_ips
    assert len(d.leased()) == 3
    d.cri.stop(pod)
    assert d.leased() == []


def test_a_network_that_fails_takes_the_other_networks_of_the_pod_along(pods):
    d = pods()
    d.write_network({"cniVersion": "1.0.0", "name": "blue", "plugins": [{"type": "ptp", "ipam": {
        "type": "host-local", "dataDir": str(d.leases), "subnet": "10.91.0.0/32"}}]}, "50-blue.conflist")
    code, text = refused(d.cri.run, annotations={"io.hawser.networks": "blue"})
    assert code == "INTERNAL" and text.startswith('network "blue": ')
    assert d.cri.ids() == [] and not d.leftovers()


def test_the_timeout_applies_to_all_networks_of_a_pod_together(pods):
    d = pods("--network-timeout", "3")
    (d.bin / "slow").write_text(SLOW)
    (d.bin / "slow").chmod(0o755)
    for name in ("one", "two"):
        d.write_network({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": "slow"}]}, "50-%s.conflist" % name)
    code, text = refused(d.cri.run, annotations={"io.hawser.networks": "one,two"})
    assert code == "INTERNAL" and "timed out" in text and not d.leftovers()


def test_the_first_address_is_ipv4_and_the_others_are_in_the_order_of_the_result(pods):
    d = pods(network=False)
    conf = d.conflist()
    subnets = ("fd00:9::/64", "10.88.0.0/24", "10.89.0.0/24", "fd00:8::/64")
    conf["plugins"][0].update(isGateway=False, ipMasq=False)
    conf["plugins"][0]["ipam"].update(ranges=[[{"subnet": s}] for s in subnets], routes=[])
    d.write_network(conf)
    wait_until(lambda: d.network()[0])
    pod = d.cri.run("a", hostname="web")

    def addresses():
        network = d.cri.status(pod).network
        return [network.ip, *[ip.ip for ip in network.additional_ips]]
    assert addresses() == ["10.88.0.2", "fd00:9::2", "10.89.0.2", "fd00:8::2"]
    hosts = (d.state / "pods" / pod / "hosts").read_text().splitlines()
    assert hosts[-4:] == ["%s\tweb" % address for address in addresses()]
    before = addresses()
    d.restart()
    assert addresses() == before


# ---- which network ---------------------------------------------------------------------------------

def test_without_a_network_only_pods_of_the_hosts_network_are_created(pods):
    d = pods(network=False)
    code, text = refused(d.cri.run)
    assert code == "UNAVAILABLE" and text.startswith("the network is not ready: ") and str(d.net) in text
    assert d.cri.status(d.cri.run("host", network=2)).state == READY
    d.write_network()
    wait_until(lambda: d.network()[0])
    d.cri.run()


def test_the_built_in_network_has_both_families_while_no_other_is_configured(pods):
    d = pods("--default-network", "true", network=False)
    assert d.network() == (True, "")
    a, b = (d.cri.run(n, port_mappings=[{"host_port": 8080, "container_port": 80}] if n == "a" else [])
            for n in "ab")
    status = d.cri.status(a)
    assert status.network.ip.startswith("10.85.")
    (other,) = status.network.additional_ips
    assert other.ip.startswith("fd68:6177:7365:7200:")
    assert connect(b, a, status.network.ip, 80) and connect(b, a, other.ip, 80)
    assert connect("host", a, "10.85.0.1", 8080, 80)
    assert len(leases(BUILT_IN_LEASES)) == 4
    for pod in (a, b):
        d.cri.remove(pod)
    assert leases(BUILT_IN_LEASES) == []
    d.write_network()
    d.logged("network ready network=pods")
    assert d.cri.address(d.cri.run("c")).startswith("10.88.")
    run("ip", "link", "delete", "hawser0")


def test_a_broken_file_is_named_and_the_last_good_network_stays_in_use(pods):
    d = pods()
    file = d.net / "10-pods.conflist"
    first = d.cri.run("a")
    d.write_network('{"cniVersion": "1.0.0", "name": "pods", "plugins": [')
    d.logged("invalid network configuration")
    ready, message = d.network()
    assert ready and message.startswith("invalid configuration: %s: " % file)
    assert 'using network "pods" of %s' % file in message
    second = d.cri.run("b")
    assert connect(second, first, d.cri.address(first), 80)
    (d.net / "05-bad.conflist").write_text("[]")
    wait_until(lambda: str(d.net / "05-bad.conflist") in d.network()[1])
    d.restart()  # the network in use was known to the daemon that has ended
    assert refused(d.cri.run, "c")[0] == "UNAVAILABLE" and str(file) in d.network()[1]
    for pod in (first, second):
        d.cri.stop(pod)
    assert d.leased() == []
    d.write_network()
    (d.net / "05-bad.conflist").unlink()
    wait_until(lambda: d.network() == (True, ""))


def test_the_last_good_network_stays_known_while_one_of_its_plugins_is_missing(pods):
    d = pods()
    d.write_network("{")
    d.logged("invalid network configuration")
    (d.bin / "portmap").rename(d.dir / "portmap")
    wait_until(lambda: 'plugin "portmap" not found' in d.network()[1])
    assert refused(d.cri.run)[0] == "UNAVAILABLE"
    (d.dir / "portmap").rename(d.bin / "portmap")
    wait_until(lambda: d.network()[0])
    d.cri.run()


def test_a_network_whose_plugin_is_missing_is_not_used(pods):
    d = pods()
    (d.bin / "portmap").rename(d.dir / "portmap")
    wait_until(lambda: 'plugin "portmap" not found' in d.network()[1])
    assert refused(d.cri.run)[0] == "UNAVAILABLE"
    (d.dir / "portmap").rename(d.bin / "portmap")
    wait_until(lambda: d.network()[0])
    d.cri.run()


def test_a_pod_is_detached_from_the_network_that_it_was_attached_to(pods):
    d = pods()
    pod = d.cri.run()
    d.write_network({"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "loopback"}]})
    d.logged("network ready network=other")
    d.cri.stop(pod)
    assert d.called("DEL")["conf"]["name"] == "pods" and d.leased() == []
