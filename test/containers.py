# SPDX-License-Identifier: Apache-2.0
"""
containers.py - hawser-cri with a pod network and an image, for tests of containers

What:  class ContainerDaemon: a PodDaemon with the image of test/runtimes/busybox.py, and a client that also has the
       calls for containers. The fixture containers creates such daemons; after each test it removes all pods, and
       then nothing may be left of their containers: no process, cgroup, mount, file or row.
"""
import pathlib
import re

import pytest

from cridaemon import BUILD
from poddaemon import CGROUPS, Client, PodDaemon, config, daemons_of, run  # also finds the modules of test/runtimes
from waiting import LONG, wait_until

import busybox

IMAGE = busybox.NAME
CREATED, RUNNING, EXITED, UNKNOWN = range(4)
POD, CONTAINER, NODE, TARGET = range(4)
FOREVER = ["/bin/sleep", "100000"]  # as process 1 it ignores SIGTERM
# A shell runs its traps between commands.
IDLE = "while :; do sleep 0.05; done"  # the interval of checks for signals
SERVER = ["/bin/sh", "-c", "trap 'exit 0' TERM; echo ready; " + IDLE]
V2 = (CGROUPS / "cgroup.controllers").exists()


def security(pid=CONTAINER, **more):
    options = {"pid": pid, "target_id": more.pop("target_id", "")}
    if "userns_options" in more:
        options["userns_options"] = more.pop("userns_options")
    return {"namespace_options": options, **more}


def container_config(command=FOREVER, name="main", attempt=0, image=IMAGE, resources=None, log_path=None, **more):
    """A ContainerConfig. The keys of security() and all other fields may be given."""
    keys = ("pid", "target_id", "privileged", "run_as_user", "run_as_group", "supplemental_groups", "capabilities",
            "readonly_rootfs", "no_new_privs", "masked_paths", "readonly_paths", "seccomp", "apparmor", "selinux_options",
            "userns_options", "run_as_username", "supplemental_groups_policy")
    linux = {"security_context": security(**{k: more.pop(k) for k in keys if k in more})}
    if resources is not None:
        linux["resources"] = resources
    return {"metadata": {"name": name, "attempt": attempt}, "image": {"image": image}, "command": command,
            "linux": linux, "log_path": "%s.log" % name if log_path is None else log_path, **more}


class ContainerClient(Client):
    """A CRI client with the calls for containers."""

    def __init__(self, daemon):
        super().__init__(daemon.socket)
        self.logs = daemon.logs
        self.outputs = 0
        self.configs = {}

    def pod(self, name="a", handler="", **more):
        """Create a pod whose containers have logs. Returns its ID."""
        more.setdefault("log_directory", str(self.logs / name))
        more.setdefault("network", NODE)
        pod = self.run(name, handler, **more)
        self.configs[pod] = config(name, **more)
        return pod

    def create(self, pod, command=FOREVER, timeout=LONG, **more):
        return self.start_create(pod, command, timeout, **more).result().container_id

    def start_create(self, pod, command=FOREVER, timeout=LONG, **more):
        """Returns a future."""
        return self.start("CreateContainer", timeout=timeout, pod_sandbox_id=pod, sandbox_config=self.configs.get(pod, config()),
                          config=container_config(command, **more))

    def start_container(self, container):
        self.call("StartContainer", container_id=container)
        return container

    def run_container(self, pod, command=FOREVER, **more):
        """Create and start a container. Returns its ID."""
        return self.start_container(self.create(pod, command, **more))

    def run_server(self, pod, command=SERVER, **more):
        """Run a container until it has printed "ready". By then it has installed its signal handlers."""
        container = self.run_container(pod, command, **more)
        self.wait_for_line(container, "ready")
        return container

    def run_to_end(self, pod, command, **more):
        """Run a container until it has ended. Returns its status."""
        return self.wait_for_exit(self.run_container(pod, command, **more))

    def output(self, pod, script, **more):
        """Run a shell script in a container. Returns the lines that it has printed, after it has succeeded."""
        self.outputs += 1
        more.setdefault("log_path", "output%d.log" % self.outputs)
        status = self.run_to_end(pod, ["/bin/sh", "-c", script], **more)
        lines = self.printed(status.id)
        assert status.exit_code == 0, (status, lines)
        self.remove_container(status.id)
        return lines

    def stop_container(self, container, grace=0):
        self.call("StopContainer", container_id=container, timeout=grace)

    def start_stop(self, container, grace, timeout=LONG):
        """Returns a future."""
        request = self.request("StopContainer", container_id=container, timeout=grace)
        return self.method("StopContainer").future(request, timeout=timeout)

    def remove_container(self, container):
        self.call("RemoveContainer", container_id=container)

    def container(self, container):
        return self.call("ContainerStatus", container_id=container).status

    def containers(self, **filter):
        return self.call("ListContainers", filter=filter).containers

    def container_ids(self, **filter):
        return sorted(c.id for c in self.containers(**filter))

    def exec_sync(self, container, *command, timeout=0):
        return self.call("ExecSync", container_id=container, cmd=command, timeout=timeout)

    def sh(self, container, script):
        """Run a shell script with ExecSync. Returns its output."""
        answer = self.exec_sync(container, "/bin/sh", "-c", script)
        assert answer.exit_code == 0, answer
        return answer.stdout.decode()

    def printed(self, container):
        """The lines in the log of a container."""
        return [text for *_, text in read_log(self.container(container).log_path)]

    def wait_for_line(self, container, line):
        wait_until(lambda: line in self.printed(container), lambda: self.printed(container))

    def wait_for_exit(self, container):
        wait_until(lambda: self.container(container).state == EXITED, lambda: self.container(container))
        return self.container(container)


