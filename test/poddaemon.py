# SPDX-License-Identifier: Apache-2.0
"""
poddaemon.py - hawser-cri with a pod network, for tests of pods

What:  class PodDaemon: a daemon, a CRI client in the role of a kubelet, and a network with our plugins or
       Debian's Go plugins. The last plugin of the network is "control", which tests direct with files. leftovers()
       lists everything that pods have left behind.
       The fixture pods creates daemons. After each test it removes all their pods; then nothing may be left.
How:   the network namespaces are in /run/netns, the default, so that ip and connect.py find them.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading

import grpc
import pytest

from cridaemon import BUILD, Daemon
from waiting import LONG, wait_until

SRC = pathlib.Path(os.environ["HAWSER_SRC"])
sys.path.insert(0, str(SRC / "test/runtimes"))
import cri  # noqa: E402

GO_PLUGINS = pathlib.Path("/usr/lib/cni")
NETNS = pathlib.Path("/run/netns")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
BRIDGE = "br-pods"
READY, NOTREADY = 0, 1

# Returns the result of the plugin before it. Files in its directory decide what else it does: COMMAND.hang,
# COMMAND.pause (until the file is deleted), COMMAND.fail (the message), COMMAND.die (by a signal), COMMAND.flood
# (bytes of output), COMMAND.print (its output). It writes its input and environment to COMMAND.call, and a line to the
# file calls.
CONTROL = """#!/usr/bin/python3 -IS
import json, os, pathlib, signal, sys, time
here = pathlib.Path("%(dir)s")
command, text = os.environ["CNI_COMMAND"], sys.stdin.read()
conf = json.loads(text or "{}")
def asked(what):
    file = here / (command + "." + what)
    return file.read_text() if file.exists() else None
