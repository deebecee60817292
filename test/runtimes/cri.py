# SPDX-License-Identifier: Apache-2.0
"""
test/runtimes/cri.py - CRI client for the tests, in the role of a kubelet

What:  class Cri: pods and containers through the socket of a runtime. Each method is one operation
       with plain Python values; a failed call raises grpc.RpcError with the runtime's message.
       class Crictl: the same methods through the program crictl.
How:   the message classes are made from the table proto/cri-v1.tsv. No code is generated.
"""
import contextlib
import functools
import json
import pathlib
import subprocess
import tempfile

try:
    import grpc
    from google.protobuf import descriptor_pb2, message_factory
except ImportError:
    grpc = None  # Cri cannot be used; Crictl does not need these modules

NEEDED = {"RuntimeReady", "NetworkReady"}
IMAGE = "hawser.test/busybox:1"
CGROUP = "/hawser-test"

TABLE = pathlib.Path(__file__).resolve().parents[2] / "proto/cri-v1.tsv"
PACKAGE = "runtime.v1"


def rows(kind):
    """The rows of one kind of the table: lists of message, field, number, type and label."""
    with open(TABLE) as table:
        lines = [line.rstrip("\n").split("\t") for line in table]
    return [line[1:6] for line in lines if line[0] == kind]


def services():
    """The service of each method."""
    return {method: service for service, method, *_ in rows("rpc")}


@functools.lru_cache(None)
def classes():
    """The message classes, by name. An enum inside a message is declared outside it, because only
    its values matter."""
    file = descriptor_pb2.FileDescriptorProto(name="cri.proto", package=PACKAGE, syntax="proto3")
    enums = {name.split(".")[-1]: file.enum_type.add() for name, *_ in rows("enum")}
    messages = {name: file.message_type.add(name=name) for name, *_ in rows("message")}
    for name, enum in enums.items():
        enum.name = name
    for name, value, number, *_ in rows("enum_value"):
        enums[name.split(".")[-1]].value.add(name=value, number=int(number))
    for name, field, number, kind, label in rows("field"):
        add_field(messages[name], field, number, kind, label, enums)
    return {n.split(".")[-1]: c for n, c in message_factory.GetMessages([file]).items()}


def add_field(message, name, number, kind, label, enums):
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if label else field.LABEL_OPTIONAL
    if label == "map":
        entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        for n, part in enumerate(kind[len("map<"):-1].split(","), 1):
            add_field(entry, ("key", "value")[n - 1], n, part, "", enums)
        kind = message.name + "." + entry.name
    if kind[0].isupper():
        field.type = field.TYPE_ENUM if kind in enums else field.TYPE_MESSAGE
        field.type_name = ".%s.%s" % (PACKAGE, kind)
    else:
        field.type = getattr(field, "TYPE_" + kind.upper())


def pod_config(name, ports=(), annotations=()):
    """ports: pairs (host port, container port); annotations: pairs (key, value)."""
    return {"metadata": {"name": name, "uid": name, "namespace": "default"},
            "port_mappings": [{"host_port": h, "container_port": c} for h, c in ports],
            "annotations": dict(annotations), "linux": {"cgroup_parent": CGROUP}}


def container_config(command):
    return {"metadata": {"name": "main"}, "image": {"image": IMAGE}, "command": command}


class Cri:
    def __init__(self, socket):
        self.types = classes()
        self.services = services()
        self.channel = grpc.insecure_channel("unix://" + socket)

    def call(self, method, **fields):
        request = self.types[method + "Request"](**fields)
        rpc = self.channel.unary_unary(
            "/%s.%s/%s" % (PACKAGE, self.services[method], method),
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=self.types[method + "Response"].FromString)
        return rpc(request, timeout=60)

    def ready(self):
        """Are the runtime and its network ready, and is our image loaded?"""
        try:
            status = self.call("Status").status
            image = self.call("ImageStatus", image={"image": IMAGE}).image
        except grpc.RpcError:
            return False
        conditions = {c.type for c in status.conditions if c.status}
        return conditions >= NEEDED and bool(image.id)

    def run_pod(self, config):
        return self.call("RunPodSandbox", config=config).pod_sandbox_id

    def run_container(self, pod, config, command):
        container = self.call("CreateContainer", pod_sandbox_id=pod, sandbox_config=config,
                              config=container_config(command)).container_id
        self.call("StartContainer", container_id=container)
        return container

    def exec(self, container, command):
        """Run a command in the container. Returns its standard output."""
        answer = self.call("ExecSync", container_id=container, cmd=command, timeout=20)
        return answer.stdout.decode()

    def pods(self):
        return [p.id for p in self.call("ListPodSandbox").items]

    def addresses(self, pod):
        """The addresses of a running pod; [] if it is not running."""
        status = self.call("PodSandboxStatus", pod_sandbox_id=pod).status
        network = status.network
        return [] if status.state else [network.ip] + [a.ip for a in network.additional_ips]

    def stop_pod(self, pod):
        self.call("StopPodSandbox", pod_sandbox_id=pod)

    def remove_pod(self, pod):
        """Remove a pod, and stop it before if it is running."""
        self.call("RemovePodSandbox", pod_sandbox_id=pod)


class Crictl:
    """The same methods through the command line of crictl."""

    def __init__(self, program, socket):
        self.command = [program, "--config", "/dev/null", "--runtime-endpoint", "unix://" + socket,
                        "--timeout", "60s"]

    def call(self, *words):
        return subprocess.run(self.command + list(words), check=True, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout

    @staticmethod
    @contextlib.contextmanager
    def file(config):
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(config, file)
            file.flush()
            yield file.name

    def ready(self):
        try:
            status = json.loads(self.call("info"))["status"]
            self.call("inspecti", IMAGE)
        except subprocess.CalledProcessError:
            return False
        return {c["type"] for c in status["conditions"] if c["status"]} >= NEEDED

    def run_pod(self, config):
        with self.file(config) as path:
            return self.call("runp", path).strip()

    def run_container(self, pod, config, command):
        with self.file(config) as pod_path, self.file(container_config(command)) as path:
            container = self.call("create", pod, path, pod_path).strip()
        self.call("start", container)
        return container

    def exec(self, container, command):
        return self.call("exec", "-s", container, *command)

    def pods(self):
        return self.call("pods", "-q").split()

    def addresses(self, pod):
        status = json.loads(self.call("inspectp", pod))["status"]
        network = status["network"]
        ready = status["state"] == "SANDBOX_READY"
        return [network["ip"]] + [a["ip"] for a in network["additionalIps"]] if ready else []

    def stop_pod(self, pod):
        self.call("stopp", pod)

    def remove_pod(self, pod):
        self.call("rmp", "-f", pod)
