# SPDX-License-Identifier: Apache-2.0
"""
test_load.py - hawser load: load images from archives into hawser-cri

What:  archives of hawser save, skopeo and podman-like tools are loaded as the same image, from a file
       and from a pipe; malformed and hostile archives are rejected, and nothing of them is left.
How:   archives are created with Python's tarfile; skopeo converts some of them.
"""
import gzip
import io
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tarfile

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon
from fetching import (ARCHITECTURE, CONFIG, FETCH, JOB, OCI, Image, Puller, children_of, digest, index_of, status_of,
                      to_json)
from hawsercli import HAWSER, Terminal, environment, hawser
from layers import END, SANITIZED, directory, member
from waiting import LONG, wait_until

NAME = "example.com/app:1"
LAYOUT = ("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


def tar(*members):
    """An archive of (name, bytes) pairs or TarInfo objects."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for m in members:
            info = m if isinstance(m, tarfile.TarInfo) else tarfile.TarInfo(m[0])
            data = b"" if m is info else m[1]
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def blob(data):
    return "blobs/sha256/" + digest(data)[7:], data


def entry(image, name=NAME, **more):
    return {"mediaType": OCI + "manifest.v1+json", "digest": digest(image.manifest),
            "size": len(image.manifest),
            "annotations": {"org.opencontainers.image.ref.name": name} if name else {}, **more}


def index(*entries):
    return "index.json", to_json({"schemaVersion": 2, "manifests": list(entries)})


def blobs(*images):
    return [blob(b) for i in images for b in (*i.packed, i.config, i.manifest)]


def oci(*images_and_names):
    return tar(LAYOUT, *blobs(*(i for i, _ in images_and_names)),
               index(*(entry(i, n) for i, n in images_and_names)))


def docker(*images_and_names, layer="%s/layer.tar", more=()):
    """An archive in the old format of docker save, without OCI layout."""
    files, listed = {}, []
    for i, names in images_and_names:
        paths = [layer % d[7:] for d in i.diff_ids]
        files.update(zip(paths, i.packed))
        files[digest(i.config)[7:] + ".json"] = i.config
        listed.append({"Config": digest(i.config)[7:] + ".json", "RepoTags": names, "Layers": paths})
    return tar(*files.items(), *more, ("manifest.json", to_json(listed)))


def plain(*archives, **more):
    return Image(list(archives) or None, packed=bytes, media="layer.v1.tar", **more)


class Runtime(Daemon):
    def run(self, *words, **more):
        return hawser("--runtime", "unix:" + self.socket, *words, **more)

    def load(self, data, *words):
        status, text, errors = self.run("--json", "load", *words, stdin=data)
        assert status == 0, errors
        return [(i["id"], i.get("names", [])) for i in json.loads(text)["images"]]

    def refuses(self, data, code, *words):
        """The load fails with this code and leaves nothing behind. Return: the error message"""
        status, text, errors = self.run("load", *words, stdin=data)
        assert (status, text) == (1, ""), errors
        assert self.leftovers() == []
        assert "method=Load code=%s " % code in self.log().splitlines()[-1]
        return errors.splitlines()[0]

    def leftovers(self):
        root = self.dir / "root"
        assert self.run("images", "-q") == (0, "", "")
        return [*root.glob("layers/*"), *root.glob("tmp/*"), *root.glob("gone/*")]

    def remove_all(self):
        for line in self.run("images", "-q")[1].split():
            assert self.run("rmi", line)[0] == 0
        assert self.leftovers() == []


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    r = Runtime(tmp_path_factory.mktemp("hawser-cri"), "--disk-reserve", "0").start()
    yield r
    assert r.stop() == 0, r.log()


@pytest.fixture
def daemon(runtime):
    runtime.remove_all()
    yield runtime
    runtime.remove_all()


def layers(daemon):
    """The content of all files of all layers, by path."""
    root = daemon.dir / "root/layers"
    return {str(p.relative_to(root)): p.read_bytes() for p in root.glob("*/root/**/*") if p.is_file()}


# ---- valid archives ------------------------------------------------------------------------------

@pytest.mark.parametrize("format", ["oci", "docker"])
def test_a_saved_image_is_loaded_as_the_same_image(daemon, tmp_path, format):
    image, file = Image(), tmp_path / "saved.tar"
    assert daemon.load(oci((image, NAME))) == [(digest(image.config), [NAME])]
    before = layers(daemon)
    assert len(before) == 2
    assert daemon.run("save", "-o", file, NAME) == (0, "", "")
    daemon.remove_all()
    status, text, errors = daemon.run("load", "--format", format, file)
    assert (status, text) == (0, "loaded %s (%s)\n" % (NAME, digest(image.config)[7:19])), errors
    assert layers(daemon) == before
    assert daemon.run("image", "verify", NAME)[0] == 0
    assert daemon.run("save", NAME, text=False) == (0, file.read_bytes(), "")


def test_an_image_without_a_repository_digest_is_not_repaired(daemon):
    """The registry may have a different image with the same tag."""
    image = Image()
    daemon.load(oci((image, NAME)))
    damaged = daemon.dir / "root/layers" / image.diff_ids[0][7:] / "root/etc/name"
    damaged.write_bytes(b"two")
    before = layers(daemon)
    status, _, errors = daemon.run("image", "verify", "--repair", NAME)
    assert (status, errors) == (1, "hawser: image %s: cannot repair: no repository digest is known\n" % digest(image.config))
    assert layers(daemon) == before
    assert json.loads(daemon.run("images", "--json")[1])["images"][0]["id"] == digest(image.config)


@pytest.mark.parametrize("words", [["image", "verify"], ["save"]])
def test_hawser_layer_ends_when_the_daemon_is_killed(words, tmp_path):
    """hawser-layer waits until the recipe, a FIFO, is opened for writing."""
    def is_running():
        return subprocess.run(["pgrep", "-x", "hawser-layer"], stdout=subprocess.DEVNULL, check=False).returncode == 0
    image, runtime = Image(), Runtime(tmp_path, "--disk-reserve", "0").start()
    runtime.load(oci((image, NAME)))
    recipe = runtime.dir / "root/layers" / image.diff_ids[0][7:] / "recipe"
    recipe.unlink()
    os.mkfifo(recipe)
    client = subprocess.Popen([HAWSER, "--runtime", "unix:" + runtime.socket, *words, NAME], env=environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(is_running)
    runtime.process.kill()
    runtime.process.wait(LONG)
    wait_until(lambda: not is_running())
    assert client.wait(LONG) == 1


def test_an_archive_from_a_pipe_is_loaded(daemon):
    image = Image()
    saver = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    loader = subprocess.Popen([HAWSER, "--runtime", "unix:" + daemon.socket, "load"], stdin=saver.stdout,
                              stdout=subprocess.PIPE, env=environment())
    saver.stdout.close()
    saver.communicate(oci((image, NAME)))
    assert loader.communicate()[0].decode().startswith("loaded %s (" % NAME) and loader.returncode == 0


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")
@pytest.mark.parametrize("format", ["oci-archive", "docker-archive"])
def test_archives_written_by_skopeo_are_loaded(daemon, tmp_path, format):
    image, layout, file = Image(), tmp_path / "layout", tmp_path / "archive.tar"
    with tarfile.open(fileobj=io.BytesIO(oci((image, "one")))) as t:
        t.extractall(layout)
    subprocess.run(["skopeo", "--insecure-policy", "copy", "oci:%s:one" % layout,
                    "%s:%s:%s" % (format, file, NAME)], check=True, capture_output=True)
    config = subprocess.run(["skopeo", "inspect", "--config", "--raw", "%s:%s" % (format, file)],
                            check=True, capture_output=True).stdout
    assert daemon.load(b"", file) == [(digest(config), [NAME])]
    files = layers(daemon)
    assert sorted(files.values()) == [b"one", b"two"]


def test_docker_archives_are_loaded(daemon):
    image = plain()
    expected = [(digest(image.config), ["docker.io/library/app:latest", "example.com/a/b:2"])]
    assert daemon.load(docker((image, ["app", "example.com/a/b:2"]))) == expected
    daemon.remove_all()
    packed = Image()  # compressed layers: not written by docker, but by other tools
    assert daemon.load(docker((packed, None), layer="%s.tar.gz")) == [(digest(packed.config), [])]
    assert daemon.run("images", "-q")[1].strip() == digest(packed.config)


def test_a_layer_that_is_a_link_to_another_member_is_loaded(daemon):
    image = plain()
    first, second = ("%s/layer.tar" % d[7:] for d in image.diff_ids)
    link, hard = tarfile.TarInfo(first), tarfile.TarInfo(second)
    link.type, link.linkname = tarfile.SYMTYPE, "../one/layer.tar"
    hard.type, hard.linkname = tarfile.LNKTYPE, "two.tar"
    listed = [{"Config": "c.json", "RepoTags": [NAME], "Layers": [first, second]}]
    data = tar(("one/layer.tar", image.packed[0]), link, ("./two.tar", image.packed[1]), hard,
               ("c.json", image.config), ("manifest.json", to_json(listed)))
    assert daemon.load(data) == [(digest(image.config), [NAME])]


def test_names_on_the_command_line_replace_those_in_the_archive(daemon):
    image = Image()
    data = tar(LAYOUT, *blobs(image), index(entry(image, "b:2"), entry(image, "latest"),
                                            entry(image, None, annotations={
                                                "io.containerd.image.name": "docker.io/library/c:3",
                                                "org.opencontainers.image.ref.name": "3"})))
    both = ["docker.io/library/b:2", "docker.io/library/c:3"]
    assert daemon.load(data) == [(digest(image.config), both)]
    daemon.remove_all()
    names = ["localhost/x:latest", NAME]
    assert daemon.load(data, "--name", "localhost/x", "--name", NAME) == [(digest(image.config), names)]
    assert sorted(daemon.run("images", "--names")[1].split()) == sorted(names)


def test_two_images_in_one_archive_are_loaded(daemon):
    base = directory("etc") + member("etc/name", data=b"one") + END
    a, b = plain(base), plain(base, member("etc/b", data=b"b") + END)
    for data in (oci((a, "a:1"), (b, "b:1")), docker((a, ["a:1"]), (b, ["b:1"]))):
        assert daemon.load(data) == [(digest(i.config), ["docker.io/library/%s:1" % n])
                                     for i, n in ((a, "a"), (b, "b"))]
        assert len(list((daemon.dir / "root/layers").iterdir())) == 2
        daemon.remove_all()
    assert "cannot set a name: the archive has 2 images, want 1" in daemon.refuses(oci((a, "a:1"), (b, "b:1")),
                                                        "INVALID_ARGUMENT", "--name", NAME)


def test_the_image_for_this_platform_is_selected_from_an_index(daemon):
    image, other = Image(), Image(architecture="s390x")
    nested = index_of((other, {"os": "linux", "architecture": "s390x"}),
                      (image, {"os": "linux", "architecture": json.loads(image.config)["architecture"]}))
    nested_entry = {"mediaType": OCI + "index.v1+json", "digest": digest(nested), "size": len(nested),
                    "annotations": {"org.opencontainers.image.ref.name": NAME}}
    data = tar(LAYOUT, *blobs(image), blob(nested), index(nested_entry))
    assert daemon.load(data) == [(digest(image.config), [NAME])]
    daemon.remove_all()
    assert "no image for linux/" in daemon.refuses(oci((other, NAME)), "NOT_FOUND")


def test_loading_an_existing_image_succeeds_and_adds_its_name(daemon):
    image = Image()
    assert daemon.load(oci((image, NAME))) == daemon.load(oci((image, NAME)))
    daemon.load(oci((image, "example.com/app:2")))
    assert daemon.run("images", "--names")[1].split() == [NAME, "example.com/app:2"]


def test_a_load_on_a_terminal_shows_progress(daemon, tmp_path):
    file = tmp_path / "image.tar"
    file.write_bytes(oci((Image(), NAME)))
    status, shown = Terminal("--runtime", "unix:" + daemon.socket, "load", str(file)).end()
    assert status == 0 and "loading" in shown and "loaded " + NAME in shown


# ---- invalid archives ----------------------------------------------------------------------------

def test_a_truncated_archive_is_refused(daemon, tmp_path):
    image = plain(member("x", data=os.urandom(10000)) + END)
    data, file = oci((image, NAME)), tmp_path / "half.tar"
    file.write_bytes(data[:2000])
    said = daemon.refuses(b"", "DATA_LOSS", file)
    assert said.startswith("hawser: %s: load image 1 from the archive: " % file)
    assert "truncated tar archive: ends at byte 2000" in said
    without_end = data[:data.index(b"index.json")]
    assert daemon.refuses(without_end, "INVALID_ARGUMENT").startswith("hawser: standard input: load image 1 ")


def test_files_that_are_not_image_archives_are_refused(daemon):
    assert "is empty" in daemon.refuses(b"", "INVALID_ARGUMENT")
    assert "neither an OCI image layout nor" in daemon.refuses(tar(("a", b"b")), "INVALID_ARGUMENT")
    assert "not a tar header" in daemon.refuses(os.urandom(4096), "DATA_LOSS")
    assert "gzip -dc FILE" in daemon.refuses(gzip.compress(oci((Image(), NAME))), "INVALID_ARGUMENT")
    assert "archive is not in the requested format docker" in daemon.refuses(oci((Image(), NAME)), "INVALID_ARGUMENT", "--format", "docker")


@pytest.mark.parametrize("which", ["config", "manifest", "layer"])
def test_a_blob_with_a_wrong_digest_is_refused(daemon, which):
    image = Image()
    wrong = {"config": image.config, "manifest": image.manifest, "layer": image.packed[1]}[which]
    changed = [(n, bytes([*d[:-1], d[-1] ^ 1]) if d == wrong else d) for n, d in blobs(image)]
    said = daemon.refuses(tar(LAYOUT, *changed, index(entry(image))), "DATA_LOSS")
    assert said.startswith("hawser: standard input: load image 1 from the archive (%s): " % NAME)
    assert digest(wrong) in said or "gzip" in said


@pytest.mark.parametrize("which", ["config", "manifest", "layer"])
def test_an_archive_with_a_missing_blob_is_refused(daemon, which):
    image = Image()
    gone = {"config": image.config, "manifest": image.manifest, "layer": image.packed[1]}[which]
    data = tar(LAYOUT, *(b for b in blobs(image) if b[1] != gone), index(entry(image)))
    said = daemon.refuses(data, "DATA_LOSS")
    assert "(%s)" % NAME in said and digest(gone)[7:] in said and said.endswith("is missing")


def test_a_docker_archive_with_wrong_layers_is_refused(daemon):
    image, other = plain(), plain(member("x", data=b"y") + END)
    listed = [{"Config": "c.json", "RepoTags": [NAME], "Layers": ["0", "1"]}]
    wrong = tar(("c.json", image.config), ("0", image.packed[0]), ("1", other.packed[0]),
                ("manifest.json", to_json(listed)))
    assert "digest mismatch: got " + other.diff_ids[0] in daemon.refuses(wrong, "DATA_LOSS")
    listed[0]["Layers"] = ["../../etc/passwd", "/etc/passwd"]
    outside = tar(("c.json", image.config), ("manifest.json", to_json(listed)))
    assert "layer ../../etc/passwd is missing" in daemon.refuses(outside, "DATA_LOSS")
    listed[0]["Layers"] = ["0"]
    few = tar(("c.json", image.config), ("0", image.packed[0]), ("manifest.json", to_json(listed)))
    assert "manifest.json has 1 layers, the configuration has 2" in daemon.refuses(few, "DATA_LOSS")


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/out"])
def test_member_names_that_escape_the_archive_are_refused(daemon, tmp_path, name):
    said = daemon.refuses(tar((name, b"x")), "DATA_LOSS")
    assert 'member "%s": path escapes the archive' % name in said
    assert not pathlib.Path("/out").exists()


def test_links_that_loop_or_lead_outside_the_archive_are_refused(daemon):
    image = plain()
    for target in ("b", "../../../etc/passwd", "/etc/passwd"):
        a, b = tarfile.TarInfo("a"), tarfile.TarInfo("b")
        a.type = b.type = tarfile.SYMTYPE
        a.linkname, b.linkname = target, "a"
        listed = [{"Config": "c.json", "RepoTags": [NAME], "Layers": ["a", "b"]}]
        data = tar(a, b, ("c.json", image.config), ("manifest.json", to_json(listed)))
        assert "layer a is missing" in daemon.refuses(data, "DATA_LOSS")


def test_an_invalid_image_name_is_refused(daemon):
    said = daemon.refuses(oci((Image(), "UPPER:case")), "DATA_LOSS")
    assert "UPPER:case" in said
    assert "UPPER" in daemon.refuses(oci((Image(), NAME)), "INVALID_ARGUMENT", "--name", "UPPER")


def test_a_truncated_member_of_huge_size_is_refused(daemon):
    info = tarfile.TarInfo("endless")
    info.size = 1 << 60
    head = info.tobuf(tarfile.GNU_FORMAT)
    assert "inside endless" in daemon.refuses(head + bytes(1 << 20), "DATA_LOSS")


def test_an_archive_with_too_many_members_is_refused(daemon):
    data = b"".join(member("m%d" % i) for i in range(16385)) + END
    assert "more than 16384 members" in daemon.refuses(data, "FAILED_PRECONDITION")


def test_a_document_that_is_too_large_is_refused(daemon):
    data = tar(LAYOUT, ("index.json", bytes(5 << 20)))
    assert "index.json is too large: 5242880 bytes" in daemon.refuses(data, "FAILED_PRECONDITION")


def test_if_one_image_is_invalid_no_image_is_loaded(daemon):
    a, b = Image(), Image([member("b") + END])
    data = tar(LAYOUT, *blobs(a), index(entry(a, "a:1"), entry(b, "b:1")))
    assert "load image 2 from the archive (docker.io/library/b:1)" in daemon.refuses(data, "DATA_LOSS")


def test_a_layer_that_escapes_its_root_is_refused(daemon):
    image = Image([member("../outside", data=b"x") + END])
    before = daemon.dir / "root/tmp/outside"
    said = daemon.refuses(oci((image, NAME)), "DATA_LOSS")
    assert image.diff_ids[0] in said and not before.exists()


def test_a_full_disk_is_reported_before_the_end_of_the_archive(tmp_path):
    room = os.statvfs(tmp_path)
    free = room.f_bavail * room.f_frsize
    (tmp_path / "d").mkdir()
    d = Runtime(tmp_path / "d", "--disk-reserve", str(free - (8 << 20))).start()
    loader = subprocess.Popen([HAWSER, "--runtime", "unix:" + d.socket, "load"], stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment())
    zeros = open("/dev/zero", "rb")
    feeder = subprocess.Popen(["cat"], stdin=zeros, stdout=loader.stdin)
    loader.stdin.close()
    errors = loader.stderr.read().decode()
    assert loader.wait() == 1 and "out of disk space: load an archive: not enough disk space for the archive" in errors, errors
    assert "hint: free disk space" in errors
    feeder.wait()
    zeros.close()
    assert d.leftovers() == []
    assert "RESOURCE_EXHAUSTED" in d.log()
    assert d.stop() == 0, d.log()


# ---- during a load -------------------------------------------------------------------------------

def piece(data):
    """A LoadRequest with this data."""
    size, head = len(data), b""
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return b"\x1a" + head + bytes([size]) + data


def test_the_archive_is_deleted_when_the_client_disconnects(daemon):
    def archives():
        fds = pathlib.Path("/proc/%d/fd" % daemon.process.pid)
        return [fd for fd in fds.iterdir() if os.readlink(fd).endswith("/archive (deleted)")]

    def pieces():
        yield piece(oci((Image(), NAME))[:1000])
        wait_until(archives)
        assert daemon.leftovers() == []  # the archive is an unnamed file
        call.cancel()
        yield piece(b"")

    with daemon.dial() as channel:
        call = channel.stream_unary("/hawser.v1.Images/Load").future(pieces(), timeout=LONG)
        wait_until(call.done)
    daemon.logged("call failed method=Load code=CANCELLED")
    wait_until(lambda: not archives())


def test_the_process_that_reads_the_archive_has_no_privileges(tmp_path):
    (tmp_path / "a.tar").write_bytes(oci((Image(), NAME)))
    job = to_json({"reference": "image 1", "image": 1, "uid": 54321, "keep_open": SANITIZED,
                   "platform": {"os": "linux", "architecture": ARCHITECTURE}})
    ours, theirs = socket.socketpair()
    with ours, theirs, open(tmp_path / "a.tar", "rb") as file:
        fetch = subprocess.Popen([FETCH], stdin=theirs, stdout=theirs)
        theirs.close()
        socket.send_fds(ours, [struct.pack("<IB", len(job), JOB) + job], [file.fileno()])
        while Puller.receive(ours)[0] != CONFIG:
            pass
        # now hawser-fetch waits for the PLAN message
        (reader,) = children_of(fetch.pid)
        status = status_of(reader)
        assert status["Uid"].split() == status["Gid"].split() == ["54321"] * 4
        assert (status["CapPrm"], status["CapEff"], status["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
        filters = int(status["Seccomp_filters"]) - int(status_of(os.getpid())["Seccomp_filters"])
        assert filters == (0 if SANITIZED else 1)
        assert sorted(os.listdir("/proc/%d/fd" % reader)) == ["0", "1", "2", "3"]
    assert fetch.wait(LONG) == 0