if command == "VERSION":
    print(json.dumps({"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]}))
    sys.exit(0)
new = here / (".%%d" %% os.getpid())
new.write_text(json.dumps({"conf": conf, "env": dict(os.environ), "pid": os.getpid()}))
new.rename(here / (command + ".call"))
with open(here / "calls", "a") as calls:
    calls.write("%%s %%s %%s\\n" %% (command, os.environ.get("CNI_CONTAINERID", ""), conf["name"]))
if asked("hang") is not None:
    while True:
        signal.pause()
while asked("pause") is not None:
    time.sleep(0.02)  # the interval of a poll
if asked("die") is not None:
    os.kill(os.getpid(), signal.SIGKILL)
if asked("flood") is not None:
    for _ in range(int(asked("flood")) >> 20):
        os.write(1, b"x" * (1 << 20))
if asked("fail") is not None:
    print(json.dumps({"cniVersion": conf["cniVersion"], "code": 999, "msg": asked("fail").strip()}))
    sys.exit(1)
if asked("print") is not None:
    print(asked("print"))
elif command == "ADD":
    print(json.dumps(conf["prevResult"]))
"""


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def connect(source, target, address, port, server_port=None):
    """Send a message from one namespace to another: "host", or a pod ID. Returns the source address that the
    server sees; "" if the message or its answer did not arrive."""
    names = [n if n == "host" else "hawser-" + n for n in (source, target)]
    words = [SRC / "test/connect.py", "5", *names, address, "tcp", port] + ([server_port] if server_port else [])
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def leases(directory):
    """The addresses that host-local has leased in the networks of its data directory."""
    return sorted(f.name for f in directory.glob("*/*") if re.fullmatch(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:]*", f.name))


def namespace(path):
    """Identifies a namespace."""
    st = os.stat(path)
    return st.st_dev, st.st_ino


def in_namespace(pod, *words, kind="net"):
    """Run a program in a namespace of a pod. Returns its standard output."""
    return run("nsenter", "--%s=%s" % (kind, pod), "--", *words)


def config(name="a", **more):
    """A PodSandboxConfig. Its pod has no process; pid=0 gives it a PID namespace."""
    options = {"pid": more.pop("pid", 1), "network": more.pop("network", 0), "ipc": more.pop("ipc", 0)}
    linux = {"security_context": {"namespace_options": options}, **more.pop("linux", {})}
    metadata = {"name": name, "uid": name + "-uid", "namespace": "default", "attempt": more.pop("attempt", 0)}
    return {"metadata": metadata, "linux": linux, **more}


def refused(call, *words, **more):
    """The status code and the text of a call that fails."""
    with pytest.raises(grpc.RpcError) as info:
        call(*words, **more)
    return info.value.code().name, info.value.details()


class Client(cri.Cri):
    """A CRI client with a connection of its own."""

    def __init__(self, socket):
        super().__init__(socket)
        self.channel.close()
        self.socket = socket
        self.connect()

    def connect(self):
        """Use a new connection from now on. Calls that run keep the old one."""
        self.channel = grpc.insecure_channel("unix:" + self.socket, options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20),
            ("grpc.max_send_message_length", 64 << 20)])

    def method(self, name, stream=False):
        """An RPC whose request is a message, or its encoded bytes."""
        make = self.channel.unary_stream if stream else self.channel.unary_unary
        return make("/%s.%s/%s" % (cri.PACKAGE, self.services[name], name),
                    request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
                    response_deserializer=self.types[name + "Response"].FromString)

    def request(self, name, **fields):
        return self.types[name + "Request"](**fields)

    def start(self, name, timeout=LONG, **fields):
        """Starts a call. Returns a future."""
        return self.method(name).future(self.request(name, **fields), timeout=timeout)

    def run(self, name="a", handler="", **more):
        """Create a pod. Returns its ID."""
        return self.call("RunPodSandbox", config=config(name, **more), runtime_handler=handler).pod_sandbox_id

    def start_run(self, name="a", timeout=LONG, **more):
        return self.start("RunPodSandbox", timeout=timeout, config=config(name, **more))

    def stop(self, pod):
        self.call("StopPodSandbox", pod_sandbox_id=pod)

    def remove(self, pod):
        self.call("RemovePodSandbox", pod_sandbox_id=pod)

    def status(self, pod):
        return self.call("PodSandboxStatus", pod_sandbox_id=pod).status

    def info(self, pod):
        """The verbose part of the status."""
        return json.loads(self.call("PodSandboxStatus", pod_sandbox_id=pod, verbose=True).info["info"])

    def list(self, **filter):
        return self.call("ListPodSandbox", filter=filter).items

    def ids(self, **filter):
        return [p.id for p in self.list(**filter)]

    def address(self, pod):
        return self.status(pod).network.ip


class PodDaemon(Daemon):
    def __init__(self, directory, *flags, plugins="ours", network=True, subnet="10.88.0.0/16", bridge=BRIDGE,
                 **more):
        super().__init__(directory, *flags, **more)
        self.leases = directory / "leases"
        self.control = directory / "control"
        self.control.mkdir(exist_ok=True)
        self.subnet, self.bridge, self.plugins = subnet, bridge, plugins
        self.install(plugins)
        if network:
            self.write_network()
        self.clients = []

    def install(self, plugins):
        if plugins == "go":
            if not GO_PLUGINS.exists():
                pytest.skip("containernetworking-plugins is not installed")
            for file in GO_PLUGINS.iterdir():
                (self.bin / file.name).symlink_to(file)
        else:
            run(BUILD / "bin/hawser-plugin", "install", self.bin)
        (self.bin / "control").write_text(CONTROL % {"dir": self.control})
        (self.bin / "control").chmod(0o755)

    # ---- network ---------------------------------------------------------------------------

    def conflist(self, name="pods", **keys):
        """A network: a bridge with host-local, portmap, control. keys: of the list."""
        return {"cniVersion": "1.0.0", "name": name, "plugins": [
            {"type": "bridge", "bridge": self.bridge, "isGateway": True, "ipMasq": True, "hairpinMode": True,
             "capabilities": {"ips": True, "mac": True, "ipRanges": True}, "ipam": {
                 "type": "host-local", "dataDir": str(self.leases), "routes": [{"dst": "0.0.0.0/0"}],
                 "ranges": [[{"subnet": self.subnet}]]}},
            {"type": "portmap", "capabilities": {"portMappings": True}},
            {"type": "control", "capabilities": {c: True for c in (
                "portMappings", "bandwidth", "dns", "ipRanges", "aliases", "cgroupPath", "ips", "mac",
                "io.kubernetes.cri.pod-annotations")}}], **keys}

    def write_network(self, conf=None, file="10-pods.conflist"):
        new = self.net / (file + ".new")
        new.write_text(conf if isinstance(conf, str) else json.dumps(conf or self.conflist()))
        new.rename(self.net / file)

    def direct(self, what, text=""):
        """Directs the plugin "control": "ADD.hang", "DEL.fail" ..."""
        (self.control / what).write_text(text)

    def undirect(self):
        for file in self.control.glob("*.[dfhp]*"):
            file.unlink()

    def calls(self, command, pod=None):
        """How often the plugin "control" was called."""
        file = self.control / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return sum(line.startswith(command + " " + (pod or "")) for line in lines)

    def called(self, command):
        """What the plugin "control" got with its last call: conf, env, pid."""
        return json.loads((self.control / (command + ".call")).read_text())

    def wait_for_call(self, command, times=1):
        wait_until(lambda: self.calls(command) >= times, self.log)

    # ---- process ---------------------------------------------------------------------------

    def start(self, **more):
        super().start(**more)
        self.cri = self.client()
        return self

    def client(self):
        self.clients.append(Client(self.socket))
        return self.clients[-1]

    def kill(self):
        self.process.kill()
        self.process.wait(LONG)
        self.process = None

    def restart(self, number=signal.SIGKILL):
        self.signal(number)
        self.process.wait(LONG)
        return self.start()

    def close(self):
        for client in self.clients:
            client.channel.close()
        self.clients = []

    def serve(self):
        """The process ID of hawser-plugin serve."""
        (pid,) = [pid for pid in self.programs()
                  if pathlib.Path("/proc/%d/cmdline" % pid).read_text().endswith("hawser-plugin\0serve\0")]
        return pid

    # ---- state -----------------------------------------------------------------------------

    def database(self):
        """A connection to the database of pods, that commits at its end."""
        connection = sqlite3.connect(self.dir / "root/pods.db", timeout=LONG)
        return contextlib.closing(connection)

    def rows(self):
        with self.database() as db:
            return db.execute("SELECT id, state FROM pods").fetchall()

    def leased(self):
        return leases(self.leases)

    def leftovers(self):
        """Everything that pods of this daemon have, as a list of texts."""
        found = ["lease " + a for a in self.leased()]
        for name in ("cache/results", "state/pods", "state/attachments"):
            found += ["file %s" % f for f in (self.dir / name).glob("**/*") if not f.is_dir() or name == "state/pods"]
        found += ["row %s %s" % row for row in self.rows()]
        if self.plugins == "go":
            found += ["rule " + line for line in run("iptables-save").splitlines()
                      if re.search(r"CNI-(DN-|SN-)?[0-9a-f]{8}", line)]
        return found + host_leftovers(self.dir)


def host_leftovers(directory):
    """Objects of the kernel that belong to pods."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        where = line.split()[4]
        if where.startswith((str(directory) + "/", str(NETNS) + "/")):
            found.append("mount " + where)
    found += ["netns %s" % f for f in NETNS.glob("hawser-*")]
    for link in json.loads(run("ip", "-j", "link")):
        if link.get("link_netnsid") is not None or link["ifname"].startswith("veth"):
            found.append("link " + link["ifname"])
    found += ["cgroup %s" % d for d in CGROUPS.glob("**/" + "[0-9a-f]" * 64)]
    found += ["rule " + line for line in run(BUILD / "bin/hawser-plugin", "rules").splitlines()[1:]
              if not line.endswith(" -")]  # those without an owner belong to the host
    return found + [p for p in processes(directory) if not p.endswith("/hawser-plugin serve")]


def processes(directory=None):
    """Processes of pods and plugins."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name, words = (path / "comm").read_text().strip(), (path / "cmdline").read_text()
        except OSError:
            continue
        if words and (name == "hawser-pause" or directory and str(directory / "bin") + "/" in words):
            found.append("process %s %s" % (path.name, words.strip("\0").replace("\0", " ")))
    return found


def remove_pods(daemon):
    """Removes all pods, and checks that nothing is left of them."""
    daemon.undirect()
    if not daemon.process:
        daemon.start()
    assert daemon.process.poll() is None, "the daemon has ended\n" + daemon.log()
    for pod in daemon.cri.ids():
        daemon.cri.remove(pod)
    wait_until(lambda: not daemon.leftovers(), lambda: "%s\n%s" % (daemon.leftovers(), daemon.log()))


def daemons_of(kind, tmp_path):
    """For fixtures: a function that creates daemons of a class and starts them."""
    daemons = []

    def make(*flags, name="one", start=True, **more):
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        daemon = kind(directory, *flags, **more)
        daemons.append(daemon)
        return daemon.start() if start else daemon

    yield make
    try:
        for daemon in daemons:
            remove_pods(daemon)
            daemon.close()
            assert daemon.stop() == 0, daemon.log()
            wait_until(lambda: not processes(daemon.dir), lambda: processes(daemon.dir))
    finally:
        for daemon in daemons:
            daemon.close()
            if daemon.process:
                daemon.kill()
        for daemon in daemons:
            subprocess.run(["ip", "link", "delete", daemon.bridge], stderr=subprocess.DEVNULL)


@pytest.fixture
def pods(tmp_path):
    """A function that creates a PodDaemon and starts it."""
    yield from daemons_of(PodDaemon, tmp_path)


def in_threads(*functions):
    """Run functions at the same time. Returns their results; the first exception is raised."""
    results = [None] * len(functions)

    def work(i, function):
        try:
            results[i] = function()
        except BaseException as e:
            results[i] = e
    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


needs_go = pytest.param("go", marks=pytest.mark.skipif(
    not GO_PLUGINS.exists() or not shutil.which("iptables"), reason="containernetworking-plugins or iptables is "
    "not installed"))
both_plugins = pytest.mark.parametrize("plugins", ["ours", needs_go])