# ---- processes -------------------------------------------------------------------------------------

def has_ended(pid):
    """A process may stay a zombie until its parent, such as process 1 of the host, has waited for it."""
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def cgroup_value(pid, controller, name):
    """The content of a file in the cgroup of a process."""
    for line in pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") or V2 and not names:
            at = CGROUPS / names
            return pathlib.Path(str(at) + path, name).read_text().strip()
    raise AssertionError("no controller " + controller)


# ---- logs ------------------------------------------------------------------------------------------

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP]) (.*)")


def read_log(path):
    """The lines of a log in the format of CRI: time, stream, tag (F: full line, P: part of a line), text. A line that
    is being written is left out. containerd writes no zeros at the end of a time."""
    with open(path, newline="\n", errors="surrogateescape") as log:
        return [parse_line(line[:-1]) for line in log if line.endswith("\n")]


def parse_line(line):
    found = LINE.fullmatch(line)
    assert found, "not in the log format of CRI: %r" % line
    return found.groups()


# ---- the daemon ------------------------------------------------------------------------------------

class ContainerDaemon(PodDaemon):
    def __init__(self, directory, *flags, load=True, **more):
        super().__init__(directory, "--disk-reserve", "0", *flags, **more)
        self.logs = directory / "logs"
        self.load_image = load

    def start(self, **more):
        super().start(**more)
        if self.load_image:
            self.load()
            self.load_image = False
        return self

    def client(self):
        self.clients.append(ContainerClient(self))
        return self.clients[-1]

    def load(self, name=IMAGE, **more):
        """Load an image: see busybox.write_image(). Returns its name."""
        path = self.dir / "image.tar"
        busybox.write_image(path, name, **more)
        run(BUILD / "bin/hawser", "--runtime", "unix:" + self.socket, "load", path)
        path.unlink()
        return name

    def bundle(self, container):
        return self.state / "containers" / container

    def monitor(self, container):
        """The process ID of conmon."""
        return int((self.bundle(container) / "conmon.pid").read_text())

    def main(self, container):
        """The process ID of the container's first process."""
        return int((self.bundle(container) / "pidfile").read_text())

    def container_rows(self):
        with self.database() as db:
            return db.execute("SELECT id, state FROM containers").fetchall()

    def leftovers(self):
        found = super().leftovers()
        found += ["container %s %s" % row for row in self.container_rows()]
        for name in ("state/containers", "state/exits", "state/crun", "root/containers"):
            found += ["file %s" % f for f in (self.dir / name).iterdir()]
        return found


@pytest.fixture
def containers(tmp_path):
    """A function that creates a ContainerDaemon and starts it."""
    yield from daemons_of(ContainerDaemon, tmp_path)
