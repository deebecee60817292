# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_pull.py - images through hawser-cri: pull, list, inspect, remove, verify, save

How:   the registry is the Python server of fetching.py. This tests the responses to clients of CRI
       and hawser.v1; how hawser-fetch handles registries is tested in test_fetch*.py.
"""
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import threading

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon, field, fields_of
from fetching import ARCHITECTURE, OCI, Image, Server, basic, digest, index_of, to_json
from layers import END, directory, member
from waiting import LONG, wait_until

NAME = "/app:latest"


def image_with(user="", label="x"):
    """An image whose ID depends on the label."""
    plain = Image()
    return Image(config=to_json({"os": "linux", "architecture": ARCHITECTURE,
                                 "config": {"User": user, "Labels": {"l": label}},
                                 "rootfs": {"type": "layers", "diff_ids": plain.diff_ids}}))


@pytest.fixture
def daemon(tmp_path, server):
    d = Daemon(tmp_path, "--plain-http", server.host, "--auth-file", tmp_path / "auth.json",
               "--disk-reserve", "0", "--drain-timeout", "1").start()
    yield d
    if d.process:
        assert d.stop() == 0, d.log()


def spec(name):
    return field(1, field(1, name))


def pull(d, name, more=b""):
    return d.call("PullImage", spec(name) + more)


def images(d):
    """Returns {id: fields} of all listed images."""
    fields = d.call("ListImages")[1]
    found = {}
    for key, value in fields.items():
        _, number, rest = key.split(".", 2)
        found.setdefault(number, {})[rest] = value
    return {i["id"]: i for i in found.values()}


def leftovers(d):
    return [f for name in ("tmp", "gone") for f in (d.dir / "root" / name).iterdir()]


def test_an_image_is_pulled_listed_and_removed(daemon, server):
    image = image_with("1002")
    server.add(image)
    image_id = digest(image.config)
    name = server.host + NAME
    by_digest = server.host + "/app@" + digest(image.manifest)
    assert pull(daemon, name) == (0, {"image_ref": image_id})
    (listed,) = images(daemon).values()
    assert listed["id"] == image_id and int(listed["size"]) > 0
    assert listed["repo_tags.0"] == name and listed["repo_digests.0"] == by_digest
    assert listed["uid.value"] == "1002" and "username" not in listed
    responses = [daemon.call("ImageStatus", spec(n)) for n in
               (name, server.host + "/app", by_digest, image_id, image_id[7:], image_id[7:20])]
    assert responses == [responses[0]] * 6 and responses[0][1]["image.id"] == image_id
    assert daemon.call("ListImages", field(1, spec(name)))[1]["images.0.id"] == image_id
    assert daemon.call("ListImages", field(1, spec("other.example/x"))) == (0, {})
    verbose = daemon.call("ImageStatus", spec(name) + b"\x10\x01")[1]
    info = json.loads(verbose["info.0.value"])
    assert verbose["info.0.key"] == "info" and info["imageSpec"] == json.loads(image.config)
    assert info["chainID"].startswith("sha256:")
    usage = daemon.call("ImageFsInfo")[1]
    assert int(usage["image_filesystems.0.used_bytes.value"]) > 0
    assert int(usage["image_filesystems.0.inodes_used.value"]) > 0
    assert daemon.call("RemoveImage", spec(name)) == (0, {})
    assert images(daemon) == {} and leftovers(daemon) == []
    assert list((daemon.dir / "root/layers").iterdir()) == []
    usage = daemon.call("ImageFsInfo")[1]
    assert usage["image_filesystems.0.used_bytes.value"] == "0"
    assert daemon.call("RemoveImage", spec(name)) == (0, {})


def test_images_survive_a_restart(daemon, server):
    image = image_with("www-data:group")
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    before = images(daemon)
    assert before[digest(image.config)]["username"] == "www-data"
    assert daemon.stop() == 0
    daemon.start()
    assert images(daemon) == before


def test_removing_one_of_two_names_removes_the_image(daemon, server):
    image = image_with()
    server.add(image)
    server.add(image, "other")
    for tag in ("latest", "other"):
        assert pull(daemon, server.host + "/app:" + tag)[0] == 0
    (listed,) = images(daemon).values()
    assert {listed["repo_tags.0"], listed["repo_tags.1"]} == {
        server.host + "/app:latest", server.host + "/app:other"}
    assert daemon.call("RemoveImage", spec(server.host + "/app:other")) == (0, {})
    assert images(daemon) == {}


def test_an_image_pulled_by_digest_has_no_tag(daemon, server):
    image = image_with()
    server.add(image)
    index = index_of((image, {"os": "linux", "architecture": ARCHITECTURE}))
    server.manifests[digest(index)] = (OCI + "index.v1+json", index)
    name = server.host + "/app@" + digest(index)
    assert pull(daemon, name) == (0, {"image_ref": digest(image.config)})
    (listed,) = images(daemon).values()
    assert listed["repo_digests.0"] == name
    assert not [k for k in listed if k.startswith("repo_tags") or k == "repo_digests.1"]


def test_an_image_pulled_from_several_registries_is_stored_once_with_all_names(daemon, server):
    image = image_with()
    server.add(image)
    other = Server()
    other.add(image)
    assert daemon.stop() == 0
    daemon.command += ["--plain-http", other.host, "--registry-mirror",
                       "far.example=" + other.url]
    daemon.start()
    names = [server.host + "/app:latest", other.host + "/b:latest", "far.example/c:latest"]
    for name in names:
        assert pull(daemon, name) == (0, {"image_ref": digest(image.config)})
    (listed,) = images(daemon).values()
    assert sorted(v for k, v in listed.items() if k.startswith("repo_tags")) == sorted(names)
    assert daemon.call("RemoveImage", spec(names[2])) == (0, {})
    assert images(daemon) == {}
    other.close()


def test_concurrent_removals_all_succeed(daemon, server):
    server.add(image_with())
    assert pull(daemon, server.host + NAME)[0] == 0
    with daemon.dial() as channel:
        method = channel.unary_unary("/runtime.v1.ImageService/RemoveImage")
        calls = [method.future(spec(server.host + NAME), timeout=LONG) for _ in range(20)]
        assert [c.result(LONG) for c in calls] == [b""] * 20
    assert images(daemon) == {} and leftovers(daemon) == []


def test_images_are_streamed(daemon, server):
    pulled = [image_with(label=str(i)) for i in range(5)]
    for i, image in enumerate(pulled):
        server.add(image, "t%d" % i)
        assert pull(daemon, "%s/app:t%d" % (server.host, i))[0] == 0
    with daemon.dial() as channel:
        stream = channel.unary_stream("/runtime.v1.ImageService/StreamImages")
        whole = channel.unary_unary("/runtime.v1.ImageService/ListImages")(b"", timeout=LONG)
        assert b"".join(stream(b"", timeout=LONG)) == whole
    assert set(images(daemon)) == {digest(i.config) for i in pulled}


def test_images_in_the_configuration_are_listed_as_pinned(daemon, server):
    server.add(image_with())
    assert pull(daemon, server.host + NAME)[0] == 0
    (listed,) = images(daemon).values()
    assert listed["pinned"] == "0"
    daemon.config.write_text("pinned-images: [\"%s/app\"]\n" % server.host)
    daemon.signal(signal.SIGHUP)
    daemon.logged("configuration reloaded")
    (listed,) = images(daemon).values()
    assert listed["pinned"] == "1"


def test_the_pull_of_a_missing_image_fails_with_not_found(daemon, server):
    status, text = pull(daemon, server.host + "/app:missing")
    assert status == 1 and text.startswith("NOT_FOUND ")
    assert server.host + "/app:missing" in text
    assert images(daemon) == {} and leftovers(daemon) == []


def test_invalid_image_names_are_refused(daemon):
    assert pull(daemon, "") == (1, "INVALID_ARGUMENT missing image name")
    status, text = pull(daemon, "a//b")
    assert status == 1 and text.startswith('INVALID_ARGUMENT pull image "a//b": ')


def test_an_unreachable_registry_is_reported_as_unavailable(daemon, server):
    host = server.host
    server.close()
    status, text = pull(daemon, host + NAME)
    server.http.socket.close()
    assert status == 1 and text.startswith("UNAVAILABLE RegistryUnavailable: pull ")
    assert host in text


def guard(server, wanted):
    """Requests without this Authorization header are refused."""
    def before(handler):
        if handler.headers.get("Authorization") == wanted:
            return False
        return server.respond(handler, 401, headers={"WWW-Authenticate": 'Basic realm="x"'})
    server.before = before


def auth(**given):
    numbers = {"username": 1, "password": 2, "auth": 3, "server_address": 4}
    return field(2, b"".join(field(numbers[k], v) for k, v in given.items()))


def test_a_pull_requires_valid_credentials_in_its_request(daemon, server):
    server.add(image_with())
    guard(server, basic("user", "secret word"))
    name = server.host + NAME
    status, text = pull(daemon, name)
    assert status == 1 and text.split()[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED")
    given = {"username": "user", "password": "secret word"}
    status, text = pull(daemon, name, auth(server_address="other.example", **given))
    assert status == 1
    assert pull(daemon, name, auth(server_address="http://" + server.host, **given))[0] == 0
    assert pull(daemon, name, auth(auth=basic("user", "secret word")[6:]))[0] == 0
    # the image is in the store, but these credentials may not pull it
    assert pull(daemon, name, auth(username="user", password="wrong"))[0] == 1
    assert "secret word" not in daemon.log()


def test_a_pull_reports_the_progress_of_each_layer(daemon, server):
    image = image_with()
    server.add(image)
    with daemon.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Pull")
        messages = list(stream(field(1, server.host + NAME), timeout=LONG))
        again = list(stream(field(1, server.host + NAME), timeout=LONG))
        with pytest.raises(grpc.RpcError) as caught:
            list(stream(field(1, server.host + NAME) + field(3, "nonsense"), timeout=LONG))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    end = fields_of(messages[-1])
    assert end == {2: digest(image.config), 3: server.host + "/app@" + digest(image.manifest)}
    assert fields_of(again[-1]) == end
    blobs = [digest(p).encode() for p in image.packed]
    assert all(any(b in message for message in messages[:-1]) for b in blobs)


def hang(server):
    """Blocks blobs of layers. Returns two events: a blob was requested; blobs are unblocked."""
    requested, unblock = threading.Event(), threading.Event()

    def before(handler):
        if "/blobs/" in handler.path and len(server.requests_for("/blobs/")) > 1:
            requested.set()
            unblock.wait(LONG)
        return False
    server.before = before
    return requested, unblock


def test_cancelling_the_call_ends_the_pull(daemon, server):
    server.add(image_with())
    requested, unblock = hang(server)
    with daemon.dial() as channel:
        call = channel.unary_unary("/runtime.v1.ImageService/PullImage").future(
            spec(server.host + NAME), timeout=LONG)
        assert requested.wait(LONG)
        call.cancel()
        wait_until(lambda: leftovers(daemon) == [])
    unblock.set()
    assert images(daemon) == {}
    daemon.logged("call failed method=PullImage code=CANCELLED")
    server.before = lambda handler: False
    assert pull(daemon, server.host + NAME)[0] == 0


def test_a_deadline_ends_the_pull(daemon, server):
    server.add(image_with())
    requested, unblock = hang(server)
    with daemon.dial() as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/runtime.v1.ImageService/PullImage")(
                spec(server.host + NAME), timeout=2)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED and requested.is_set()
    unblock.set()
    wait_until(lambda: leftovers(daemon) == [])


def test_stopping_the_daemon_ends_a_running_pull(daemon, server):
    server.add(image_with())
    requested, unblock = hang(server)
    with daemon.dial() as channel:
        call = channel.unary_unary("/runtime.v1.ImageService/PullImage").future(
            spec(server.host + NAME), timeout=LONG)
        assert requested.wait(LONG)
        pid = daemon.process.pid
        assert daemon.stop() == 0
        assert call.exception(LONG) is not None
    unblock.set()
    assert not [p for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == pid]
    server.before = lambda handler: False
    daemon.start()
    wait_until(lambda: leftovers(daemon) == [])
    assert pull(daemon, server.host + NAME)[0] == 0


def test_complete_layers_survive_a_daemon_killed_during_a_pull(daemon, server):
    image = image_with()
    server.add(image)
    unblock = threading.Event()
    server.before = lambda h: h.path.endswith(digest(image.packed[1])) and not unblock.wait(LONG)
    with daemon.dial() as channel:
        call = channel.unary_unary("/runtime.v1.ImageService/PullImage").future(
            spec(server.host + NAME), timeout=LONG)
        wait_until(lambda: daemon.call("ImageFsInfo")[1].get("image_filesystems.0.inodes_used.value", "0") != "0")
        daemon.process.kill()
        daemon.process.wait(LONG)
        assert call.exception(LONG) is not None
    unblock.set()
    daemon.start()
    wait_until(lambda: leftovers(daemon) == [])
    assert images(daemon) == {}
    assert pull(daemon, server.host + NAME)[0] == 0
    assert [len(server.requests_for(digest(p))) for p in image.packed] == [1, 2]


def test_a_pull_from_a_silent_registry_fails_after_the_pull_timeout(daemon, server):
    server.add(image_with())
    unblock = threading.Event()
    server.before = lambda h: "/manifests/" in h.path and not unblock.wait(LONG)
    assert daemon.stop() == 0
    daemon.command += ["--pull-timeout", "1"]
    daemon.start()
    status, text = pull(daemon, server.host + NAME)
    unblock.set()
    assert status == 1 and text.startswith("DEADLINE_EXCEEDED pull ") and server.host in text


def parent_of(pid):
    try:
        with open("/proc/%s/stat" % pid) as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def test_a_pull_that_ends_while_the_daemon_drains_succeeds(daemon, server):
    image = image_with()
    server.add(image)
    requested, unblock = hang(server)
    assert daemon.stop() == 0
    daemon.command += ["--drain-timeout", str(LONG)]
    daemon.start()
    with daemon.dial() as channel:
        call = channel.unary_unary("/runtime.v1.ImageService/PullImage").future(
            spec(server.host + NAME), timeout=LONG)
        assert requested.wait(LONG)
        daemon.process.terminate()
        daemon.logged("stopping signal=", 2)
        unblock.set()
        assert fields_of(call.result(LONG)) == {1: digest(image.config)}
    assert daemon.process.wait(LONG) == 0
    daemon.process = None


def test_many_concurrent_pulls_succeed(daemon, server):
    pulled = [image_with(label=str(i)) for i in range(4)]
    for i, image in enumerate(pulled):
        server.add(image, "t%d" % i)
    with daemon.dial() as channel:
        method = channel.unary_unary("/runtime.v1.ImageService/PullImage")
        calls = [(i % 4, method.future(spec("%s/app:t%d" % (server.host, i % 4)), timeout=LONG))
                 for i in range(40)]
        for i, call in calls:
            assert fields_of(call.result(LONG)) == {1: digest(pulled[i].config)}
    assert set(images(daemon)) == {digest(i.config) for i in pulled}
    assert len(list((daemon.dir / "root/layers").iterdir())) == 2


def test_an_image_with_more_layers_than_the_initial_descriptor_limit_is_pulled(tmp_path, server):
    image = Image([member("f%d" % i) + END for i in range(150)])
    server.add(image)
    d = Daemon(tmp_path, "--plain-http", server.host, "--disk-reserve", "0",
               prefix=("prlimit", "--nofile=128:4096")).start()
    assert pull(d, server.host + NAME) == (0, {"image_ref": digest(image.config)})
    assert d.stop() == 0


# ---- verify --------------------------------------------------------------------------------

def verify(d, *names, repair=False):
    """Returns [(diff ID, state, damaged)] in the order of the responses."""
    request = b"".join(field(1, n) for n in names) + (b"\x10\x01" if repair else b"")
    with d.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Verify")
        messages = [fields_of(m) for m in stream(request, timeout=LONG)]
    return [(m.get(2, ""), m.get(3, 0), m.get(6, "")) for m in messages]


GOOD, DAMAGED, REPAIRED, NOT_CHECKED = range(4)


def file_of(d, path):
    (found,) = [f / "root" / path for f in (d.dir / "root/layers").iterdir()
                if (f / "root" / path).exists()]
    return found


def test_damage_is_found_and_repaired(daemon, server):
    image = image_with()
    server.add(image)
    name = server.host + NAME
    assert pull(daemon, name)[0] == 0
    good = [(i, GOOD, "") for i in image.diff_ids]
    assert verify(daemon) == good and verify(daemon, name) == good
    file_of(daemon, "etc/name").write_bytes(b"two")
    (first, second) = verify(daemon, digest(image.config))
    assert first[:2] == (image.diff_ids[0], DAMAGED) and first[2].startswith("etc/name: ")
    assert second == good[1]
    server.requests.clear()
    assert verify(daemon, name, repair=True) == [good[1], (image.diff_ids[0], REPAIRED, "")]
    assert file_of(daemon, "etc/name").read_bytes() == b"one"
    blobs = {r[1].rpartition("/")[2] for r in server.requests_for("/blobs/")}
    assert digest(image.packed[0]) in blobs and digest(image.packed[1]) not in blobs
    assert verify(daemon) == good and leftovers(daemon) == []


def test_damage_of_an_image_for_another_platform_is_repaired(daemon, server):
    other = Image(architecture="s390x")
    for image in other, image_with():
        server.add(image)
    index = index_of((other, {"os": "linux", "architecture": "s390x"}),
                     (image, {"os": "linux", "architecture": ARCHITECTURE}))
    for name in "latest", digest(index):
        server.manifests[name] = (OCI + "index.v1+json", index)
    with daemon.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Pull")
        list(stream(field(1, server.host + "/app:latest") + field(3, "linux/s390x"), timeout=LONG))
    before = images(daemon)
    assert list(before) == [digest(other.config)]
    file_of(daemon, "etc/name").write_bytes(b"two")
    assert (other.diff_ids[0], REPAIRED, "") in verify(daemon, repair=True)
    assert images(daemon) == before


def test_a_failed_repair_removes_nothing(daemon, server):
    image = image_with()
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    file_of(daemon, "etc/name").write_bytes(b"two")
    before = images(daemon)
    del server.blobs[digest(image.packed[0])]
    with pytest.raises(grpc.RpcError) as caught:
        verify(daemon, repair=True)
    assert server.host in caught.value.details()
    # the failed repair has removed nothing
    assert images(daemon) == before and file_of(daemon, "etc/name").read_bytes() == b"two"
    assert daemon.call("ImageStatus", spec(server.host + NAME))[1]["image.id"] == digest(image.config)
    assert [m[1] for m in verify(daemon, server.host + NAME)] == [DAMAGED, GOOD]
    server.add(image)
    assert [m[1] for m in verify(daemon, server.host + NAME, repair=True)] == [GOOD, REPAIRED]
    assert file_of(daemon, "etc/name").read_bytes() == b"one"
    assert images(daemon) == before and leftovers(daemon) == []


def test_repair_fetches_a_missing_layer_again(daemon, server):
    image = image_with()
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    assert daemon.stop() == 0
    shutil.rmtree(file_of(daemon, "etc/name").parents[2])
    daemon.start()
    # the image is incomplete, so it is not reported
    assert daemon.call("ImageStatus", spec(server.host + NAME)) == (0, {})
    repository = server.host + NAME.split(":")[0]
    for name in (server.host + NAME, "%s@%s" % (repository, digest(image.manifest)), digest(image.config), digest(image.config)[7:19],
                 "%s%s@%s" % (server.host, NAME, digest(image.manifest))):
        assert [m[1] for m in verify(daemon, name)] == [DAMAGED]
    assert [m[1] for m in verify(daemon, server.host + NAME, repair=True)] == [REPAIRED] * 2
    assert daemon.call("ImageStatus", spec(server.host + NAME))[1]["image.id"]


def test_a_damaged_recipe_is_found(daemon, server):
    server.add(image_with())
    assert pull(daemon, server.host + NAME)[0] == 0
    recipe = file_of(daemon, "etc/name").parents[2] / "recipe"
    recipe.write_bytes(recipe.read_bytes()[:-4])
    found = verify(daemon)
    assert [m[1] for m in found] == [DAMAGED, GOOD] and found[0][2].startswith("recipe: ")


def test_a_layer_that_cannot_be_checked_is_reported_as_not_checked(daemon, server):
    image = Image([member("a", data=b"1") + member("a", data=b"2") + END, member("b", data=b"b") + END])
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    expected = [(image.diff_ids[0], NOT_CHECKED, ""), (image.diff_ids[1], GOOD, "")]
    assert verify(daemon) == expected and verify(daemon, repair=True) == expected


def test_verify_succeeds_without_images_and_fails_for_a_missing_one(daemon):
    assert verify(daemon) == []
    with pytest.raises(grpc.RpcError) as caught:
        verify(daemon, "missing")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == 'image "missing" not found'


# ---- save ----------------------------------------------------------------------------------

def save(d, *names):
    """Returns the archive."""
    with d.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Save")
        pieces = list(stream(b"".join(field(1, n) for n in names), timeout=LONG))
    return b"".join(data_of(p) for p in pieces)


def data_of(message):
    """The content of a message that has only a bytes field with number 1."""
    assert message[0] == 1 << 3 | 2
    at = 1
    while message[at] >= 0x80:
        at += 1
    return message[at + 1:]


def files_of(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


def test_two_images_are_saved_in_one_archive(daemon, server):
    large = os.urandom(3 << 20)
    first = image_with()
    second = Image([directory("etc") + member("etc/name", data=b"one") + END,
                    member("large", data=large) + END])
    server.add(first)
    server.add(second, "second")
    names = [server.host + NAME, server.host + "/app:second"]
    for name in names:
        assert pull(daemon, name)[0] == 0
    files = files_of(save(daemon, *names))
    for name, data in files.items():
        if name.startswith("blobs/"):
            assert name == "blobs/sha256/" + digest(data)[7:]
    blobs = {digest(data) for data in files.values()}
    assert {*first.diff_ids, *second.diff_ids} <= blobs
    assert {digest(first.config), digest(second.config)} <= blobs
    index = json.loads(files["index.json"])["manifests"]
    assert [m["annotations"]["io.containerd.image.name"] for m in index] == names
    assert [m["RepoTags"] for m in json.loads(files["manifest.json"])] == [[n] for n in names]
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")
@pytest.mark.parametrize("kind", ["oci-archive", "docker-archive"])
def test_skopeo_reads_a_saved_archive(daemon, server, tmp_path, kind):
    image = image_with()
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    (tmp_path / "saved.tar").write_bytes(save(daemon, server.host + NAME))
    subprocess.run(["skopeo", "--insecure-policy", "copy", "%s:%s" % (kind, tmp_path / "saved.tar"),
                    "dir:%s" % (tmp_path / "copy")], check=True, timeout=LONG,
                   stdout=subprocess.DEVNULL)
    manifest = json.loads((tmp_path / "copy/manifest.json").read_text())
    assert manifest["config"]["digest"] == digest(image.config)
    assert [m["digest"] for m in manifest["layers"]] == image.diff_ids


def test_a_missing_or_damaged_image_cannot_be_saved(daemon, server):
    server.add(image_with())
    assert pull(daemon, server.host + NAME)[0] == 0
    file_of(daemon, "etc/name").write_bytes(b"two")
    for names, code, text in (
            ([], grpc.StatusCode.INVALID_ARGUMENT, "missing image name"),
            (["missing"], grpc.StatusCode.NOT_FOUND, 'image "missing" not found'),
            ([server.host + NAME], grpc.StatusCode.DATA_LOSS, "etc/name")):
        with pytest.raises(grpc.RpcError) as caught:
            save(daemon, *names)
        assert caught.value.code() == code and text in caught.value.details()
    # a layer with duplicate members cannot be rebuilt from its files
    twice = Image([member("a", data=b"1") + member("a", data=b"2") + END])
    server.add(twice, "twice")
    assert pull(daemon, server.host + "/app:twice")[0] == 0
    (blob,) = (daemon.dir / "root/layers").glob("*/blob")  # stored because the layer cannot be rebuilt
    assert blob.read_bytes() in save(daemon, server.host + "/app:twice")
    blob.unlink()
    with pytest.raises(grpc.RpcError) as caught:
        save(daemon, server.host + "/app:twice")
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert "read the stored blob: No such file" in caught.value.details()


def test_cancelling_the_call_ends_the_save(daemon, server):
    image = Image([member("large", data=os.urandom(64 << 20)) + END], packed=lambda data: data,
                  media="layer.v1.tar")
    server.add(image)
    assert pull(daemon, server.host + NAME)[0] == 0
    with daemon.dial() as channel:
        stream = channel.unary_stream("/hawser.v1.Images/Save")(
            field(1, server.host + NAME), timeout=LONG)
        next(stream)
        stream.cancel()
    daemon.logged("call failed method=Save code=CANCELLED")
    assert daemon.call("RemoveImage", spec(server.host + NAME)) == (0, {})
    assert leftovers(daemon) == []
