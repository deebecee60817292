# SPDX-License-Identifier: Apache-2.0
"""
test/system/test_containerd.py - containerd and hawser-cri with our plugins only, through CRI and ctr

What:  connections between pods, host ports, bandwidth limits; the daemon restarted, and killed with
       all its processes; 200 pods created and removed. After each test there is no new link, lease,
       record, cached result, namespace, process or nft element.
How:   Debian's containerd and runc, and hawser-cri, with an image created here; the plugins are in
       /opt/cni/bin and the network is in /etc/cni/net.d, the default directories of both.
Env:   HAWSER_CONTAINERD: a directory with another containerd; HAWSER_CRICTL: the crictl program to
       use instead of our client (test/conformance).
"""
import concurrent.futures
import contextlib
import difflib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

SRC = pathlib.Path(os.environ["HAWSER_SRC"])
sys.path.insert(0, str(SRC / "test/runtimes"))
if "HAWSER_CONTAINERD" in os.environ:
    os.environ["PATH"] = os.environ["HAWSER_CONTAINERD"] + ":" + os.environ["PATH"]
import cri  # noqa: E402
from waiting import wait_until, wait_until_steady  # noqa: E402

CRICTL = os.environ.get("HAWSER_CRICTL")
MISSING = [p for p in ("busybox", "nft") if not shutil.which(p)]
if not CRICTL and not cri.grpc:
    MISSING.append("python3-grpcio or python3-protobuf")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=", ".join(MISSING) + " is not installed")

CONFIG = """
version = 2
root = "/tmp/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s"
  restrict_oom_score_adj = true
""" % cri.IMAGE
NETWORK = {"cniVersion": "1.0.0", "name": "pods", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True,
     "hairpinMode": True, "ipam": {
        "type": "host-local", "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        "ranges": [[{"subnet": "10.88.0.0/16"}], [{"subnet": "fd00:88::/64"}]]}},
    {"type": "portmap", "capabilities": {"portMappings": True}},
    {"type": "firewall"},
    {"type": "bandwidth", "capabilities": {"bandwidth": True}}]}
OUTSIDE = """
    ip netns add outside
    ip link add out0 up type veth peer name eth0 netns outside
    ip address add 192.0.2.1/24 dev out0
    ip -n outside address add 192.0.2.2/24 dev eth0
    ip -n outside link set eth0 up
    ip netns exec outside busybox httpd -p 80 -h test/runtimes/www"""
STATE = """
    source test/state.bash
    state_links; state_netns; state_nft; state_processes
    state_files /run/hawser /var/lib/cni | grep -v -e last_reserved_ip -e locks/portmap-"""


def shell(script):
    return subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, text=True, check=True,
                          stdout=subprocess.PIPE).stdout


def steady_state():
    """The state once it has stopped changing: a part of DEL is done in the background."""
    return wait_until_steady(lambda: shell(STATE))


def source_seen(address, port=80, netns=None):
    """Send a request to a server, from this host or from one of its namespaces. Returns the source address
    that the server sees, or "" without an answer."""
    prefix = ["ip", "netns", "exec", netns] if netns else []
    answer = subprocess.run(prefix + ["timeout", "10", "busybox", "nc", address, str(port)],
                            input=b"GET /cgi-bin/who HTTP/1.0\r\n\r\n", stdout=subprocess.PIPE)
    return answer.stdout.decode().strip().rpartition("\n")[2]


class Runtime:
    """A daemon and its pods."""

    def __init__(self):
        pathlib.Path("/etc/cni/net.d/10-pods.conflist").write_text(json.dumps(NETWORK))
        shell("hawser-plugin install /opt/cni/bin; test/runtimes/image /tmp/image.tar")
        self.cri = cri.Crictl(CRICTL, self.socket) if CRICTL else cri.Cri(self.socket)
        self.log = open("/tmp/daemon.log", "wb")
        self.start()
        self.load()
        wait_until(self.cri.ready, self.tail)

    def start(self):
        self.daemon = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        wait_until(self.answers, self.tail)

    def stop(self, number=signal.SIGTERM):
        self.daemon.send_signal(number)
        self.daemon.wait(20)

    def kill_all(self):
        """Kill the daemon and the processes of its pods at once, and delete the pods' namespaces."""
        for pid in {self.daemon.pid, *self.pod_processes()}:
            with contextlib.suppress(ProcessLookupError):   # conmon ends with its container
                os.kill(pid, signal.SIGKILL)
        self.daemon.wait(20)
        shell('for netns in /run/netns/%s-*; do umount "$netns" && rm "$netns"; done' % self.prefix)

    def restart(self, number):
        self.stop(number)
        self.start()
        wait_until(self.cri.ready, self.tail)

    @staticmethod
    def tail():
        return shell("tail -n 40 /tmp/daemon.log")


class Containerd(Runtime):
    needs = "containerd", "ctr", "runc"
    command = ["containerd", "-c", "/tmp/config.toml"]
    socket = "/run/containerd/containerd.sock"
    prefix = "cni"  # of the names of network namespaces

    def __init__(self):
        pathlib.Path("/tmp/config.toml").write_text(CONFIG)
        super().__init__()

    def load(self):
        for namespace in ("k8s.io", "default"):
            shell("ctr -n %s images import /tmp/image.tar" % namespace)

    @staticmethod
    def answers():
        return subprocess.run(["ctr", "version"], capture_output=True).returncode == 0

    @staticmethod
    def pod_processes():
        tasks = shell("ctr -n k8s.io tasks list | awk '/RUNNING/ { print $2 }'").split()
        return {int(p) for p in tasks + shell("ps -o ppid= -p " + ",".join(tasks)).split()}


