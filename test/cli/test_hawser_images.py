# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test_hawser_images.py - the program hawser: image ls, image rm, image inspect, image history
"""
import datetime
import json
import re
import subprocess

from fakeruntime import DIGEST, ESCAPE, ID, OTHER, fail, image, runtime, serve_list  # noqa: F401, a fixture
from hawsercli import HAWSER, fields, message


def ago(**span):
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(**span)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- images ------------------------------------------------------------------------------------

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
    for words in (["images"], ["images", "--json"], ["help"], ["--version"]):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", HAWSER, "--runtime", runtime.path, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert done.stderr == "hawser: write to standard output: Bad file descriptor\n"


# ---- rmi ---------------------------------------------------------------------------------------

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


# ---- image inspect, image history --------------------------------------------------------------

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
