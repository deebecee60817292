# SPDX-License-Identifier: Apache-2.0
"""
test_recover.py - an image store that lost files: layers, or its database

What:  files of the store are deleted or damaged; hawser-cri and the command hawser report and repair
       that.
"""
import json
import shutil

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from fetching import Image, digest
from hawsercli import hawser
from layers import END, member

LOWER, UPPER, OTHER = (member(name, data=name.encode()) + END for name in ("lower", "upper", "other"))


class Node:
    """A daemon and the command hawser."""

    def __init__(self, directory, host):
        self.daemon = Daemon(directory, "--plain-http", host, "--disk-reserve", "0")
        self.root = directory / "root"

    def run(self, *words, **how):
        return hawser("--runtime", "unix:" + self.daemon.socket, *words, **how)

    def pull(self, name):
        status, text, errors = self.run("pull", "-q", name)
        assert status == 0, errors
        return text.strip()

    def verify(self, *words):
        """Return: the diff IDs of all layers with their states"""
        layers = json.loads(self.run("--json", "image", "verify", *words)[1])["layers"]
        return {layer["diffId"]: layer["state"] for layer in layers}

    def layer(self, file):
        """The directory of the layer that contains a file."""
        (found,) = [p.parents[1] for p in (self.root / "layers").glob("*/root/" + file)]
        return found


@pytest.fixture
def node(tmp_path, server):
    n = Node(tmp_path, server.host)
    n.daemon.start()
    yield n
    if n.daemon.process:
        assert n.daemon.stop() == 0, n.daemon.log()


@pytest.fixture
def app(node, server):
    """The image app, pulled after the image other, with which it shares no layer."""
    server.add(Image([OTHER]), "other")
    node.pull(server.host + "/app:other")
    app = Image([LOWER, UPPER])
    server.add(app)
    node.pull(server.host + "/app:latest")
    return app


# ---- lost layers -------------------------------------------------------------------------------

def test_a_deleted_layer_directory_is_reported_as_damaged_and_repaired(node, app, server):
    shutil.rmtree(node.layer("lower"))
    status, text, errors = node.run("image", "verify")
    assert status == 1 and "    root: missing\n" in text
    assert errors == "hawser: 1 of 3 layers are damaged; --repair pulls them again\n"
    states = node.verify()
    assert states.pop(app.diff_ids[0]) == "DAMAGED" and set(states.values()) == {"GOOD"}
    assert node.verify("--repair")[app.diff_ids[0]] == "REPAIRED"
    assert (node.layer("lower") / "root/lower").read_bytes() == b"lower"
    assert set(node.verify().values()) == {"GOOD"}


def test_a_deleted_recipe_is_reported_as_damaged_and_repaired(node, app, server):
    (node.layer("lower") / "recipe").unlink()
    assert node.verify()[app.diff_ids[0]] == "DAMAGED"
    assert node.verify("--repair")[app.diff_ids[0]] == "REPAIRED"


def test_a_pull_fetches_a_deleted_layer_directory_again(node, app, server):
    shutil.rmtree(node.layer("lower"))
    server.requests.clear()
    node.pull(server.host + "/app:latest")
    blobs = {r[1].rpartition("/")[2] for r in server.requests_for("/blobs/")}
    assert digest(app.packed[0]) in blobs and digest(app.packed[1]) not in blobs
    assert set(node.verify().values()) == {"GOOD"}
    assert not any((node.root / "tmp").iterdir()) and not any((node.root / "gone").iterdir())


# ---- a lost database ---------------------------------------------------------------------------

def delete_database(root):
    for path in root.glob("images.db*"):
        path.unlink()


def empty_database(root):
    (root / "images.db").write_bytes(b"")


def damage_database(root):
    data = (root / "images.db").read_bytes()
    (root / "images.db").write_bytes(data[:4096] + bytes(len(data) - 4096))


def lose_database(node, damage):
    assert node.daemon.stop() == 0
    damage(node.root)
    node.daemon.start()


def names(node):
    return sorted(node.run("images", "--names")[1].split())


@pytest.mark.parametrize("damage", [delete_database, empty_database, damage_database])
def test_a_lost_database_is_recovered(node, app, server, damage):
    before, images = names(node), json.loads(node.run("--json", "images")[1])
    assert len(before) == 2
    lose_database(node, damage)
    assert 'run "hawser image recover"' in node.daemon.log()
    assert names(node) == [] and len(list((node.root / "layers").iterdir())) == 3
    assert "\ndatabase " in node.run("info")[1]
    status, text, errors = node.run("image", "recover")
    assert (status, errors) == (0, "") and "2 images and 3 layers recovered\n" in text
    assert names(node) == before and json.loads(node.run("--json", "images")[1]) == images
    assert set(node.verify().values()) == {"GOOD"}
    assert "\ndatabase " not in node.run("info")[1]
    assert node.run("image", "recover")[1].startswith("nothing to recover")
    lose_database(node, lambda root: None)
    assert names(node) == before and node.daemon.log().count("was lost") == 1


def test_a_pull_before_the_recovery_fetches_no_layer_that_exists(node, app, server):
    lose_database(node, delete_database)
    server.requests.clear()
    node.pull(server.host + "/app:latest")
    blobs = {r[1].rpartition("/")[2] for r in server.requests_for("/blobs/")}
    assert not blobs & {digest(p) for p in app.packed}
    # garbage collection by the kubelet removes the image, but no layer
    assert node.run("rmi", server.host + "/app:latest")[0] == 0
    assert len(list((node.root / "layers").iterdir())) == 3
    answer = json.loads(node.run("--json", "image", "recover")[1])
    assert answer["needed"] and names(node) == [server.host + "/app:other"]


@pytest.mark.parametrize("repair", [False, True], ids=["pull", "verify --repair"])
def test_what_cannot_be_recovered_is_kept_listed_and_logged(repair, node, app, server):
    def lose_files(root):
        shutil.rmtree(node.layer("lower"))
        (node.layer("upper") / "layer").write_text("{}")
        delete_database(root)
    name = server.host + "/app:latest"
    lose_database(node, lose_files)
    answer = json.loads(node.run("--json", "image", "recover")[1])
    assert name in answer["missing"] and len(answer["images"]) == 1
    assert answer["unknownLayers"] == 1 and answer["unrecovered"] == str(node.root / "unrecovered")
    (kept,) = (node.root / "unrecovered").iterdir()
    assert (kept / "root/upper").read_bytes() == b"upper"
    node.daemon.logged("image could not be recovered: pull it again")
    if repair:
        states = node.verify("--repair")
        assert states[app.diff_ids[0]] == states[app.diff_ids[1]] == "REPAIRED"
    else:
        node.pull(name)
    assert len(names(node)) == 2 and set(node.verify().values()) == {"GOOD"}