class Hawser(Runtime):
    needs = "crun", "conmon"
    command = ["hawser-cri", "--root", "/tmp/hawser", "--disk-reserve", "0"]
    socket = "/run/hawser/cri.sock"
    prefix = "hawser"

    def load(self):
        shell("hawser load /tmp/image.tar")

    def answers(self):
        return subprocess.run(["hawser", "info"], capture_output=True).returncode == 0

    @staticmethod
    def pod_processes():
        files = pathlib.Path("/run/hawser").glob("*/*/*")
        return {int(f.read_text()) for f in files if f.name in ("conmon.pid", "pidfile", "pause")}


class Pod:
    """A pod with a web server on port 80."""

    def __init__(self, runtime, name, **options):
        self.cri = runtime.cri
        config = cri.pod_config(name, **options)
        self.id = self.cri.run_pod(config)
        self.container = self.cri.run_container(self.id, config,
                                                ["/bin/httpd", "-f", "-p", "80", "-h", "/www"])
        self.address, self.address6 = self.cri.addresses(self.id)
        wait_until(lambda: source_seen(self.address))

    def source_seen(self, address, port=80):
        """Send a request to a server from this pod. Returns the source address that the server sees."""
        ask = "printf 'GET /cgi-bin/who HTTP/1.0\\r\\n\\r\\n' | nc -w 5 %s %d" % (address, port)
        return self.cri.exec(self.container, ["/bin/sh", "-c", ask]).strip().rpartition("\n")[2]


@pytest.fixture(scope="module")
def outside():
    shell(OUTSIDE)


@pytest.fixture(scope="module", params=[Containerd, Hawser], ids=["containerd", "hawser-cri"])
def daemon(request, outside):
    missing = [p for p in request.param.needs if not shutil.which(p)]
    if missing:
        pytest.skip(", ".join(missing) + " is not installed")
    runtime = request.param()
    pod = Pod(runtime, "first", ports=[(8080, 80)])  # creates everything that stays
    runtime.cri.remove_pod(pod.id)
    yield runtime
    runtime.stop()


@pytest.fixture
def runtime(daemon):
    """The daemon. It has no pods before and after the test."""
    before = steady_state()
    yield daemon
    for pod in daemon.cri.pods():
        daemon.cri.remove_pod(pod)
    wait_until(lambda: shell(STATE) == before, lambda: "\n".join(difflib.unified_diff(
        before.splitlines(), shell(STATE).splitlines(), n=0, lineterm="")))


def test_pods_reach_pods_with_their_own_address_and_other_hosts_with_the_hosts_address(runtime):
    one, two = Pod(runtime, "one"), Pod(runtime, "two")
    assert one.source_seen(two.address) == one.address
    assert two.source_seen(one.address6) == two.address6
    assert one.source_seen("192.0.2.2") == "192.0.2.1"


def test_a_host_port_is_reachable_from_the_host_from_outside_and_from_pods(runtime):
    one, two = Pod(runtime, "one", ports=[(8080, 80)]), Pod(runtime, "two")
    assert source_seen("127.0.0.1", 8080) == "10.88.0.1"
    assert source_seen("192.0.2.1", 8080) == "192.0.2.1"
    assert source_seen("192.0.2.1", 8080, netns="outside") == "192.0.2.2"
    assert two.source_seen("192.0.2.1", 8080) == "10.88.0.1"
    assert one.source_seen("192.0.2.1", 8080) == "10.88.0.1"
    runtime.cri.remove_pod(one.id)
    assert source_seen("192.0.2.1", 8080) == ""


def test_annotations_of_a_pod_limit_its_bandwidth(runtime):
    Pod(runtime, "one", annotations=[("kubernetes.io/ingress-bandwidth", "10M"),
                                        ("kubernetes.io/egress-bandwidth", "10M")])
    assert "tbf" in shell("tc qdisc show") and "rate 10Mbit" in shell("tc qdisc show")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL],
                         ids=lambda number: number.name)
def test_pods_survive_a_restart_of_the_daemon(runtime, number):
    one, two = Pod(runtime, "one", ports=[(8080, 80)]), Pod(runtime, "two")
    runtime.restart(number)
    assert runtime.cri.addresses(one.id) == [one.address, one.address6]
    assert source_seen("192.0.2.1", 8080, netns="outside") == "192.0.2.2"
    assert one.source_seen(two.address) == one.address
    three = Pod(runtime, "three")
    assert three.source_seen(one.address) == three.address


def test_pods_killed_together_with_the_daemon_are_cleaned_up(runtime):
    Pod(runtime, "one", ports=[(8080, 80)])
    runtime.kill_all()
    runtime.start()
    wait_until(runtime.cri.ready, runtime.tail)


@pytest.mark.parametrize("daemon", [Containerd], indirect=True, ids=["containerd"])
def test_ctr_run_with_cni_works_in_the_foreground(runtime):
    one = Pod(runtime, "one")
    ask = "printf 'GET /cgi-bin/who HTTP/1.0\\r\\n\\r\\n' | nc -w 5 %s 80" % one.address
    seen = shell("ctr run --rm --cni --cgroup %s/ctr %s ctr /bin/sh -c '%s'"
                 % (cri.CGROUP, cri.IMAGE, ask.replace("'", '"')))
    assert seen.split()[-1].startswith("10.88.0.") and seen.split()[-1] != one.address


def test_200_pods_leave_nothing_behind(runtime):
    def run_and_remove(number):
        """Every fifth pod has a host port; every second pod is removed without a stop."""
        ports = [(10000 + number, 80)] if number % 5 == 0 else []
        pod = runtime.cri.run_pod(cri.pod_config("pod%d" % number, ports))
        assert runtime.cri.addresses(pod)
        if number % 2:
            runtime.cri.stop_pod(pod)
        runtime.cri.remove_pod(pod)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(run_and_remove, range(200)))
