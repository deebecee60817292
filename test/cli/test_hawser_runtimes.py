# SPDX-License-Identifier: Apache-2.0
"""
test/cli/test_hawser_runtimes.py - the program hawser with real runtimes: Debian's containerd, hawser-cri

What:  commands that need only CRI with both runtimes; the error of other commands with containerd; the
       progress of a pull with hawser-cri.
How:   images come from the Python registry in fetching.py, and once from Debian's docker-registry,
       created with umoci and pushed with skopeo.
"""
import json
import re
import shutil
import subprocess
import threading

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from dockerregistry import make_layout, push
from fetching import ARCHITECTURE, HeadServer, Image, basic, digest, to_json
from hawsercli import Terminal, hawser

SPEC = {"os": "linux", "architecture": ARCHITECTURE, "created": "2020-02-03T04:05:06Z",
        "config": {"User": "1234", "Env": ["A=b"], "Cmd": ["/bin/true"], "Labels": {"of": "test"}},
        "history": [{"created": "2020-02-03T04:05:05Z", "created_by": "ADD one"},
                    {"created": "2020-02-03T04:05:05Z", "created_by": "ENV A=b", "empty_layer": True},
                    {"created": "2020-02-03T04:05:06Z", "created_by": "ADD two", "comment": "last"}]}


@pytest.fixture(scope="module")
def image():
    plain = Image()
    rootfs = {"type": "layers", "diff_ids": plain.diff_ids}
    return Image(config=to_json({**SPEC, "rootfs": rootfs}))


@pytest.fixture(scope="module")
def server(image):
    s = HeadServer()
    s.add(image)
    yield s
    s.close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, server):
    d = Daemon(tmp_path_factory.mktemp("hawser-cri"), "--plain-http", server.host,
               "--disk-reserve", "0").start()
    yield d
    assert d.stop() == 0, d.log()


@pytest.fixture(params=["containerd", "daemon"])
def run(request, server):
    """A function that runs hawser with one of the runtimes."""
    socket = request.getfixturevalue(request.param).socket
    server.before = lambda handler: False
    return lambda *words, **more: hawser("--runtime", "unix:" + socket, *words, **more)


def test_an_image_is_pulled_listed_inspected_and_removed(run, server, image):
    name, image_id = server.host + "/app:latest", digest(image.config)
    status, text, errors = run("pull", name)
    assert status == 0, errors
    assert text.strip() in (image_id, "%s/app@%s" % (server.host, digest(image.manifest)))
    assert run("pull", "-q", name) == (0, image_id + "\n", "")
    assert json.loads(run("pull", "--json", name)[1])["imageId"] == image_id

    assert re.search(r"^%s +%s +[0-9.]+ k?B$" % (re.escape(name), image_id[7:19]), run("images")[1], re.M)
    assert run("images", "--names", name)[1] == name + "\n"
    line = run("images", "-l", name)[1].splitlines()[1]
    assert re.search(r" \dy +1234( +yes)?$", line.rstrip())
    listed = json.loads(run("images", "--json", name)[1])["images"]
    assert len(listed) == 1 and listed[0]["id"] == image_id and listed[0]["uid"] == {"value": 1234}

    for by in (name, image_id, image_id[7:19]):
        status, text, errors = run("image", "inspect", by)
        assert status == 0, errors
        assert "id            %s\n" % image_id in text
        assert "platform      linux/%s\n" % ARCHITECTURE in text
        assert "environment   A=b\n" in text and "labels        of=test\n" in text
        assert "".join("%s\n" % d for d in image.diff_ids[1:]) in text
    spec = json.loads(run("image", "inspect", "--json", name)[1])["info"]["info"]["imageSpec"]
    assert spec["rootfs"]["diff_ids"] == image.diff_ids
    lines = [line.split(None, 2) for line in run("image", "history", name)[1].splitlines()[1:]]
    assert [line[1] for line in lines] == [image.diff_ids[1][7:19], "-", image.diff_ids[0][7:19]]
    assert lines[0][2].split() == ["ADD", "two", "last"]

    status, text, errors = run("rmi", image_id[7:19])
    assert status == 0, errors
    assert "untagged %s\n" % name in text and text.endswith("removed  %s\n" % image_id)
    status, _, errors = run("rmi", name)
    assert status == 1 and ": not found\nhint: " in errors
    assert run("rmi", "-f", name) == (0, "", "")
    assert run("images", "-q", name) == (0, "", "")


