# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test/cli/test_hawser_cli.py - the program hawser: arguments, output, errors

How:   the runtime is a fake in Python (hawsercli.py) that returns what a test needs, also malicious
       responses. test_hawser_runtimes.py tests with real runtimes.
"""
import datetime
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import threading

import pytest

grpc = pytest.importorskip("grpc", reason="python3-grpcio is not installed")
from hawsercli import HAWSER, LONG, Runtime, environment, fields, hawser, message

SOURCE = pathlib.Path(os.environ["HAWSER_SRC"])
ID = "sha256:" + "0123456789abcdef" * 4
OTHER = "sha256:" + "fedcba9876543210" * 4
DIGEST = "example.com/app@" + OTHER
WAITING, DOWNLOADING, UNPACKING, DONE, PRESENT = range(5)
ESCAPE = "\x1b"


@pytest.fixture
def runtime(tmp_path):
    r = Runtime(tmp_path / "sock")
    yield r
    r.stop()


def fail(context, code, text):
    context.abort(getattr(grpc.StatusCode, code), text)


def ago(**span):
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(**span)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- arguments -----------------------------------------------------------------------------

def test_the_version_option_prints_the_version():
    assert hawser("--version") == (0, "hawser 0.2.0\n", "")
    assert hawser("pull", "-V") == (0, "hawser 0.2.0\n", "")


@pytest.mark.parametrize("words, expected", [
    (["bogus"], 'unknown command "bogus"'),
    (["image"], 'unknown command "image"'),
    (["help", "bogus"], 'unknown command "bogus"'),
    (["--bogus", "images"], "unknown option --bogus"),
    (["images", "--repair"], "unknown option --repair"),
    (["images", "--timeuot", "1"], "unknown option --timeuot: did you mean --timeout?"),
    (["--timeout", "1", "images", "--timeout", "2"], "option --timeout is given twice"),
    (["image", "bogus"], 'unknown command "image bogus"'),
    (["images", "a", "b"], "too many arguments"),
    (["rmi"], "missing argument"),
    (["images", "--timeout", "soon"], 'invalid value "soon" for --timeout: want a number of seconds'),
    (["images", "--runtime"], "option --runtime requires a value"),
    (["images", "--runtime", "tcp:1"], 'invalid value "tcp:1" for --runtime: want the path of a socket'),
    (["pull", "a", "--password-stdin"], "--password-stdin requires --creds USER"),
    (["pull", "a", "--creds", ":x"], "invalid value for --creds: want USER or USER:PASSWORD"),
    (["pull", "a", "--creds", "u:x", "--password-stdin"], "--password-stdin conflicts with the password in --creds"),
    (["save", "a", "--format", "zip"], 'invalid value "zip" for --format: want oci or docker'),
])
def test_invalid_arguments_are_refused_with_the_reason(words, expected):
    status, text, errors = hawser(*words)
    assert (status, text) == (1, "") and errors.startswith("hawser: ")
    assert expected in errors.splitlines()[0]
    error = json.loads(hawser("--json", *words)[2])
    assert expected in error["msg"] and error["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("words, expected", [
    (["imagse"], 'did you mean "hawser images"? Run "hawser help" for a list of commands'),
    (["inspect", "a"], 'did you mean "hawser image inspect"? Run "hawser help" for a list of commands'),
    (["image"], "commands are image inspect, image history, image verify;"
                ' run "hawser help" for a list of commands'),
    (["rmi"], 'usage: hawser [OPTIONS] rmi IMAGE...; run "hawser help rmi" for help'),
    (["--bogus"], 'run "hawser help" for a list of options'),
])
def test_usage_errors_have_a_hint(words, expected):
    assert hawser(*words)[2].splitlines()[1] == "hint: " + expected


def test_an_alias_has_the_help_of_its_command():
    for alias, name in {"image pull": "pull", "image ls": "images", "image rm": "rmi",
                        "image load": "load", "image save": "save"}.items():
        text = hawser("help", *alias.split())[1]
        assert text == hawser("help", name)[1] and 'also available as "hawser %s"' % alias in text


def complete(*words):
    """The completions of bash for a command line; the last word is incomplete."""
    script = """source "$HAWSER_SRC/completions/hawser"; COMP_WORDS=(hawser "$@")
                COMP_CWORD=$#; _hawser hawser; echo "${COMPREPLY[@]}" """
    return subprocess.run(["bash", "-c", script, "bash", *words], stdout=subprocess.PIPE, check=True,
                          text=True, env=environment(PATH="%s:%s" % (HAWSER.parent, os.environ["PATH"]))
                          ).stdout.split()


