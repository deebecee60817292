# SPDX-License-Identifier: Apache-2.0
"""
test/system/test_traffic.py - connectivity and source addresses between all places, compared with upstream

What:  two hosts, each a namespace with its own pods and a neighbour; one has our plugins, the other
       Debian's package of upstream's plugins. Every row of MATRIX is one request, from one place to
       an address and a port, sent by TCP and UDP, IPv4 and IPv6. The answer is which server received
       it and the source address that it saw.
How:   all sockets belong to this process, which creates each in its namespace; all requests are
       sent at the same time. A request counts as answered only when the reply came back.
       Pods a and b are on one bridge with ipMasq, c is on a bridge without ipMasq, p and q use ptp
       with ipMasq; d and e are on one bridge and f on another, both with ingressPolicy same-bridge;
       g and h are on a bridge with ingressPolicy isolated.
Rules: our answers are those in MATRIX. Upstream's are the same, except for the rows in DIFFERENT,
       each with its reason, as in docs/compatibility.md.
"""
import concurrent.futures
import ctypes
import errno
import ipaddress
import json
import os
import pathlib
import selectors
import shutil
import socket
import subprocess
import time

import pytest

OURS = pathlib.Path(os.environ["HAWSER_BUILD"]) / "cni"
UPSTREAM = pathlib.Path("/usr/lib/cni")
for program in ("ip", "nft"):
    if not shutil.which(program):
        pytest.skip(program + " is not installed", allow_module_level=True)

SILENCE = 1.5  # seconds to wait for answers that must not come
TIMEOUT = 20  # seconds to wait for answers that must come
RESEND = 0.5  # seconds after which a lost datagram is sent again

# ---- pods and networks --------------------------------------------------------------------------