def test_a_pull_succeeds_only_with_the_correct_password(run, server):
    def before(handler):
        if handler.headers.get("Authorization") == basic("ann", "secret"):
            return False
        return server.respond(handler, 401, b"{}", {"WWW-Authenticate": 'Basic realm="r"'})

    server.before = before
    name = server.host + "/app:latest"
    status, text, errors = run("pull", name, "--creds", "ann", "--password-stdin", stdin=b"secret\n")
    assert status == 0, errors
    assert run("rmi", name)[0] == 0
    status, text, errors = run("pull", name, "--creds", "ann:wrong")
    assert (status, text) == (1, "") and name in errors and "wrong" not in errors


def test_the_pull_of_a_missing_image_fails_with_a_hint(run, server):
    status, text, errors = run("pull", server.host + "/app:none")
    assert (status, text) == (1, "") and server.host + "/app:none" in errors
    assert "hint: check name and tag" in errors


def test_info_shows_conditions_image_store_and_version(run):
    status, text, errors = run("info")
    assert (status, errors) == (0, "")
    assert "\nRuntimeReady  yes\n" in text and "\nNetworkReady  no: " in text
    assert re.search(r"^image store   /\S+ \([0-9.]+ [kMG]?B\)$", text, re.M)
    status, version, _ = run("version")
    assert status == 0 and text.startswith(version)


@pytest.mark.parametrize("words", [["load"], ["save", "a"], ["image", "verify"], ["image", "recover"]])
def test_commands_that_containerd_does_not_support_fail(containerd, words):
    version = containerd.ctr("version").split("Server:")[1].split("Version:")[1].split()[0]
    status, text, errors = hawser("--runtime", "unix:" + containerd.socket, *words, stdin=b"x")
    assert (status, text) == (1, "")
    assert errors.startswith("hawser: %s: not supported by containerd %s\n" % (
        " ".join(w for w in words if w != "a"), version))


def test_a_pull_with_hawser_cri_shows_progress(daemon, server, image):
    name = server.host + "/app:latest"
    words = ("--runtime", "unix:" + daemon.socket, "pull", name)
    status, text, errors = hawser(*words)
    assert status == 0 and text == "%s/app@%s\n" % (server.host, digest(image.manifest))
    for packed in image.packed:
        assert "%s  done" % digest(packed)[7:19] in errors
    status, shown = Terminal(*words).end()
    assert status == 0 and "2 of 2 layers" in shown and "\x1b[3A" in shown
    for packed in image.packed:
        assert "%s  present" % digest(packed)[7:19] in shown
    assert hawser("--runtime", "unix:" + daemon.socket, "rmi", name)[0] == 0


def test_info_of_hawser_cri_shows_process_and_root_directory(daemon):
    text = hawser("--runtime", "unix:" + daemon.socket, "info")[1]
    assert "process       %d, running for " % daemon.process.pid in text
    assert "root          %s\n" % (daemon.dir / "root") in text


