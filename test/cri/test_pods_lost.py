# SPDX-License-Identifier: Apache-2.0
"""
test_pods_lost.py - pods and containers whose database was lost

What:  pods.db is deleted, emptied or damaged while pods and containers live, or rows of it are. Nothing is removed;
       the log says what was found and what can be done.
"""
import shutil
import sqlite3

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from containers import FOREVER, IMAGE, RUNNING, SERVER, containers  # noqa: F401 pylint: disable=unused-import
from hawsercli import hawser
from poddaemon import CGROUPS, NETNS, READY, pods, refused, run  # noqa: F401, pods is a fixture
from test_pods_gc import cnitool, killed
from waiting import wait_until


def delete_database(root):
    for path in root.glob("pods.db*"):
        path.unlink()


def empty_database(root):
    delete_database(root)
    (root / "pods.db").touch()


def damage_database(root):
    data = (root / "pods.db").read_bytes()
    (root / "pods.db").write_bytes(data[:100] + bytes(len(data) - 100))


class Node:
    """A daemon with a pod with a network, a container that runs and one that has ended. Their image was removed."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.cri = daemon.cri
        self.pod = self.cri.pod("a", network=0, pid=0)
        self.address = self.cri.address(self.pod)
        self.running = self.cri.run_server(self.pod, SERVER, name="running", pid=0)
        self.ended = self.cri.run_to_end(self.pod, ["/bin/true"], name="ended", pid=0).id
        self.pid = daemon.main(self.running)
        assert hawser("--runtime", "unix:" + daemon.socket, "rmi", IMAGE)[0] == 0
        self.saved = {}

    def lose(self, damage):
        """Stop the daemon, damage its database, and start it again."""
        self.saved = self.stop_and_read()
        damage(self.daemon.dir / "root")
        self.start()

    def stop_and_read(self):
        assert self.daemon.stop() == 0
        return {path: path.read_bytes() for path in (self.daemon.dir / "root").glob("pods.db*")}

    def start(self):
        self.daemon.start()
        self.cri = self.daemon.cri

    def restore(self):
        assert self.daemon.stop() == 0
        delete_database(self.daemon.dir / "root")
        for path, data in self.saved.items():
            path.write_bytes(data)
        self.saved = {}
        self.start()

    def line(self, *words):
        """The only line of the log that has all these words."""
        (found,) = [line for line in self.daemon.log().splitlines() if all(w in line for w in words)]
        return found

    def check_objects(self):
        """Everything of the pod and its containers exists, and the container that ran still runs."""
        assert self.daemon.main(self.running) == self.pid
        assert open("/proc/%d/root/bin/busybox" % self.pid, "rb").read(4) == b"\x7fELF"
        assert (NETNS / ("hawser-" + self.pod)).exists() and self.address in self.daemon.leased()
        for container in (self.running, self.ended):
            assert self.daemon.bundle(container).exists()
            assert (self.daemon.dir / "root/containers" / container).exists()


@pytest.fixture
def node(containers):  # noqa: F811 pylint: disable=redefined-outer-name
    n = Node(containers())
    yield n
    if n.saved:
        n.restore()


@pytest.mark.parametrize("damage", [delete_database, empty_database, damage_database])
def test_nothing_is_removed_if_the_database_is_lost(node, damage):
    node.lose(damage)
    node.check_objects()
    assert 'remove it with "hawser rm --force"' in node.line("pod is not in the database", node.pod)
    found = node.line("container is not in the database", node.running)
    assert 'remove it with "hawser rm --force"' in found and "name=running pod=a namespace=default" in found
    assert "image=%s" % IMAGE in found and "pid=%d" % node.pid in found
    assert "name=ended" in node.line("container is not in the database", node.ended, "pid=none")
    assert node.line("the database of pods was lost", "pods=1", "containers=2")
    assert ("pods.db.damaged.1" in node.daemon.log()) == (damage is damage_database)
    assert not node.cri.ids() and not node.cri.container_ids()
    node.restore()
    assert node.cri.status(node.pod).state == READY
    assert node.cri.container(node.running).state == RUNNING and node.daemon.main(node.running) == node.pid


def test_what_is_lost_is_neither_stopped_nor_removed_by_a_client_of_cri(node):
    node.lose(delete_database)
    for name, request in (("StopPodSandbox", {"pod_sandbox_id": node.pod}),
                          ("RemovePodSandbox", {"pod_sandbox_id": node.pod}),
                          ("RemoveContainer", {"container_id": node.running})):
        code, text = refused(node.cri.call, name, **request)
        assert code == "FAILED_PRECONDITION" and 'hawser rm --force' in text, (name, code, text)
    node.check_objects()
    node.restore()


def test_layers_below_a_lost_container_survive_a_removal_of_images(node):
    node.lose(delete_database)
    other = node.daemon.load("hawser.test/other:1", files=[("file", b"of another layer", {})])
    assert hawser("--runtime", "unix:" + node.daemon.socket, "rmi", other)[0] == 0
    node.check_objects()
    assert len(list((node.daemon.dir / "root/layers").iterdir())) == 1
    node.restore()
    node.cri.remove(node.pod)
    assert not list((node.daemon.dir / "root/layers").iterdir())


@pytest.mark.parametrize("config", [None, b"{", b"{}", b"link"])
def test_all_layers_are_kept_if_those_of_a_lost_container_are_not_known(node, config):
    paths = [node.daemon.bundle(c) / "config.json" for c in (node.running, node.ended)]
    saved = [path.read_bytes() for path in paths]

    def damage(root):
        delete_database(root)
        for path, text in zip(paths, saved):
            path.unlink()
            if config == b"link":
                path.symlink_to(path.name)  # cannot be read: too many links
            elif config is not None:
                path.write_bytes(config if config != b"{}" else text.replace(b"io.hawser.layers", b"other"))
    node.lose(damage)
    for container in (node.running, node.ended):
        assert node.line("layers of a container are not known; all layers are kept", container)
    node.daemon.logged("leftovers are not removed while pods or containers are lost")
    other = node.daemon.load("hawser.test/other:1", files=[("file", b"of another layer", {})])
    assert hawser("--runtime", "unix:" + node.daemon.socket, "rmi", other)[0] == 0
    node.check_objects()
    assert len(list((node.daemon.dir / "root/layers").iterdir())) == 1
    for path, text in zip(paths, saved):
        path.unlink(missing_ok=True)
        path.write_bytes(text)
    node.restore()


def test_nothing_is_collected_while_something_is_lost(node):
    node.daemon.write_network(node.daemon.conflist(cniVersion="1.1.0"))
    node.daemon.config.write_text("gc-networks: [pods]\n")
    node.lose(delete_database)
    node.daemon.logged("leftovers are not removed while pods or containers are lost")
    assert node.daemon.stop() == 0
    assert node.daemon.calls("GC") == 0
    node.start()
    node.restore()
    wait_until(lambda: node.daemon.calls("GC"), node.daemon.log)


def test_a_new_pod_gets_the_name_but_not_the_address_of_a_lost_one(node):
    node.lose(delete_database)
    pod = node.cri.pod("a", network=0)
    assert pod != node.pod and node.cri.address(pod) != node.address
    node.cri.remove(pod)
    node.check_objects()
    node.restore()


@pytest.mark.parametrize("column,value", [
    *[(column, "{") for column in ("spec", "limits", "layers", "groups")],
    ("layers", "[1]"), ("layers", '["invalid"]'), ("groups", '["audio"]'), ("groups", "[4294967296]"), ("groups", "7")])
def test_a_container_whose_row_is_damaged_is_kept_and_ends_with_its_pod(node, column, value):
    def damage(root):
        with sqlite3.connect(root / "pods.db") as db:
            change = "UPDATE containers SET %s = ? WHERE id = ?" % column
            assert db.execute(change, [value, node.running]).rowcount == 1
    node.lose(damage)
    node.check_objects()
    assert node.line("row of a container cannot be used", node.running)
    assert "pid=%d" % node.pid in node.line("container is not in the database", node.running)
    assert node.cri.container_ids() == [node.ended] and node.cri.status(node.pod).state == READY
    assert refused(node.cri.container, node.running) == ("NOT_FOUND", "no container " + node.running)
    node.cri.remove(node.pod)
    assert not node.daemon.bundle(node.running).exists() and not node.cri.ids()
    node.saved = {}


COLUMNS = {"spec": "{", "network": "{", "state": 0, "pid": -7, "cgroup": "../..", "cgroup_driver": 1 << 40}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_pod_whose_row_is_damaged_is_kept_and_can_be_removed(node, column):
    def damage(root):
        with sqlite3.connect(root / "pods.db") as db:
            assert db.execute("UPDATE pods SET %s = ?" % column, [COLUMNS[column]]).rowcount == 1
    node.lose(damage)
    node.check_objects()
    assert 'remove it with "hawser rm --force"' in node.line("row of a pod cannot be read", node.pod)
    assert not node.cri.ids() and refused(node.cri.status, node.pod)[0] == "NOT_FOUND"
    assert hawser("--runtime", "unix:" + node.daemon.socket, "rm", "--force", node.pod)[0] == 0
    assert not node.daemon.leftovers() and not list(CGROUPS.glob("**/hawser/" + node.pod))
    node.saved = {}


def test_a_forced_removal_that_fails_is_completed_in_the_background(node):
    def damage(root):
        with sqlite3.connect(root / "pods.db") as db:
            db.execute("UPDATE pods SET state = 0")
            db.execute("CREATE TRIGGER full BEFORE DELETE ON pods BEGIN SELECT RAISE(ABORT, 'no more room'); END")
    node.lose(damage)
    status, _, errors = hawser("--runtime", "unix:" + node.daemon.socket, "rm", "--force", node.pod)
    assert status != 0 and "no more room" in errors
    with node.daemon.database() as db:
        db.execute("DROP TRIGGER full")
        db.commit()
    wait_until(lambda: not node.daemon.rows(), node.daemon.log)
    assert not node.daemon.leftovers()
    node.saved = {}


def test_a_row_of_a_pod_without_a_valid_id_is_ignored(node):
    def damage(root):
        with sqlite3.connect(root / "pods.db") as db:
            assert db.execute("UPDATE pods SET id = '../x'").rowcount == 1
    node.lose(damage)
    node.check_objects()
    assert node.line("row of a pod with an invalid ID is ignored", "../x")
    node.restore()


def lose_bundle(d, container):
    """Nothing is left but what the container has written, as after a boot."""
    run("umount", d.bundle(container) / "rootfs")
    shutil.rmtree(d.bundle(container))
    shutil.rmtree(d.state / "crun" / container)
    (d.state / "exits" / container).unlink()


@pytest.mark.parametrize("when", ["before the start", "after the start"])
def test_files_of_a_lost_container_survive_a_boot(node, when):
    files = node.daemon.dir / "root/containers" / node.ended

    def damage(root):
        delete_database(root)
        if when == "before the start":
            lose_bundle(node.daemon, node.ended)
    node.lose(damage)
    if when == "after the start":
        assert node.daemon.stop() == 0
        lose_bundle(node.daemon, node.ended)
        node.start()
    for n in range(2):
        node.daemon.logged("leftovers are not removed while pods or containers are lost", n + 1)
        assert (files / "upper").exists() and list((node.daemon.dir / "root/layers").iterdir())
        assert refused(node.cri.remove_container, node.ended)[0] == "FAILED_PRECONDITION"
        assert node.daemon.stop() == 0
        node.start()
    assert hawser("--runtime", "unix:" + node.daemon.socket, "rm", "--force", node.ended)[0] == 0
    assert not files.exists()
    node.restore()


def test_the_loss_is_forgotten_when_nothing_is_lost_any_more(node):
    note = node.daemon.dir / "root/pods.lost"
    assert not note.exists()
    node.lose(delete_database)
    assert note.exists()
    node.restore()
    assert not note.exists()
    node.lose(delete_database)
    node.saved = {}
    for lost in (node.ended, node.pod):
        assert note.exists()
        assert hawser("--runtime", "unix:" + node.daemon.socket, "rm", "--force", lost)[0] == 0
    assert not note.exists()
    leftover = node.daemon.dir / "root/containers" / node.ended
    (leftover / "upper").mkdir(parents=True)
    node.stop_and_read()
    node.start()
    wait_until(lambda: not leftover.exists(), node.daemon.log)


# ---- pods of which only a part is left --------------------------------------------------------------

def lose_directories(d, pod):
    """Only the network namespace and its attachment are left."""
    d.kill()
    for name in ("shm", "ipc", "uts"):
        run("umount", d.state / "pods" / pod / name)
    shutil.rmtree(d.state / "pods" / pod)


def lose_namespaces(d, pod):
    """Only the attachment is left, as after a boot."""
    killed(d, pod)


@pytest.mark.parametrize("lose", [lose_directories, lose_namespaces])
def test_a_pod_is_found_and_can_be_removed_after(pods, lose):
    d = pods(config="gc-networks: [pods]\n")
    pod = d.cri.run()
    address = d.cri.address(pod)
    lose(d, pod)
    delete_database(d.dir / "root")
    for n in range(2):
        d.start()
        d.logged("pod is not in the database; it is kept", n + 1)
        code, text = refused(d.cri.remove, pod)
        assert code == "FAILED_PRECONDITION" and "hawser rm --force" in text
        assert hawser("--runtime", "unix:" + d.socket, "network", "gc")[0] == 0
        assert address in d.leased() and d.calls("DEL", pod) == 0
        assert d.stop() == 0
    d.start()
    assert hawser("--runtime", "unix:" + d.socket, "rm", "--force", pod)[0] == 0
    assert d.calls("DEL", pod) == 1 and not d.leftovers()


def test_namespaces_and_attachments_of_other_runtimes_are_not_taken_for_lost_pods(pods):
    d = pods()
    kept = d.cri.run("a")
    run("ip", "netns", "add", "hawser-x")
    cnitool(d, "add", "hawser-x")
    assert d.stop() == 0
    saved = (d.dir / "root/pods.db").read_bytes()
    delete_database(d.dir / "root")
    d.start()
    d.logged("pod is not in the database; it is kept")
    assert "pods=1 containers=0" in d.log()
    assert d.stop() == 0
    (d.dir / "root/pods.db").write_bytes(saved)
    d.start()
    assert d.cri.ids() == [kept]
    cnitool(d, "del", "hawser-x")
    run("ip", "netns", "delete", "hawser-x")
