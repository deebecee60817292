# SPDX-License-Identifier: Apache-2.0
"""
churn.py - random operations on pods and containers by many clients, with a model of what should exist

What:  class Churn: each client has pods of its own, and changes them with operations that its seed determines. The
       model of a client is what its calls have achieved; compare() finds every difference between the models and the
       runtime. A container that should run is the same process from its start to its end.
How:   the daemon may be killed at any time. A call that this interrupts is repeated until it is answered, as a
       kubelet does; any other error ends the run, with the seed and the last operations of the client.
"""
import os
import pathlib
import random
import signal
import threading

import grpc

from containers import CREATED, EXITED, NODE, POD, RUNNING
from poddaemon import CGROUPS, NETNS, NOTREADY, READY, in_threads
from waiting import LONG, wait_until

LABEL = "client"
# Ends with 7 on SIGTERM, without a process that polls.
SERVER = ["/bin/sh", "-c", "trap 'exit 7' TERM; echo ready; sleep 100000 & wait"]
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo ready; sleep 100000 & wait"]


def identity(pid):
    """A process: its number and the time of its start. None: it does not exist."""
    try:
        return pid, pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


class Container:
    def __init__(self, id, name, command):
        self.id, self.name, self.command = id, name, command
        self.state, self.code = CREATED, 0
        self.process = None  # while it should run



class Pod:
    def __init__(self, id, name, options):
        self.id, self.name, self.options = id, name, options
        self.state = READY
        self.containers = {}  # by name


class Client:
    """A client with its pods."""

    def __init__(self, churn, number):
        self.churn, self.daemon, self.number = churn, churn.daemon, number
        self.cri = churn.daemon.client()
        self.random = random.Random("%s %d" % (churn.seed, number))
        self.pods = {}  # by name
        self.names = 0
        self.history = []  # for the message of a failure
        self.labels = {LABEL: str(number)}

    # ---- calls -----------------------------------------------------------------------------

    def repeat(self, call, *words, **more):
        """Call until the daemon answers."""
        while True:
            connection = self.cri.channel
            try:
                return call(*words, **more)
            except grpc.RpcError as e:
                if e.code() != grpc.StatusCode.UNAVAILABLE or not self.churn.kills:
                    raise
            wait_until(self.daemon.is_listening, self.daemon.log)
            if self.cri.channel is connection:
                self.cri.connect()

    def twice(self, call, *words, **more):
        """Two equal calls at once. Returns their results, which must be equal."""
        first, second = in_threads(*[lambda: self.repeat(call, *words, **more)] * 2)
        assert first == second
        return first

    def call(self, call, *words, **more):
        """Mostly one call; sometimes two at once."""
        return (self.twice if self.random.random() < 0.1 else self.repeat)(call, *words, **more)

    def name(self, kind):
        self.names += 1
        return "%s%d-%d" % (kind, self.number, self.names)

    # ---- operations ------------------------------------------------------------------------

    def run_pod(self):
        name = self.name("p")
        more = {"network": self.random.choice([NODE, NODE, POD]), "pid": self.random.choice([POD, 1])}
        id = self.call(self.cri.run, name, labels=self.labels, log_directory=str(self.cri.logs / name), **more)
        self.pods[name] = Pod(id, name, more)

    def create(self, pod):
        name = self.name("c")
        command = self.random.choice([SERVER, SERVER, STUBBORN, ["/bin/sh", "-c", "exit %d" % (self.names % 100)]])
        more = {"pid": pod.options["pid"], "labels": self.labels}
        id = self.call(self.cri.create, pod.id, command, name=name, **more)
        pod.containers[name] = Container(id, name, command)
        return pod.containers[name]

    def start(self, container):
        interrupted = False

        def start():
            nonlocal interrupted
            try:
                self.cri.start_container(container.id)
            except grpc.RpcError as e:
                # an interrupted call has started it
                if e.code() != grpc.StatusCode.FAILED_PRECONDITION or not interrupted:
                    interrupted |= e.code() == grpc.StatusCode.UNAVAILABLE
                    raise
        self.repeat(start)
        if container.command in (SERVER, STUBBORN):
            assert self.status(container).state == RUNNING
            container.state = RUNNING
            container.process = identity(self.daemon.main(container.id))
            assert container.process
        else:
            self.wait_for_exit(container, int(container.command[-1].split()[-1]))

    def run_container(self, pod):
        self.start(self.create(pod))

    def status(self, container):
        return self.repeat(self.cri.container, container.id)

    def set_exited(self, container, code):
        container.state, container.code, container.process = EXITED, code, None

    def wait_for_exit(self, container, *codes):
        wait_until(lambda: self.status(container).state == EXITED, lambda: self.status(container))
        code = self.status(container).exit_code
        assert code in codes, "container %s: exit code %d, want one of %s" % (container.id, code, codes)
        self.set_exited(container, code)

    def check_process(self, container):
        assert identity(container.process[0]) == container.process, "container %s was restarted or has ended" % (
            container.id)

    def wait_until_it_listens(self, container, pod):
        """Until then it may be killed by the signal."""
        log = self.cri.logs / pod.name / (container.name + ".log")
        wait_until(lambda: "ready" in log.read_text())

    def stop_container(self, container, pod):
        grace = self.random.choice([0, LONG]) if container.command == SERVER else 0
        if container.state == RUNNING:
            self.check_process(container)
            if grace:
                self.wait_until_it_listens(container, pod)
        self.call(self.cri.stop_container, container.id, grace)
        if container.state == RUNNING:
            self.wait_for_exit(container, 7 if grace else 137)

    def kill_process(self, container):
        """The container ends by itself, whether the daemon runs or not."""
        self.check_process(container)
        os.kill(container.process[0], signal.SIGKILL)
        self.wait_for_exit(container, 137)

    def exec(self, container):
        self.check_process(container)
        answer = self.repeat(self.cri.exec_sync, container.id, "/bin/sh", "-c", "echo $0; exit 3", container.name)
        assert (answer.stdout.decode(), answer.exit_code) == (container.name + "\n", 3), answer

    def remove_container(self, container, pod):
        self.call(self.cri.remove_container, container.id)
        del pod.containers[container.name]
        self.check_removed(container.id)

    def stop_pod(self, pod):
        self.call(self.cri.stop, pod.id)
        pod.state = NOTREADY
        for container in pod.containers.values():
            if container.state != EXITED:
                self.wait_for_exit(container, 137)

    def remove_pod(self, pod):
        self.call(self.cri.remove, pod.id)
        del self.pods[pod.name]
        for id in (pod.id, *(c.id for c in pod.containers.values())):
            self.check_removed(id)

    def check_removed(self, id):
        mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        assert id not in mounts, "mounts of %s are left" % id
        paths = [self.daemon.state / "pods" / id, self.daemon.state / "containers" / id, self.daemon.state / "exits" / id,
                 self.daemon.state / "crun" / id, self.daemon.dir / "root/containers" / id, NETNS / ("hawser-" + id)]
        paths += [c for pattern in ("", "*/") for name in ("hawser/", "hawser/*/") for c in CGROUPS.glob(pattern + name + id)]
        left = [str(p) for p in paths if p.exists()]
        assert not left, "left of %s: %s" % (id, left)

    # ---- the choice of an operation ----------------------------------------------------------

    def possible(self):
        """The operations that are possible now: triples (weight, function, arguments)."""
        if len(self.pods) < 2:
            yield 4, self.run_pod, ()
        for pod in self.pods.values():
            if pod.state == READY:
                if len(pod.containers) < 3:
                    yield 4, self.run_container, (pod,)
                    yield 1, self.create, (pod,)
                yield 1, self.stop_pod, (pod,)
            yield 1 if pod.state == READY else 4, self.remove_pod, (pod,)
            for container in pod.containers.values():
                yield 1, self.remove_container, (container, pod)
                if container.state == CREATED:
                    yield 2, self.start, (container,)
                if container.state != EXITED:
                    yield 2, self.stop_container, (container, pod)
                if container.state == RUNNING:
                    yield 2, self.exec, (container,)
                    yield 1, self.kill_process, (container,)
        yield 1, self.compare, ()

    def step(self):
        weights, functions, arguments = zip(*self.possible())
        i = self.random.choices(range(len(weights)), weights)[0]
        names = [a.name for a in arguments[i]]
        self.history.append(" ".join([functions[i].__name__, *names]))
        try:
            functions[i](*arguments[i])
        except BaseException as e:
            raise AssertionError("seed %s, client %d: %s\n%s" % (
                self.churn.seed, self.number, ", ".join(self.history[-10:]), e)) from e

    # ---- the model and the runtime -----------------------------------------------------------

    def compare(self):
        """The lists of the runtime have exactly what the model has, in the same states."""
        label = {"label_selector": self.labels}
        pods = {p.id: p.state for p in self.repeat(self.cri.list, **label)}
        assert pods == {p.id: p.state for p in self.pods.values()}
        containers = {c.id: (c.state, c.pod_sandbox_id) for c in self.repeat(self.cri.containers, **label)}
        assert containers == {c.id: (c.state, p.id) for p in self.pods.values() for c in p.containers.values()}
        for pod in self.pods.values():
            for container in pod.containers.values():
                status = self.status(container)
                assert (status.state, status.exit_code) == (container.state, container.code), status
                if container.process:
                    self.check_process(container)
                    assert self.daemon.main(container.id) == container.process[0]

    def remove_all(self):
        for pod in list(self.pods.values()):
            self.remove_pod(pod)