def test_completion_offers_commands_options_and_image_names(runtime, tmp_path, monkeypatch):
    serve_list(runtime)
    assert complete("image", "") == ["inspect", "history", "verify"]
    assert complete("pull", "--pl") == ["--platform"]
    given = ["--runtime", "unix:" + runtime.path]
    assert complete(*given, "rmi", "busy") == ["busybox:1"]
    assert complete(*given, "image", "inspect", "busy") == ["busybox:1"]
    given = ["--runtime", "unix", ":", runtime.path]  # bash splits words at colons
    assert complete(*given, "rmi", "busybox", ":", "") == ["1"]
    assert complete(*given, "rmi", "busybox", ":") == ["1"]
    assert complete(*given, "rmi", "x", "zoo") == ["zoo:2"]
    assert complete("save", "--format", "") == ["oci", "docker"]
    assert complete("--runtime", "") == ["unix:/run/hawser/cri.sock", "unix:/run/containerd/containerd.sock"]
    (tmp_path / "tool.tar").touch()
    monkeypatch.chdir(tmp_path)
    assert complete("load", "to") == complete("save", "-o", "to") == ["tool.tar"]
    assert complete("--runtime", "unix:/nowhere", "rmi", "") == []


def test_completion_leaves_out_names_that_the_shell_would_interpret(runtime, tmp_path):
    names = ["good:1", "a$(touch${IFS}%s/ran)" % tmp_path, "b`touch${IFS}%s/ran`" % tmp_path, "c;d", "e f"]
    runtime.methods["ListImages"] = lambda request, context: message((1, image(ID, names)))
    assert complete("--runtime", runtime.path, "rmi", "") == ["good:1"]
    assert not (tmp_path / "ran").exists()


# ---- connection errors ---------------------------------------------------------------------

def test_a_missing_socket_is_reported_with_a_hint(tmp_path):
    status, text, errors = hawser("--runtime", "unix:%s/none" % tmp_path, "images")
    assert (status, text) == (1, "")
    assert errors == ("hawser: list images: connect to %s/none: No such file or directory\n"
                      "hint: is hawser-cri running? Use --runtime unix:PATH for the socket of another"
                      " runtime\n" % tmp_path)
    status, text, errors = hawser("--json", "--runtime", "%s/none" % tmp_path, "images")
    assert (status, text) == (1, "")
    error = json.loads(errors)
    assert error["code"] == "UNAVAILABLE" and "hawser-cri" in error["hint"]


def test_a_refused_connection_is_reported_with_a_hint(tmp_path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "dead"))
    errors = hawser("--runtime", "unix://%s/dead" % tmp_path, "info")[2]
    assert "Connection refused\nhint: no process listens on this socket: is hawser-cri running?\n" in errors


def test_the_runtime_option_overrides_the_environment(runtime, tmp_path):
    endpoint = {"CONTAINER_RUNTIME_ENDPOINT": "unix://" + runtime.path}
    assert "fake" in hawser("version", **endpoint)[1]
    # the option takes precedence
    other = tmp_path / "other.sock"
    assert str(other) in hawser("--runtime", "unix:%s" % other, "version", **endpoint)[2]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run as another user")
def test_a_socket_that_the_user_has_no_permission_to_open_is_reported_with_a_hint(runtime, tmp_path):
    os.chmod(runtime.path, 0o600)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            os.chmod(parent, 0o711)
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", HAWSER, "--runtime",
                           "unix:" + runtime.path, "images"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "Permission denied\nhint: only root and the owner of the socket may connect: run hawser as root\n" in done.stderr