def test_an_image_created_with_umoci_is_pulled_and_inspected(registry, containerd, tmp_path):
    source, name = make_layout(tmp_path), "%s/busybox:one" % registry
    subprocess.run(["umoci", "config", "--image", source[4:], "--config.cmd", "/bin/sh", "--config.user",
                    "daemon"], check=True)
    push(source, name)
    config = json.loads(subprocess.run(
        ["skopeo", "inspect", "--tls-verify=false", "--config", "--raw", "docker://" + name], check=True,
        capture_output=True).stdout)
    (tmp_path / "daemon").mkdir()
    d = Daemon(tmp_path / "daemon", "--plain-http", registry, "--disk-reserve", "0").start()
    for socket in (containerd.socket, d.socket):
        words = ["--runtime", "unix:" + socket]
        status, _, errors = hawser(*words, "pull", name)
        assert status == 0, errors
        text = hawser(*words, "image", "inspect", name)[1]
        assert "\ncommand       /bin/sh\n" in text and "\nuser          daemon\n" in text
        history = json.loads(hawser(*words, "--json", "image", "history", name)[1])["history"]
        assert [h["createdBy"] for h in history] == [h["created_by"] for h in config["history"]]
        assert [h["diffId"] for h in history if h["diffId"]] == config["rootfs"]["diff_ids"]
        assert hawser(*words, "rmi", name)[0] == 0
    assert d.stop() == 0, d.log()


def test_verify_finds_a_damaged_layer_and_repairs_it(daemon, server, image):
    name = server.host + "/app:latest"

    def run(*words):
        return hawser("--runtime", "unix:" + daemon.socket, *words)

    assert run("pull", name)[0] == 0
    status, text, errors = run("image", "verify", name)
    assert (status, errors) == (0, "") and text.endswith("2 layers, 0 damaged, 0 repaired\n")
    (file,) = (daemon.dir / "root/layers").glob("*/root/etc/name")
    file.write_bytes(b"two")
    status, text, errors = run("image", "verify")
    assert status == 1 and errors == "hawser: 1 of 2 layers are damaged; --repair pulls them again\n"
    assert re.search(r"^%s  %s  DAMAGED .*\n    etc/name: " % (
        digest(image.config)[7:19], image.diff_ids[0][7:19]), text, re.M)
    status, text, errors = run("image", "verify", "--repair", name)
    assert (status, errors) == (0, "") and text.endswith("2 layers, 0 damaged, 1 repaired\n")
    assert run("image", "verify", name)[0] == 0
    status, _, errors = run("image", "verify", "none")
    assert status == 1 and "none" in errors
    assert run("rmi", name)[0] == 0


@pytest.mark.parametrize("failure", ["not found", "no response"])
def test_repair_tries_all_names_of_an_image(failure, server, image, tmp_path):
    daemon = Daemon(tmp_path, "--plain-http", server.host, "--disk-reserve", "0", "--pull-timeout", "2").start()
    over = threading.Event()

    def respond(handler):
        if "a-first" not in handler.path:
            return False
        if failure == "not found":
            return server.respond(handler, 404) or True
        over.wait(60)
        return setattr(handler, "close_connection", True) or True

    def run(*words):
        return hawser("--runtime", "unix:" + daemon.socket, *words)

    for name in "a-first", "b-second":
        assert run("pull", "%s/%s" % (server.host, name))[0] == 0
    (file,) = (daemon.dir / "root/layers").glob("*/root/etc/name")
    file.write_bytes(b"two")
    server.before = respond
    try:
        status, text, errors = run("image", "verify", "--repair")
    finally:
        over.set()
        server.before = lambda h: False
    assert (status, errors) == (0, "") and text.endswith("2 layers, 0 damaged, 1 repaired\n")
    assert daemon.stop() == 0, daemon.log()


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")
@pytest.mark.parametrize("format", ["oci", "docker"])
def test_skopeo_reads_a_saved_archive(daemon, server, image, tmp_path, format):
    name, file = server.host + "/app:latest", tmp_path / "saved.tar"

    def run(*words, **more):
        return hawser("--runtime", "unix:" + daemon.socket, *words, **more)

    assert run("pull", name)[0] == 0
    assert run("save", "-o", file, "--format", format, name) == (0, "", "")
    config = subprocess.run(["skopeo", "inspect", "--config", "--raw", "%s-archive:%s" % (format, file)],
                            check=True, capture_output=True).stdout
    assert config == image.config
    assert run("save", "--format", format, name, text=False) == (0, file.read_bytes(), "")
    status, _, errors = run("save", "-o", tmp_path / "none.tar", "none")
    assert status == 1 and '"none"' in errors and not (tmp_path / "none.tar").exists()
    assert run("rmi", name)[0] == 0
