# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test_hawser_transfer.py - the program hawser: pull, load, save and image verify
"""
import json
import os
import re
import signal
import stat
import subprocess
import threading

import pytest

from fakeruntime import DIGEST, ESCAPE, ID, OTHER, fail, runtime  # noqa: F401, a fixture
from hawsercli import HAWSER, LONG, fields, message

WAITING, DOWNLOADING, UNPACKING, DONE, PRESENT = range(5)


# ---- pull --------------------------------------------------------------------------------------

def layer(name, state, done=0, total=0):
    return (1, message((1, "sha256:" + name * 64), (2, state), (3, done), (4, total)))


def serve_pull(runtime, seen=None):
    def serve(request, context):
        if seen is not None:
            seen.append(request)
        yield message(layer("a", WAITING, 0, 4000000), layer("b", PRESENT, 0, 7000))
        yield message(layer("a", DOWNLOADING, 1000000, 4000000))
        yield message(layer("a", DOWNLOADING, 3000000, 4000000))
        yield message(layer("a", UNPACKING, 4000000, 4000000))
        yield message(layer("a", DONE, 4000000, 4000000))
        yield message((2, ID), (3, DIGEST))
    runtime.methods["Pull"] = serve


def test_a_pull_without_a_terminal_prints_one_line_per_change(runtime):
    serve_pull(runtime)
    assert runtime.run("pull", "app") == (0, DIGEST + "\n", (
        "aaaaaaaaaaaa  waiting      4.0 MB\n"
        "bbbbbbbbbbbb  present      7.0 kB\n"
        "aaaaaaaaaaaa  downloading  1.0 MB / 4.0 MB\n"
        "aaaaaaaaaaaa  unpacking    4.0 MB / 4.0 MB\n"
        "aaaaaaaaaaaa  done         4.0 MB\n"))
    assert runtime.run("pull", "-q", "app") == (0, ID + "\n", "")
    assert json.loads(runtime.run("pull", "--json", "app")[1]) == {
        "image": "app", "imageId": ID, "imageRef": DIGEST}


def test_a_pull_on_a_terminal_redraws_its_progress(runtime):
    serve_pull(runtime)
    status, shown = runtime.terminal("pull", "app").end()
    assert status == 0 and shown.endswith("2 of 2 layers, 4.0 MB / 4.0 MB\x1b[K\n\x1b[J" + DIGEST + "\n")
    frames = shown.split("\r\x1b[3A")
    assert frames[0] == ("aaaaaaaaaaaa  waiting      4.0 MB\x1b[K\n"
                         "bbbbbbbbbbbb  present      7.0 kB\x1b[K\n"
                         "1 of 2 layers, 0 B / 4.0 MB\x1b[K\n\x1b[J")
    assert frames[1].startswith("aaaaaaaaaaaa  downloading  [=======>   ")
    assert all(len(line.replace("\x1b[K", "")) <= 80 for line in frames[1].splitlines())


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": ""}, {"NO_COLOR": "1"}])
def test_a_pull_on_a_dumb_terminal_prints_no_escape_sequences(runtime, env):
    serve_pull(runtime)
    status, shown = runtime.terminal("pull", "app", **env).end()
    assert status == 0 and ESCAPE not in shown
    assert shown.endswith("aaaaaaaaaaaa  done         4.0 MB\n" + DIGEST + "\n")


def test_a_failed_pull_prints_the_error_and_a_hint(runtime):
    def serve(request, context):
        yield message(layer("a", DOWNLOADING, 1, 2))
        fail(context, code, "registry.example says no")

    runtime.methods["Pull"] = serve
    for code, hint in (("UNAUTHENTICATED", "--creds USER"), ("NOT_FOUND", "check name and tag"),
                       ("UNAVAILABLE", "reachable"), ("PERMISSION_DENIED", "--creds USER")):
        status, text, errors = runtime.run("pull", "app:1")
        assert (status, text) == (1, "")
        lines = errors.splitlines()[-2:]
        assert lines[0] == 'hawser: pull "app:1": registry.example says no'
        assert lines[1].startswith("hint: ") and hint in lines[1]


def test_the_hint_for_a_full_disk_says_to_free_disk_space(runtime):
    def serve(request, context):
        fail(context, "RESOURCE_EXHAUSTED", text)

    runtime.methods["Pull"] = serve
    for text, hint in (("out of disk space: pull app:1: write", "free disk space"),
                       ("call queue full", "try again later")):
        status, _, errors = runtime.run("pull", "app:1")
        assert status == 1 and hint in errors.splitlines()[-1]
    text = "message too large: 17000000 bytes, limit 16777216"  # it does not help to try again
    assert "hint" not in runtime.run("pull", "app:1")[2]


def test_a_pull_without_an_image_id_in_the_response_fails(runtime):
    runtime.methods["Pull"] = lambda request, context: iter([message(layer("a", DONE))])
    status, text, errors = runtime.run("pull", "app")
    assert (status, text) == (1, "")
    assert errors.endswith('hawser: pull "app": the runtime returned no image ID\n')


def test_a_pull_with_too_many_layers_fails(runtime):
    def serve(request, context):
        for i in range(5000):
            yield message((1, message((1, "sha256:%d" % i))))

    runtime.methods["Pull"] = serve
    status, _, errors = runtime.run("pull", "app")
    assert status == 1 and errors.endswith("too many layers: the runtime reported more than 4096\n")


def credentials(request):
    return {n: v.decode() for n, v in fields(dict(fields(request)).get(2, b""))}


def test_pull_options_are_sent_to_the_runtime(runtime):
    seen = []
    serve_pull(runtime, seen)
    runtime.run("pull", "app", "--creds", "ann:se:cret", "--platform", "linux/arm64")
    assert dict(fields(seen[0]))[1] == b"app" and dict(fields(seen[0]))[3] == b"linux/arm64"
    assert credentials(seen[0]) == {1: "ann", 2: "se:cret"}
    runtime.run("pull", "app", "--creds", "ann", "--password-stdin", stdin=b"typed\n")
    assert credentials(seen[1]) == {1: "ann", 2: "typed"}
    runtime.run("pull", "app")
    assert 2 not in dict(fields(seen[2]))
    status, _, errors = runtime.run("pull", "app", "--creds", "ann", "--password-stdin")
    assert status == 1 and "--password-stdin: standard input is empty" in errors
    assert len(seen) == 3


def test_a_pull_prompts_for_the_password(runtime):
    seen = []
    serve_pull(runtime, seen)
    t = runtime.terminal("pull", "-q", "app", "--creds", "ann")
    t.wait_for("Password for ann: ")
    assert not t.echoes()
    t.type("hidden\n")
    status, shown = t.end()
    assert (status, shown) == (0, "Password for ann: \n%s\n" % ID)
    assert credentials(seen[0]) == {1: "ann", 2: "hidden"}


def test_ctrl_c_at_the_password_prompt_restores_the_echo(runtime):
    serve_pull(runtime)
    t = runtime.terminal("pull", "app", "--creds", "ann")
    t.wait_for("Password for ann: ")
    assert not t.echoes()
    t.type("\x03")
    while t.read_some():
        if "hawser: " in t.shown:
            assert t.echoes()
    assert t.end()[0] == 1
    assert "Interrupted system call" in t.shown and "/hawser.v1.Images/Pull" not in runtime.asked


def test_a_pull_that_cannot_prompt_for_the_password_fails(runtime):
    done = subprocess.run([HAWSER, "--runtime", runtime.path, "pull", "app", "--creds", "ann"],
                          start_new_session=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "use --password-stdin to read it from standard input" in done.stderr


def test_a_pull_uses_cri_if_the_runtime_lacks_hawser_v1(runtime):
    seen = []

    def serve(request, context):
        seen.append(dict(fields(request)))
        return message((1, ID))

    runtime.methods["PullImage"] = serve
    assert runtime.run("pull", "app", "--creds", "ann:x") == (0, ID + "\n", "")
    assert fields(seen[0][1]) == [(1, b"app")]
    assert fields(seen[0][2]) == [(1, b"ann"), (2, b"x")]
    assert json.loads(runtime.run("pull", "--json", "app")[1]) == {
        "image": "app", "imageId": ID, "imageRef": ""}
    status, text, errors = runtime.run("pull", "app", "--platform", "linux/arm64")
    assert (status, text) == (1, "")
    assert errors.startswith("hawser: --platform: not supported by fake 7.1\nhint: this requires hawser-cri")
    assert len(seen) == 2


# ---- load and save -----------------------------------------------------------------------------

def serve_load(runtime, seen):
    def serve(requests, context):
        for request in requests:
            seen.append(fields(request))
        return message((1, message((1, ID), (2, "a:1"), (2, "b:1"))), (1, message((1, OTHER))))
    runtime.methods["Load"] = serve


def data_of(seen):
    return b"".join(v for request in seen for n, v in request if n == 3)


def test_load_sends_the_archive_and_prints_the_images(runtime, tmp_path):
    archive, seen = os.urandom(3_000_000), []
    (tmp_path / "a.tar").write_bytes(archive)
    serve_load(runtime, seen)
    loaded = "loaded a:1 (0123456789ab)\nloaded b:1 (0123456789ab)\nloaded fedcba987654\n"
    assert runtime.run("load", tmp_path / "a.tar") == (0, loaded, "")
    assert data_of(seen) == archive and not [n for n, _ in seen[0] if n in (1, 2)]
    assert max(len(v) for request in seen for n, v in request) <= 1 << 20
    seen.clear()
    assert runtime.run("load", "--format", "docker", "--name", "x:1", "--name", "y:1",
                       stdin=archive) == (0, loaded, "")
    assert data_of(seen) == archive
    assert [f for f in seen[0] if f[0] != 3] == [(1, 2), (2, b"x:1"), (2, b"y:1")]
    assert not [n for request in seen[1:] for n, _ in request if n != 3]
    value = json.loads(runtime.run("load", "--json", "-", stdin=b"x")[1])
    assert value == {"images": [{"id": ID, "names": ["a:1", "b:1"]}, {"id": OTHER, "names": []}]}


def test_a_failed_load_prints_the_error(runtime, tmp_path):
    status, text, errors = runtime.run("load", tmp_path / "none")
    assert (status, text) == (1, "") and "open %s/none: No such file" % tmp_path in errors
    runtime.methods["Load"] = lambda requests, context: fail(context, "INVALID_ARGUMENT", "no archive")
    status, text, errors = runtime.run("load", stdin=b"x" * 5_000_000)
    assert (status, text, errors) == (1, "", "hawser: standard input: no archive\n")
    status, shown = runtime.terminal("load").end()
    assert status == 1 and "cannot read an archive from a terminal" in shown


def serve_save(runtime, archive, seen=None, error=None):
    def serve(request, context):
        if seen is not None:
            seen.append(fields(request))
        for at in range(0, len(archive), 700_001):
            yield message((1, archive[at:at + 700_001]))
        if error:
            fail(context, "DATA_LOSS", error)
    runtime.methods["Save"] = serve


def test_save_writes_the_archive_to_a_file_or_to_standard_output(runtime, tmp_path):
    archive, seen = os.urandom(3_000_000), []
    serve_save(runtime, archive, seen)
    assert runtime.run("save", "a:1", "b:1", text=False) == (0, archive, "")
    assert seen[0] == [(1, b"a:1"), (1, b"b:1")]
    file = tmp_path / "out/a.tar"
    file.parent.mkdir()
    file.write_bytes(b"before")
    assert runtime.run("save", "-o", file, "--format", "docker", "a:1") == (0, "", "")
    assert file.read_bytes() == archive and os.listdir(file.parent) == ["a.tar"]
    assert seen[1] == [(1, b"a:1"), (2, 2)]
    assert runtime.run("save", "-o", "/dev/null", "a:1") == (0, "", "")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    status, shown = runtime.terminal("save", "a:1").end()
    assert status == 1 and "cannot write an archive to a terminal" in shown


def test_a_failed_save_does_not_change_the_file(runtime, tmp_path):
    serve_save(runtime, b"x" * 1_000_000, error="layer lost")
    file = tmp_path / "out/a.tar"
    file.parent.mkdir()
    assert runtime.run("save", "-o", file, "a:1") == (1, "", "hawser: layer lost\n")
    assert os.listdir(file.parent) == []
    file.write_bytes(b"before")
    assert runtime.run("save", "-o", file, "a:1")[0] == 1
    assert file.read_bytes() == b"before" and os.listdir(file.parent) == ["a.tar"]
    status, _, errors = runtime.run("save", "-o", tmp_path / "none/a.tar", "a:1")
    assert status == 1 and "write %s/none/a.tar: No such file or directory" % tmp_path in errors
    with open("/dev/full", "wb") as full:
        done = subprocess.run([HAWSER, "--runtime", runtime.path, "save", "a:1"], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "write the archive: " in done.stderr
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", HAWSER, "--runtime", runtime.path, "save", "a:1"],
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "Bad file descriptor" in done.stderr


def test_an_interrupted_save_leaves_no_file(runtime, tmp_path):
    arrived, over = threading.Event(), threading.Event()

    def serve(request, context):
        context.add_callback(over.set)
        yield message((1, b"x" * 1000))
        arrived.set()
        over.wait(LONG)

    runtime.methods["Save"] = serve
    (tmp_path / "out").mkdir()
    p = subprocess.Popen([HAWSER, "--runtime", runtime.path, "save", "-o", tmp_path / "out/a.tar", "a"])
    assert arrived.wait(LONG)
    assert os.listdir(tmp_path / "out") == [".a.tar~"]
    p.send_signal(signal.SIGTERM)
    assert p.wait(LONG) == 128 + signal.SIGTERM
    assert over.wait(LONG) and os.listdir(tmp_path / "out") == []


def test_load_and_save_show_progress_on_a_terminal(runtime, tmp_path):
    archive, file = b"x" * 2_000_000, tmp_path / "a.tar"
    file.write_bytes(archive)
    serve_load(runtime, [])
    status, shown = runtime.terminal("load", file, columns=60).end()
    assert status == 0 and re.match(r"\r\x1b\[Kloading  \[=+> +\]  [0-9.]+ kB / 2.0 MB", shown)
    assert shown.rpartition("\r\x1b[K")[2].startswith("loaded a:1 ")
    serve_save(runtime, archive)
    status, shown = runtime.terminal("save", "-o", file, "a:1").end()
    assert status == 0 and shown.startswith("\r\x1b[Ksaving  700.0 kB")
    assert shown.endswith("\r\x1b[K") and file.read_bytes() == archive
    status, shown = runtime.terminal("save", "-o", file, "a:1", TERM="dumb").end()
    assert (status, shown) == (0, "")


# ---- image verify ------------------------------------------------------------------------------

def serve_verify(runtime, states, seen=None):
    def serve(request, context):
        if seen is not None:
            seen.append(fields(request))
        for i, state in enumerate(states):
            paths = ["etc/\x1bpasswd"] if state else []
            yield message((1, ID), (2, "sha256:" + str(i) * 64), (3, state), (4, 12), (5, 3400),
                          *((6, p) for p in paths))
    runtime.methods["Verify"] = serve


def test_verify_lists_each_layer_and_fails_if_one_is_damaged(runtime):
    seen = []
    serve_verify(runtime, [0, 0], seen)
    assert runtime.run("image", "verify") == (0, (
        "0123456789ab  000000000000  good            12 files     3.4 kB\n"
        "0123456789ab  111111111111  good            12 files     3.4 kB\n"
        "2 layers, 0 damaged, 0 repaired\n"), "")
    assert seen == [[]]
    serve_verify(runtime, [0, 1], seen)
    status, text, errors = runtime.run("image", "verify", "a", "b")
    assert status == 1 and errors == "hawser: 1 of 2 layers are damaged; --repair pulls them again\n"
    assert text.splitlines()[1:] == [
        "0123456789ab  111111111111  DAMAGED         12 files     3.4 kB", "    etc/?passwd",
        "2 layers, 1 damaged, 0 repaired"]
    assert seen[1] == [(1, b"a"), (1, b"b")]
    serve_verify(runtime, [2], seen)
    status, text, errors = runtime.run("image", "verify", "--repair")
    assert (status, errors) == (0, "") and text.endswith("1 layers, 0 damaged, 1 repaired\n")
    assert seen[2] == [(2, 1)]
    layers = json.loads(runtime.run("image", "verify", "--json")[1])["layers"]
    assert layers[0]["state"] == "REPAIRED" and layers[0]["damaged"] == ["etc/\x1bpasswd"]
    serve_verify(runtime, [0, 3], seen)
    status, text, errors = runtime.run("image", "verify")
    assert (status, errors) == (0, "") and text.endswith("2 layers, 0 damaged, 0 repaired, 1 not checked\n")
    assert "111111111111  unknown  " in text


def test_verify_prints_the_layers_before_an_error(runtime):
    def serve(request, context):
        yield message((1, ID), (2, "sha256:" + "0" * 64), (3, 1))
        fail(context, "UNAVAILABLE", "no such host")
    runtime.methods["Verify"] = serve
    status, text, errors = runtime.run("image", "verify", "--repair")
    assert status == 1 and "no such host" in errors
    assert text.endswith("1 layers, 1 damaged, 0 repaired\n")
    status, text, errors = runtime.run("--json", "image", "verify", "--repair")
    assert status == 1 and json.loads(text)["layers"][0]["state"] == "DAMAGED"
    assert "no such host" in errors


# ---- image recover -----------------------------------------------------------------------------

def serve_recover(runtime, *answer):
    runtime.methods["Recover"] = lambda request, context: message(*answer)


def test_recover_prints_images_and_what_must_be_pulled_again(runtime):
    image = message((1, "sha256:" + "a" * 64), (2, "docker.io/library/a:1"), (2, "docker.io/library/a:2"))
    serve_recover(runtime, (1, 1), (2, image), (2, message((1, "sha256:" + "b" * 64))), (3, 5),
                  (5, "docker.io/library/\x1bc:1"), (5, "docker.io/library/d:1"))
    assert runtime.run("image", "recover") == (0, (
        "docker.io/library/a:1\nsha256:%s\n2 images and 5 layers recovered\n"
        "to be pulled again:\n  docker.io/library/?c:1\n  docker.io/library/d:1\n" % ("b" * 64)), "")
    answer = json.loads(runtime.run("--json", "image", "recover")[1])
    assert answer["missing"][1] == "docker.io/library/d:1" and len(answer["images"]) == 2


def test_recover_says_if_nothing_was_lost_or_if_names_are_not_known(runtime):
    serve_recover(runtime)
    assert runtime.run("image", "recover") == (
        0, "nothing to recover: the database of the image store is complete\n", "")
    serve_recover(runtime, (1, 1), (4, 7), (6, "/var/lib/hawser/unrecovered"))
    status, text, errors = runtime.run("image", "recover")
    assert (status, errors) == (0, "") and text == (
        "0 images and 0 layers recovered\n"
        "7 layers not recovered: the files that are needed for it are missing or damaged\n"
        "what could not be recovered was moved, and can be deleted: /var/lib/hawser/unrecovered\n"
        "the names of their images are not known: pull the images that this node needs\n")
