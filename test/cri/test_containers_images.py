# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_images.py - the layers below containers: kept while they are used, and not longer
"""
import pathlib

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import containers  # noqa: F401, a fixture
from slowcrun import Crun
from waiting import wait_until


def load(d, name):
    """Load an image that has the layer of IMAGE, and one with the file /NAME. Returns its name."""
    return d.load("hawser.test/%s:1" % name, files=[(name, name.encode(), {})])


def remove_image(d, image):
    d.cri.call("RemoveImage", image={"image": image})


def has_layer(d, name):
    """Whether the layer with the file /NAME is in the store."""
    return any((d.dir / "root/layers").glob("*/root/" + name))


def test_a_layer_stays_while_a_container_needs_it_and_is_removed_with_the_last_one(containers):
    d = containers()
    image, pod = load(d, "a"), d.cri.pod()
    first, second = [d.cri.run_container(pod, image=image, name=n) for n in ("first", "second")]
    remove_image(d, image)
    assert d.cri.sh(first, "cat /a") == "a"
    d.cri.remove_container(first)
    assert has_layer(d, "a") and d.cri.sh(second, "cat /a") == "a"
    d.cri.remove_container(second)
    wait_until(lambda: not has_layer(d, "a"))


def end(d, how):
    if how == "kill":
        d.kill()
    else:
        assert d.stop() == 0, d.log()


def restart_and_sweep(d, how="kill"):
    """Kill or stop the daemon, and start it again. Returns when it has removed the layers that nothing uses: one of them is that
    of a container which is made to forget its layers here."""
    image = load(d, "unused")
    container = d.cri.create(d.cri.pod("unused"), image=image, name="unused")
    remove_image(d, image)
    end(d, how)
    with d.database() as db:
        db.execute("UPDATE containers SET layers = '[]' WHERE id = ?", [container])
        db.commit()
    assert has_layer(d, "unused")
    d.start()
    wait_until(lambda: not has_layer(d, "unused"))


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("state", ["created", "running", "exited"])
def test_the_layers_of_containers_outlive_the_daemon(containers, state, how):
    d = containers()
    image = load(d, "a")
    container = d.cri.create(d.cri.pod(), ["/bin/true"] if state == "exited" else ["/bin/sleep", "100000"], image=image)
    if state != "created":
        d.cri.start_container(container)
    if state == "exited":
        d.cri.wait_for_exit(container)
    remove_image(d, image)
    restart_and_sweep(d, how)
    assert has_layer(d, "a") and (d.bundle(container) / "rootfs/a").read_bytes() == b"a"
    if state == "created":
        d.cri.start_container(container)
    if state != "exited":
        assert d.cri.sh(container, "cat /a") == "a"
    d.cri.remove_container(container)
    wait_until(lambda: not has_layer(d, "a"))


def test_a_start_that_fails_leaves_the_layers_of_containers(containers):
    d = containers()
    pod = d.cri.pod()
    found = {}
    for name in ("a", "b"):
        image = load(d, name)
        found[d.cri.run_container(pod, image=image, name=name)] = name
        remove_image(d, image)
    end(d, "kill")
    d.command += ["--listen", "unix:%s/cri.sock" % (d.dir / "log")]  # a file, not a directory
    assert "listen on " in d.refused()
    del d.command[-2:]
    d.start()
    for container in found:
        assert d.cri.sh(container, "cat /" + found[container]) == found[container]


def test_the_layers_of_a_container_that_is_not_in_the_database_stay(containers):
    d = containers()
    image = load(d, "a")
    container = d.cri.run_container(d.cri.pod(), image=image)
    remove_image(d, image)
    main = d.main(container)
    saved = d.dir / "saved"
    saved.mkdir()

    def move_database(source, target):
        for file in source.glob("pods.db*"):
            file.rename(target / file.name)
    d.kill()
    move_database(d.dir / "root", saved)
    d.start()
    remove_image(d, load(d, "b"))
    wait_until(lambda: not has_layer(d, "b"))
    assert has_layer(d, "a")
    assert pathlib.Path("/proc/%d/root/a" % main).read_bytes() == b"a"
    d.kill()
    for file in (d.dir / "root").glob("pods.db*"):
        file.unlink()
    move_database(saved, d.dir / "root")
    d.start()
    assert d.cri.sh(container, "cat /a") == "a"


def test_a_removal_that_is_killed_leaves_no_layer(containers, tmp_path):
    crun = Crun(tmp_path)
    d = containers("--runtime-handler", "slow=%s" % crun.program)
    image = load(d, "a")
    container = d.cri.run_container(d.cri.pod(handler="slow"), image=image)
    remove_image(d, image)
    crun.delay("delete")
    removal = d.client().start("RemoveContainer", container_id=container)
    wait_until(lambda: crun.times("delete"))
    d.restart()
    assert removal.exception() and has_layer(d, "a")
    crun.go_on("delete")
    d.cri.remove_container(container)
    wait_until(lambda: not has_layer(d, "a"))
