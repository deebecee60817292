# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_cri_pull.py - images through hawser-cri: pull, list, inspect, remove

How:   the registry is the Python server of fetching.py. This tests the responses to clients of CRI
       and hawser.v1; how hawser-fetch handles registries is tested in test_fetch*.py.
"""
import json
import os
import signal
import threading

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from cridaemon import Daemon, field, fields_of
from criimages import NAME, daemon, image_with, images, leftovers, pull, spec  # noqa: F401, a fixture
from fetching import ARCHITECTURE, OCI, Image, Server, basic, digest, index_of
from layers import END, member
from waiting import LONG, wait_until


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
        for seconds in (2, 10, LONG):  # the deadline must be later than the request for the blob
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary("/runtime.v1.ImageService/PullImage")(
                    spec(server.host + NAME), timeout=seconds)
            assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            if requested.is_set():
                break
    assert requested.is_set()
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