def network(name, number, kind="bridge", masq=True, policy=None, hairpin=False):
    """The plugins of a network; its pods are 10.NUMBER.0.2 and so on."""
    first = {"type": kind, "ipMasq": masq, "ipam": {
        "type": "host-local", "dataDir": "DATA",
        "ranges": [[{"subnet": f"10.{number}.0.0/24"}], [{"subnet": f"fd0{number}::/64"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}
    if kind == "bridge":
        first |= {"bridge": name, "isGateway": True, "hairpinMode": hairpin}
    chain = [first, {"type": "portmap"}]
    return chain + ([{"type": "firewall", "ingressPolicy": policy}] if policy else [])


# pod: network, its number, host port
PODS = {"a": ("br1", 1, 8080), "b": ("br1", 1, 8081), "c": ("br2", 2, 8082), "p": ("ptp", 3, 8083),
        "q": ("ptp", 3, 8084), "d": ("br4", 4, 8085), "e": ("br4", 4, 8086), "f": ("br5", 5, 8087),
        "g": ("br6", 6, 8088), "h": ("br6", 6, 8089)}


def networks(hairpin):
    return {"br1": network("br1", 1, hairpin=hairpin),
            "br2": network("br2", 2, masq=False, hairpin=hairpin),
            "ptp": network("ptp", 3, kind="ptp"),
            "br4": network("br4", 4, policy="same-bridge", hairpin=hairpin),
            "br5": network("br5", 5, policy="same-bridge", hairpin=hairpin),
            "br6": network("br6", 6, policy="isolated", hairpin=hairpin)}


# Names of addresses in MATRIX, IPv4 and IPv6
PLACES = {"localhost": ("127.0.0.1", "::1"), "host": ("192.0.2.1", "fd99::1"),
          "outside": ("192.0.2.2", "fd99::2"),
          **{f"bridge{n}": (f"10.{n}.0.1", f"fd0{n}::1") for n in (1, 2, 4, 5, 6)},
          "a": ("10.1.0.2", "fd01::2"), "b": ("10.1.0.3", "fd01::3"), "c": ("10.2.0.2", "fd02::2"),
          "p": ("10.3.0.2", "fd03::2"), "q": ("10.3.0.3", "fd03::3"), "d": ("10.4.0.2", "fd04::2"),
          "e": ("10.4.0.3", "fd04::3"), "f": ("10.5.0.2", "fd05::2"),
          "g": ("10.6.0.2", "fd06::2"), "h": ("10.6.0.3", "fd06::3"),
          "gateway3": ("10.3.0.1", "fd03::1")}
NAMES = {address: name for name, both in PLACES.items() for address in both}

# from, to address, port : which server sees which source; "-": no answer. After a /: the answer if
# rules see bridged frames.
MATRIX = """
    host     localhost  8080   a sees bridge1    # host to a port on localhost
    host     localhost  8083   p sees gateway3
    host     host       8080   a sees host       # host to its own address
    host     bridge1    8080   a sees bridge1
    host     host       8083   p sees host
    host     host       8082   c sees host
    outside  host       8080   a sees outside    # outside to a host port
    outside  host       8081   b sees outside
    outside  host       8082   c sees outside
    outside  host       8083   p sees outside
    outside  host       8085   d sees outside
    outside  a          80     a sees outside    # outside to a pod, directly
    outside  a          8080   -
    outside  host       80     host sees outside # a service of the host itself
    a        host       8080   a sees bridge1    # pod to its own host port
    a        bridge1    8080   a sees bridge1
    c        host       8082   c sees bridge2
    p        host       8083   p sees gateway3
    d        host       8085   d sees bridge4
    a        host       8081   b sees bridge1    # pod to a host port of its neighbour
    p        host       8084   q sees gateway3
    d        host       8086   e sees bridge4
    a        b          80     b sees a          # and directly
    p        q          80     q sees p
    d        e          80     e sees d
    a        host       8082   c sees bridge2    # pod to a host port of another network
    c        host       8080   a sees c
    a        host       8083   p sees gateway3
    c        host       8083   p sees c
    a        c          80     c sees bridge2    # and directly
    c        a          80     a sees c
    c        p          80     p sees c
    a        outside    80     outside sees host # pod to outside, with ipMasq
    p        outside    80     outside sees host
    d        outside    80     outside sees host
    c        outside    80     outside sees c    # and without
    a        outside    8080   outside sees host # other hosts, at the number of a host port
    b        outside    8080   outside sees host
    c        outside    8080   outside sees c
    host     outside    8080   outside sees host
    a        c          8080   -
    host     localhost  80     host sees localhost
    a        localhost  80     -                 # 127/8 of the host, with a route in a
    d        f          80     -                 # networks with ingressPolicy
    f        d          80     -
    d        host       8087   -
    f        host       8085   -
    a        d          80     d sees bridge4
    d        a          80     a sees bridge1
    a        host       8085   d sees bridge4
    g        d          80     -                 # and with ingressPolicy isolated
    d        g          80     -
    g        host       8085   -
    d        host       8088   -
    g        a          80     a sees bridge1
    a        g          80     g sees bridge6
    a        host       8088   g sees bridge6
    g        outside    80     outside sees host
    outside  host       8088   g sees outside
    host     host       8088   g sees host
    host     g          80     g sees bridge6
    g        h          80     h sees g / -
    h        g          80     g sees h / -
    g        host       8089   -
    g        host       8088   -
    """

# (to, port, family): requests that cannot be answered
IMPOSSIBLE = {("localhost", 8080, "v6"), ("localhost", 8083, "v6")}  # packets from ::1 cannot leave the host

# (from, to, port, family, protocol): the answer with upstream's plugins, and why ours differ
DIFFERENT = {
    ("a", "localhost", 80, "v4", "tcp"): (
        "host sees a", "route_localnet, which a host port on localhost needs, lets pods in to what "
        "listens on 127/8; ours drop these packets"),
}


def rows():
    for line in MATRIX.strip().splitlines():
        words = line.split("#")[0].split()
        yield words[0], words[1], int(words[2]), " ".join(words[3:])


def requests(host):
    """Every request: (from, to, port, family, protocol), and our answer."""
    missing = PODS.keys() - host.pods
    ports = {PODS[pod][2] for pod in missing}
    for source, target, port, answer in rows():
        if port in ports or {source, target} & missing:
            continue
        answer = answer.split(" / ")[-1 if host.bridge_nf else 0]
        for family in ("v4", "v6"):
            right = "-" if (target, port, family) in IMPOSSIBLE else answer
            for protocol in ("tcp", "udp"):
                yield (source, target, port, family, protocol), right


# ---- a host, its neighbour, its pods -----------------------------------------------------------


def run(command, **more):
    return subprocess.run(command.split(), check=True, capture_output=True, text=True, **more)


class Host:
    """One side: namespaces NAME, NAME-outside and NAME-POD."""

    def __init__(self, name, plugins, bridge_nf):
        self.name, self.plugins, self.bridge_nf = name, plugins, bridge_nf
        self.networks = networks(hairpin=bridge_nf)
        self.results = {}
        for netns in (name, name + "-outside", *(f"{name}-{pod}" for pod in PODS)):
            run(f"ip netns add {netns}")
        self.pods = [pod for pod in PODS if plugins == OURS or self.supports(pod)]
        for command in f"""
                ip -n {name} link set lo up
                ip -n {name} link add wire type veth peer name eth0 netns {name}-outside
                ip -n {name} address add 192.0.2.1/24 dev wire
                ip -n {name} address add fd99::1/64 dev wire nodad
                ip -n {name} link set wire up
                ip -n {name}-outside address add 192.0.2.2/24 dev eth0
                ip -n {name}-outside address add fd99::2/64 dev eth0 nodad
                ip -n {name}-outside link set eth0 up
                ip -n {name}-outside route add 10.0.0.0/8 via 192.0.2.1
                ip -n {name}-outside route add fd00::/12 via fd99::1
                """.strip().splitlines():
            run(command)
        for kind in ("iptables", "ip6tables"):
            self.execute(f"[ ! -e /proc/sys/net/bridge ] || echo {int(bridge_nf)} "
                         f">/proc/sys/net/bridge/bridge-nf-call-{kind}")

    def execute(self, script):
        return subprocess.run(["ip", "netns", "exec", self.name, "sh", "-c", script], check=True,
                              capture_output=True, text=True).stdout

    def supports(self, pod):
        """Does the firewall plugin support the pod's ingressPolicy? Older versions of upstream have
        fewer. The result of this ADD has no addresses, so that it adds no rules."""
        nothing = {"cniVersion": "1.0.0", "interfaces": [{"name": "lo"}]}
        for plugin in self.networks[PODS[pod][0]]:
            if plugin["type"] == "firewall":
                done = self.start("ADD", pod, plugin, nothing)
                return "unknown ingress policy" not in done.stdout
        return True

    def call(self, verb, pod, plugin, prev):
        done = self.start(verb, pod, plugin, prev)
        assert done.returncode == 0, f"{self.name}: {verb} {pod} {plugin['type']}: {done.stdout}"
        return json.loads(done.stdout) if verb == "ADD" else None

    def start(self, verb, pod, plugin, prev):
        name, _, port = PODS[pod]
        conf = json.loads(json.dumps(plugin).replace("DATA", f"/tmp/{self.name}"))
        conf |= {"cniVersion": "1.0.0", "name": name}
        if prev:
            conf["prevResult"] = prev
        if plugin["type"] == "portmap":
            conf["runtimeConfig"] = {"portMappings": [
                {"hostPort": port, "containerPort": 80, "protocol": p} for p in ("tcp", "udp")]}
        environment = {"CNI_COMMAND": verb, "CNI_CONTAINERID": f"{self.name}-{pod}",
                       "CNI_NETNS": f"/run/netns/{self.name}-{pod}", "CNI_IFNAME": "eth0",
                       "CNI_PATH": str(self.plugins), "PATH": os.environ["PATH"]}
        return subprocess.run(["ip", "netns", "exec", self.name, self.plugins / plugin["type"]],
                              input=json.dumps(conf), env=environment, capture_output=True,
                              text=True, check=False)

    def add(self):
        for pod in self.pods:
            result = None
            for plugin in self.networks[PODS[pod][0]]:
                result = self.call("ADD", pod, plugin, result)
            self.results[pod] = result
            addresses = [ip["address"].split("/")[0] for ip in result["ips"]]
            assert tuple(addresses) == PLACES[pod]
        pod = self.name + "-a"
        run(f"ip netns exec {pod} sysctl -qw net.ipv4.conf.all.route_localnet=1")
        run(f"ip -n {pod} route add 127.0.0.1 via 10.1.0.1")

    def check(self):
        for pod, result in self.results.items():
            for plugin in self.networks[PODS[pod][0]]:
                self.call("CHECK", pod, plugin, result)

    def delete(self):
        for pod, result in self.results.items():
            for plugin in reversed(self.networks[PODS[pod][0]]):
                self.call("DEL", pod, plugin, result)

    def netns(self, place):
        return self.name if place == "host" else f"{self.name}-{place}"


# ---- sockets ------------------------------------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)


def setns(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, 0x40000000) < 0:
            raise OSError(ctypes.get_errno(), "setns " + path)
    finally:
        os.close(fd)


class Sockets:
    """Creates sockets in other namespaces. A context manager, which closes them."""

    def __enter__(self):
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.all = []
        return self

    def __exit__(self, *_):
        for one in self.all:
            one.close()
        os.close(self.home)

    def make(self, netns, protocol, family=socket.AF_INET6):
        setns(f"/run/netns/{netns}")
        try:
            kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
            one = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        finally:
            libc.setns(self.home, 0x40000000)
        self.all.append(one)
        return one


def plain(address):
    return str(ipaddress.ip_address(address).ipv4_mapped or address) if ":" in address else address


class Requests:
    """Sends all requests of one host at once. A server replies with "SERVER SOURCE"."""

    def __init__(self, host, sockets):
        self.host, self.sockets = host, sockets
        self.selector = selectors.DefaultSelector()
        self.answers = {}
        for place in ("outside", "host", *host.pods):
            for port in (80, 8080) if place == "outside" else (80,):
                self.serve(place, port)

    def watch(self, one, react, events=selectors.EVENT_READ):
        self.selector.register(one, events, react)

    def serve(self, place, port):
        for protocol in ("tcp", "udp"):
            one = self.sockets.make(self.host.netns(place), protocol)
            one.bind(("::", port))
            if protocol == "tcp":
                one.listen(200)
                self.watch(one, lambda one=one: self.accept(place, one))
            else:
                self.watch(one, lambda one=one: self.reply(place, one))

    def accept(self, place, one):
        connection, source = one.accept()
        self.sockets.all.append(connection)
        connection.sendall(f"{place} {plain(source[0])}".encode())

    def reply(self, place, one):
        _, source = one.recvfrom(9)
        one.sendto(f"{place} {plain(source[0])}".encode(), source)

    def send(self, request):
        source, target, port, family, protocol = request
        address = PLACES[target][family == "v6"]
        one = self.sockets.make(self.host.netns(source), protocol,
                                socket.AF_INET6 if family == "v6" else socket.AF_INET)
        self.watch(one, lambda: self.receive(request, one))
        error = one.connect_ex((address, port))
        if protocol == "udp" and error == 0:
            return request, one
        if error not in (0, errno.EINPROGRESS):
            self.selector.unregister(one)
        return None

    def receive(self, request, one):
        try:
            answer = one.recv(99).decode()
        except OSError:  # refused or unreachable: there will be no answer
            return
        finally:
            if request[4] == "tcp":
                self.selector.unregister(one)
        if answer:
            server, source = answer.split()
            self.answers[request] = f"{server} sees {NAMES.get(source, source)}"

    def send_again(self, datagrams):
        for request, one in datagrams:
            if request not in self.answers:
                try:
                    one.send(b"x")
                except OSError:
                    pass

    def run(self):
        right = dict(requests(self.host))
        wanted = {request for request, answer in right.items() if answer != "-"}
        datagrams = [sent for sent in map(self.send, right) if sent]
        begin = time.monotonic()
        again = begin
        while time.monotonic() < begin + TIMEOUT:
            if time.monotonic() > begin + SILENCE and wanted <= self.answers.keys():
                break
            if time.monotonic() >= again:
                self.send_again(datagrams)
                again = time.monotonic() + RESEND
            for key, _ in self.selector.select(0.1):
                key.data()
        return {request: self.answers.get(request, "-") for request in right}


# ---- tests ----------------------------------------------------------------------------------


def sides():
    upstream = all((UPSTREAM / name).exists() for name in ("bridge", "ptp", "portmap", "firewall"))
    return ("ours", "upstream") if upstream and shutil.which("iptables") else ("ours",)


@pytest.fixture(scope="module", params=[False, True], ids=["routed", "bridge-nf"])
def answers(request):
    """All answers, by side; with and without rules that see bridged frames."""
    if request.param and not os.path.exists("/proc/sys/net/bridge"):
        pytest.skip("br_netfilter is not loaded")
    hosts = {side: Host(f"{side}{int(request.param)}", OURS if side == "ours" else UPSTREAM,
                        request.param) for side in sides()}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(Host.add, hosts.values()))
    found = {}
    for side, host in hosts.items():
        with Sockets() as sockets:
            found[side] = Requests(host, sockets).run()
    yield hosts, found
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(Host.delete, hosts.values()))
    left = json.loads(hosts["ours"].execute("hawser-plugin rules --json"))
    assert not [element for element in left if "owner" in element]


def compare(expected, found):
    wrong = [f"{' '.join(map(str, request))}: {found[request]}, not {answer}"
             for request, answer in expected.items() if found[request] != answer]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_our_answers_are_those_that_the_matrix_expects(answers):
    hosts, found = answers
    compare(dict(requests(hosts["ours"])), found["ours"])


def test_upstreams_answers_differ_only_in_the_listed_rows(answers):
    hosts, found = answers
    if "upstream" not in found:
        pytest.skip("containernetworking-plugins is not installed")
    expected = {}
    for request, answer in requests(hosts["upstream"]):
        expected[request] = DIFFERENT.get(request, (answer,))[0]
    compare(expected, found["upstream"])


def test_check_succeeds_after_all_requests(answers):
    hosts, _ = answers
    hosts["ours"].check()