def test_a_runtime_that_does_not_respond_times_out(tmp_path):
    """The runtime accepts the connection and sends nothing."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "silent"))
        s.listen()
        status, _, errors = hawser("--runtime", "unix:%s/silent" % tmp_path, "--timeout", "1", "images")
    assert status == 1 and "hint: use --timeout SECONDS for a longer timeout\n" in errors


def test_a_server_that_is_not_a_runtime_is_reported(tmp_path):
    def serve(s):
        with s.accept()[0] as c:
            c.sendall(b"SSH-2.0-no\r\n" * 10)
            c.recv(1000)

    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "ssh"))
        s.listen()
        threading.Thread(target=serve, args=(s,), daemon=True).start()
        status, text, errors = hawser("--runtime", "unix:%s/ssh" % tmp_path, "images")
    assert (status, text) == (1, "") and errors.startswith("hawser: list images: ")


# ---- images --------------------------------------------------------------------------------

def image(image_id, tags=(), digests=(), size=1234567, more=()):
    return message((1, image_id), *((2, t) for t in tags), *((3, d) for d in digests), (4, size), *more)


def serve_list(runtime):
    all_images = [image(ID, ["zoo:2", "busybox:1"], [DIGEST], more=[(5, message((1, 1000)))]),
                  image(OTHER, [], [DIGEST], 999, [(6, "www-data"), (8, 1)]),
                  image("sha256:" + "ab" * 32, size=5 * 10**9)]
    runtime.methods["ListImages"] = lambda request, context: message(*((1, i) for i in all_images))


def test_images_are_listed_as_a_table_as_names_as_ids_and_as_json(runtime):
    serve_list(runtime)
    assert runtime.run("images") == (0, (
        "IMAGE                                ID              SIZE\n"
        "<none>                               abababababab  5.0 GB\n"
        "busybox:1                            0123456789ab  1.2 MB\n"
        "example.com/app@sha256:fedcba987654  fedcba987654   999 B\n"
        "zoo:2                                0123456789ab  1.2 MB\n"), "")
    assert runtime.run("images", "--names")[1] == "busybox:1\n%s\nzoo:2\n" % DIGEST
    assert runtime.run("images", "-q")[1] == "%s\n%s\nsha256:%s\n" % (ID, OTHER, "ab" * 32)
    images = json.loads(runtime.run("images", "--json")[1])["images"]
    assert images[0] == {"id": ID, "repoTags": ["zoo:2", "busybox:1"], "repoDigests": [DIGEST],
                         "size": 1234567, "uid": {"value": 1000}, "username": "", "pinned": False}
    assert images[1]["username"] == "www-data" and images[1]["pinned"] is True


def test_the_long_list_of_images_shows_age_user_and_pinned(runtime):
    serve_list(runtime)
    serve_status(runtime, {"created": ago(days=12, hours=1)})
    lines = runtime.run("images", "-l")[1].splitlines()
    assert lines[0].split() == ["IMAGE", "ID", "SIZE", "AGE", "USER", "PINNED"]
    assert lines[2].split() == ["busybox:1", "0123456789ab", "1.2", "MB", "12d", "1000"]
    assert lines[3].split()[1:] == ["fedcba987654", "999", "B", "12d", "www-data", "yes"]


def test_a_name_is_sent_as_filter_for_the_list_of_images(runtime):
    def serve(request, context):
        assert fields(fields(fields(request)[0][1])[0][1]) == [(1, b"busybox:1")]
        return b""
    runtime.methods["ListImages"] = serve
    assert runtime.run("images", "busybox:1") == (0, "IMAGE  ID  SIZE\n", "")


def test_the_list_of_images_fits_the_terminal(runtime):
    serve_list(runtime)
    status, shown = runtime.terminal("images", columns=40).end()
    lines = shown.splitlines()
    assert status == 0 and max(map(len, lines)) == 40 and ESCAPE not in shown
    assert lines[3].startswith("example.com/app...  ") and lines[3].endswith("fedcba987654   999 B")


def test_escape_sequences_from_the_runtime_are_replaced(runtime):
    evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202ename\r\n"
    runtime.methods["ListImages"] = lambda request, context: message((1, image(evil, [evil], [evil])))
    runtime.methods["ImageStatus"] = lambda request, context: fail(context, "INTERNAL", evil)
    for words in (["images"], ["images", "-q"], ["images", "--names"], ["images", "--json"],
                  ["rmi", "x"], ["image", "inspect", "x"]):
        for shown in runtime.run(*words)[1:]:
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), words
    assert json.loads(runtime.run("images", "--json")[1])["images"][0]["id"] == evil


def test_a_failed_write_to_standard_output_is_reported(runtime):
    serve_list(runtime)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([HAWSER, "--runtime", runtime.path, "images"], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "hawser: write to standard output: No space left on device\n"


# ---- rmi -----------------------------------------------------------------------------------

def test_rmi_removes_images_and_reports_an_error_for_each_failure(runtime):
    removed = []

    def status(request, context):
        name = fields(fields(request)[0][1])[0][1].decode()
        if name == "stuck":
            return message((1, image("stuck-id")))
        return message((1, image(ID, ["a:1", "b:1"], [DIGEST]))) if name == "a:1" else b""

    def remove(request, context):
        removed.append(fields(fields(request)[0][1])[0][1].decode())
        if removed[-1] == "stuck-id":
            fail(context, "FAILED_PRECONDITION", "in use by c1")
        return b""

    runtime.methods.update(ImageStatus=status, RemoveImage=remove)
    assert runtime.run("rmi", "a:1") == (
        0, "untagged a:1\nuntagged b:1\nuntagged %s\nremoved  %s\n" % (DIGEST, ID), "")
    assert removed == [ID]
    status, text, errors = runtime.run("rmi", "none", "stuck", "a:1")
    assert status == 1 and text.endswith("removed  %s\n" % ID)
    assert errors == ('hawser: image "none": not found\n'
                      'hawser: remove image "stuck": in use by c1\n'
                      'hint: run "hawser images" for a list of images\n')
    assert runtime.run("rmi", "-f", "none") == (0, "", "")
    assert json.loads(runtime.run("rmi", "--json", "a:1")[1]) == {"removed": [ID]}


# ---- image inspect, image history ----------------------------------------------------------

SPEC = {"created": "2020-02-03T04:05:06Z", "os": "linux", "architecture": "arm64", "variant": "v8",
        "config": {"User": "7", "Env": ["A=b", "C=d"], "Entrypoint": ["/bin/sh", "-c"],
                   "Cmd": ["echo hi"], "WorkingDir": "/w", "Labels": {"l": "m"}, "StopSignal": "SIGINT",
                   "ExposedPorts": {"80/tcp": {}}, "Volumes": {"/data": {}}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "1" * 64, "sha256:" + "2" * 64]}}


def serve_status(runtime, spec, key="info"):
    def serve(request, context):
        info = message((1, key), (2, json.dumps({"chainID": "c", "imageSpec": spec})))
        verbose = dict(fields(request)).get(2)
        return message((1, image(ID, ["a:1"], [DIGEST])), *([(2, info)] if verbose else []))
    runtime.methods["ImageStatus"] = serve


def test_inspect_shows_an_image_and_its_configuration(runtime):
    serve_status(runtime, SPEC)
    status, text, _ = runtime.run("image", "inspect", "a:1")
    text = re.sub(r"\(\d+y ago\)", "(Ny ago)", text)
    assert (status, text) == (0, (
        "id            " + ID + "\n"
        "names         a:1\n"
        "digests       " + DIGEST + "\n"
        "size          1.2 MB\n"
        "pinned        no\n"
        "created       2020-02-03T04:05:06Z (Ny ago)\n"
        "platform      linux/arm64/v8\n"
        "user          7\n"
        "entrypoint    /bin/sh -c\n"
        "command       \"echo hi\"\n"
        "working dir   /w\n"
        "stop signal   SIGINT\n"
        "environment   A=b\n"
        "              C=d\n"
        "ports         80/tcp\n"
        "volumes       /data\n"
        "labels        l=m\n"
        "layers        sha256:" + "1" * 64 + "\n"
        "              sha256:" + "2" * 64 + "\n"))
    value = json.loads(runtime.run("image", "inspect", "--json", "a:1")[1])
    assert value["image"]["id"] == ID
    assert value["info"]["info"] == {"chainID": "c", "imageSpec": SPEC}


def test_inspect_works_but_history_fails_if_the_image_configuration_is_missing(runtime):
    serve_status(runtime, SPEC, key="other")
    status, text, _ = runtime.run("image", "inspect", "a:1")
    assert status == 0 and text.endswith("pinned        no\n")
    status, text, errors = runtime.run("image", "history", "a:1")
    assert (status, text) == (1, "")
    assert errors == 'hawser: image "a:1": the runtime does not report the image configuration\n'


def test_inspect_reports_a_malformed_configuration(runtime):
    serve_status(runtime, {"config": {"Env": 5}})
    status, text, errors = runtime.run("image", "inspect", "a:1")
    assert (status, text) == (1, "") and "Env" in errors
    assert 'image "a:1": image configuration: ' in errors


def test_history_shows_the_latest_step_first(runtime):
    steps = [{"created": ago(days=3, hours=1), "created_by": "ADD root.tar"},
             {"created": ago(hours=5, minutes=1), "created_by": "ENV A=b", "empty_layer": True},
             {"created": ago(minutes=7, seconds=30), "created_by": "COPY\nx /", "comment": "kit"}]
    serve_status(runtime, {**SPEC, "history": steps})
    assert runtime.run("image", "history", "a:1") == (0, (
        "AGE  LAYER         CREATED BY    COMMENT\n"
        " 7m  222222222222  COPY x /      kit\n"
        " 5h  -             ENV A=b       \n"
        " 3d  111111111111  ADD root.tar  \n"), "")
    history = json.loads(runtime.run("image", "history", "--json", "a:1")[1])["history"]
    assert [h["diffId"][7:9] for h in history] == ["11", "", "22"]
    assert history[2]["createdBy"] == "COPY\nx /"


def test_history_shows_steps_that_have_no_layer(runtime):
    serve_status(runtime, {**SPEC, "history": [{"created_by": "%d" % i} for i in range(4)]})
    lines = runtime.run("image", "history", "a:1")[1].splitlines()
    assert [line.split() for line in lines[1:]] == [["-", "3"], ["-", "2"], ["222222222222", "1"],
                                                   ["111111111111", "0"]]


# ---- pull ----------------------------------------------------------------------------------

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


# ---- load and save -------------------------------------------------------------------------

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


# ---- image verify --------------------------------------------------------------------------

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


# ---- info, version, unsupported calls ------------------------------------------------------

def serve_info(runtime):
    condition = message((1, "RuntimeReady"), (2, 1))
    other = message((1, "NetworkReady"), (3, "NetworkPluginNotReady"), (4, "no network"))
    usage = message((1, 5), (2, message((1, "/var/lib/fake"))), (3, message((1, 5000))), (4, message((1, 3))))
    runtime.methods.update(
        Status=lambda request, context: message((1, message((1, condition), (1, other)))),
        ImageFsInfo=lambda request, context: message((1, usage)))


def test_info_shows_the_runtime_and_the_daemon(runtime):
    serve_info(runtime)
    plain = ("hawser        0.2.0\n"
             "runtime       fake 7.1\n"
             "api           CRI v1\n"
             "socket        " + runtime.path + "\n"
             "RuntimeReady  yes\n"
             "NetworkReady  no: NetworkPluginNotReady: no network\n"
             "image store   /var/lib/fake (5.0 kB)\n")
    assert runtime.run("info") == (0, plain, "")
    value = json.loads(runtime.run("info", "--json")[1])
    assert sorted(value) == ["imageFsInfo", "status", "version"]
    assert value["imageFsInfo"]["imageFilesystems"][0]["usedBytes"] == {"value": 5000}
    started = int(datetime.datetime.now().timestamp() - 3 * 3600 - 60) * 10**9
    runtime.methods["Info"] = lambda request, context: message(
        (1, "7.1"), (2, started), (3, 42), (4, "/r"), (5, "/s"), (7, 2), (8, 9), (9, 7000), (10, 1),
        (11, 512), (12, "6.1"))
    assert runtime.run("info") == (0, plain + (
        "process       42, running for 3h\n"
        "images        2, with 9 layers (7.0 kB)\n"
        "root          /r\n"
        "state         /s\n"
        "config        none\n"
        "long calls    1, at most 512\n"
        "kernel        6.1\n"), "")
    assert json.loads(runtime.run("info", "--json")[1])["daemon"]["pid"] == 42


def test_version_shows_hawser_and_the_runtime(runtime, tmp_path):
    assert runtime.run("version") == (
        0, "hawser        0.2.0\nruntime       fake 7.1\napi           CRI v1\n", "")
    value = json.loads(runtime.run("version", "--json")[1])
    assert value["hawser"] == "0.2.0" and value["runtime"]["runtimeName"] == "fake"
    status, text, errors = hawser("--runtime", "unix:%s/none" % tmp_path, "version")
    assert (status, text) == (1, "hawser        0.2.0\n") and "is hawser-cri running?" in errors


def test_a_runtime_without_cri_is_reported_with_a_hint(runtime):
    """Like containerd with its CRI plugin disabled."""
    for words in (["images"], ["pull", "a"], ["image", "inspect", "a"]):
        status, text, errors = runtime.run(*words)
        assert (status, text) == (1, "")
        assert "\nhint: does the runtime support CRI v1? " in errors
    del runtime.methods["Version"]
    errors = runtime.run("save", "a")[2]
    assert errors.startswith("hawser: save: not supported by the runtime at %s\n" % runtime.path)


@pytest.mark.parametrize("words", [["load"], ["save", "a"], ["image", "verify"]])
def test_an_unsupported_call_is_reported_with_a_hint(runtime, words):
    name = " ".join(w for w in words if w != "a")
    status, text, errors = runtime.run(*words, stdin=b"x")
    assert (status, text) == (1, "")
    assert errors == ("hawser: %s: not supported by fake 7.1\nhint: this requires hawser-cri of the same version"
                      " as hawser, or later\n" % name)
    error = json.loads(runtime.run("--json", *words, stdin=b"x")[2])
    assert error["code"] == "UNIMPLEMENTED"
