# SPDX-License-Identifier: Apache-2.0
"""
nodes.py - hawser-cri or Debian's containerd with a pod network and an image, for tests of the program hawser

What:  the fixture node runs a test with both runtimes. hawser() runs the program with the runtime, and .cri is a CRI
       client in the role of a kubelet. After the test all pods are removed.
"""
import json
import shutil

import pytest

import busybox
from containerd import Containerd
from containers import ContainerClient, ContainerDaemon
from cridaemon import BUILD
from fetching import HeadServer
from hawsercli import Terminal, hawser
from poddaemon import run

IMAGE = busybox.NAME


class Node:
    """A runtime, and the program hawser that talks to it."""

    def __init__(self, daemon):
        self.daemon, self.socket, self.logs = daemon, daemon.socket, daemon.logs
        self.cri = ContainerClient(self)
        (self.logs / "shop").mkdir(parents=True, exist_ok=True)  # as a kubelet does
        self.words = ["--runtime", "unix:" + self.socket]

    def hawser(self, *words, **more):
        """Return: exit status, standard output, standard error"""
        return hawser(*self.words, *words, **more)

    def run(self, *words, **more):
        """Run hawser, which must succeed without errors. Returns its output."""
        status, text, errors = self.hawser(*words, **more)
        assert (status, errors) == (0, ""), (words, status, text, errors, self.messages())
        return text

    def terminal(self, *words, **more):
        return Terminal(*self.words, *words, **more)

    def messages(self):
        return self.daemon.log() if isinstance(self.daemon, ContainerDaemon) else self.daemon.messages()

    def load(self, name=IMAGE, **more):
        path = self.daemon.dir / "image.tar"
        busybox.write_image(path, name, **more)
        if isinstance(self.daemon, ContainerDaemon):
            run(BUILD / "bin/hawser", *self.words, "load", path)
        else:
            self.daemon.ctr("images", "import", path)
        path.unlink()

    @property
    def gateway(self):
        """The address of the host in the pod network."""
        return "10.88.0.1" if isinstance(self.daemon, ContainerDaemon) else "10.89.0.1"

    def pods(self):
        return [p.id for p in self.cri.call("ListPodSandbox").items]

    def clean(self):
        for pod in self.pods():
            self.cri.remove(pod)


def network(directory):
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "br-containerd", "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": {
            "type": "host-local", "dataDir": str(directory / "leases"), "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "10.89.0.0/16"}]]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


def make_containerd(directory):
    for name in ("net.d", "bin"):
        (directory / name).mkdir()
    (directory / "net.d/10-pods.conflist").write_text(json.dumps(network(directory)))
    run(BUILD / "bin/hawser-plugin", "install", directory / "bin")
    daemon = Containerd(directory)
    daemon.logs = directory / "logs"
    return daemon


def missing():
    return [p for p in ("containerd", "ctr", "runc") if not shutil.which(p)]


@pytest.fixture(scope="module")
def image_server():
    """A registry without images, from which both runtimes pull."""
    server = HeadServer()
    yield server
    server.close()


@pytest.fixture(scope="module", params=["hawser-cri", "containerd"])
def module_node(request, tmp_path_factory, image_server):
    directory = tmp_path_factory.mktemp(request.param)
    run("mount", "-t", "tmpfs", "tmpfs", "/var/log")  # an empty one for each runtime
    if request.param == "containerd":
        if missing():
            pytest.skip("%s is not installed" % ", ".join(missing()))
        daemon = make_containerd(directory)
        node = Node(daemon)
        node.load()
        yield node
        daemon.stop()
    else:
        daemon = ContainerDaemon(directory, "--plain-http", image_server.host).start()
        yield Node(daemon)
        daemon.close()
        assert daemon.stop() == 0, daemon.log()


@pytest.fixture
def node(module_node):
    yield module_node
    module_node.clean()