class Churn:
    def __init__(self, daemon, seed, clients=16, kills=True):
        self.daemon, self.seed, self.kills = daemon, seed, kills
        self.clients = [Client(self, number) for number in range(clients)]
        self.changed = threading.Condition()
        self.left = 0  # operations that no client has begun
        self.working = 0  # clients

    def run(self, operations):
        """All clients run operations. The daemon is killed now and then, if this is wanted."""
        self.left, self.working = operations, len(self.clients)
        in_threads(*[lambda c=c: self.work(c) for c in self.clients], *[self.kill_often] * self.kills)

    def work(self, client):
        try:
            while self.take():
                client.step()
        except BaseException:
            with self.changed:
                self.left = 0
            raise
        finally:
            with self.changed:
                self.working -= 1
                self.changed.notify_all()

    def take(self):
        with self.changed:
            self.left -= 1
            self.changed.notify_all()
            return self.left >= 0

    def kill_often(self):
        """Kill the daemon after a random number of operations; sometimes again while it recovers."""
        choose = random.Random("%s kills" % self.seed)
        while self.wait_for_operations(choose.randint(15, 45)):
            for _ in range(choose.choice([1, 1, 2])):
                self.daemon.restart()

    def wait_for_operations(self, number):
        """Return: False if the clients have ended."""
        with self.changed:
            until = self.left - number
            self.changed.wait_for(lambda: self.left <= until or not self.working)
            return bool(self.working)

    def compare(self):
        in_threads(*[c.compare for c in self.clients])
        assert len(self.daemon.cri.ids()) == sum(len(c.pods) for c in self.clients)

    def remove_all(self):
        in_threads(*[c.remove_all for c in self.clients])
