# SPDX-License-Identifier: Apache-2.0
"""
test/runtimes/cri.py - CRI client for the tests, in the role of a kubelet

What:  class Cri: pods and containers through the socket of a runtime. Each method is one operation
       with plain Python values; a failed call raises grpc.RpcError with the runtime's message.
       class Crictl: the same methods through the program crictl.
How:   MESSAGES has the fields that are used, with the numbers of runtime.v1's api.proto. protobuf
       ignores other fields that a runtime sends. No code is generated.
"""
import contextlib
import json
import subprocess
import tempfile
import uuid

try:
    import grpc
    from google.protobuf import descriptor_pb2, message_factory
except ImportError:
    grpc = None  # Cri cannot be used; Crictl does not need these modules

NEEDED = {"RuntimeReady", "NetworkReady"}
IMAGE = "hawser.test/busybox:1"
CGROUP = "/hawser-test-%s" % uuid.uuid4().hex[:8]  # cgroups are shared with the machine

# MESSAGE: FIELD NUMBER TYPE, ... A type with [] is repeated; a map is from string to string.
MESSAGES = """
PortMapping: container_port 2 int32, host_port 3 int32
PodSandboxMetadata: name 1 string, uid 2 string, namespace 3 string
LinuxPodSandboxConfig: cgroup_parent 1 string
PodSandboxConfig: metadata 1 PodSandboxMetadata, port_mappings 5 PortMapping[],
    annotations 7 map, linux 8 LinuxPodSandboxConfig
RunPodSandboxRequest: config 1 PodSandboxConfig
RunPodSandboxResponse: pod_sandbox_id 1 string
StopPodSandboxRequest: pod_sandbox_id 1 string
StopPodSandboxResponse:
RemovePodSandboxRequest: pod_sandbox_id 1 string
RemovePodSandboxResponse:
PodSandboxStatusRequest: pod_sandbox_id 1 string
PodIP: ip 1 string
PodSandboxNetworkStatus: ip 1 string, additional_ips 2 PodIP[]
PodSandboxStatus: state 3 int32, network 5 PodSandboxNetworkStatus
PodSandboxStatusResponse: status 1 PodSandboxStatus
PodSandbox: id 1 string
ListPodSandboxRequest:
ListPodSandboxResponse: items 1 PodSandbox[]
ImageSpec: image 1 string
ContainerMetadata: name 1 string
ContainerConfig: metadata 1 ContainerMetadata, image 2 ImageSpec, command 3 string[]
CreateContainerRequest: pod_sandbox_id 1 string, config 2 ContainerConfig,
    sandbox_config 3 PodSandboxConfig
CreateContainerResponse: container_id 1 string
StartContainerRequest: container_id 1 string
StartContainerResponse:
ExecSyncRequest: container_id 1 string, cmd 2 string[], timeout 3 int64
ExecSyncResponse: stdout 1 bytes, stderr 2 bytes, exit_code 3 int32
StatusRequest:
RuntimeCondition: type 1 string, status 2 bool, message 4 string
RuntimeStatus: conditions 1 RuntimeCondition[]
StatusResponse: status 1 RuntimeStatus
Image: id 1 string
ImageStatusRequest: image 1 ImageSpec
ImageStatusResponse: image 1 Image
"""


def classes():
    """The message classes, by name."""
    file = descriptor_pb2.FileDescriptorProto(name="cri.proto", package="runtime.v1",
                                              syntax="proto3")
    for line in MESSAGES.replace("\n    ", " ").strip().splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for field in filter(None, fields.split(",")):
            add_field(message, *field.split())
    return {n.split(".")[-1]: c for n, c in message_factory.GetMessages([file]).items()}


def add_field(message, name, number, kind):
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if kind.endswith("[]") else field.LABEL_OPTIONAL
    kind = kind.rstrip("[]")
    if kind == "map":
        entry = message.nested_type.add(name=name.capitalize() + "Entry")
        entry.options.map_entry = True
        add_field(entry, "key", 1, "string")
        add_field(entry, "value", 2, "string")
        kind, field.label = message.name + "." + entry.name, field.LABEL_REPEATED
    if kind[0].isupper():
        field.type, field.type_name = field.TYPE_MESSAGE, ".runtime.v1." + kind
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
        self.channel = grpc.insecure_channel("unix://" + socket)

    def call(self, method, service="RuntimeService", **fields):
        request = self.types[method + "Request"](**fields)
        rpc = self.channel.unary_unary(
            "/runtime.v1.%s/%s" % (service, method),
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=self.types[method + "Response"].FromString)
        return rpc(request, timeout=60)

    def ready(self):
        """Are the runtime and its network ready, and is our image loaded?"""
        try:
            status = self.call("Status").status
            image = self.call("ImageStatus", "ImageService", image={"image": IMAGE}).image
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
