# SPDX-License-Identifier: Apache-2.0
"""
test/cri/test_containers_users.py - the user and the groups of a container: of the request, of the image, and of the
image's passwd and group
"""
import tarfile

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from containers import containers  # noqa: F401, a fixture
from poddaemon import refused

PASSWD = "root:x:0:0:root:/root:/bin/sh\nwww:x:33:34::/var/www:/bin/sh\nnohome:x:50:51::relative:/bin/sh\n"
GROUP = "root:x:0:\nadm:x:4:www,nohome\nssl:x:113:a,www\nwheel:x:10:root\n"
CONTEXT = "linux.security_context."
MERGE, STRICT = range(2)
FILES = [("etc/passwd", PASSWD.encode(), {}), ("etc/group", GROUP.encode(), {})]


def load(d, user="", files=FILES, name="users"):
    return d.load("hawser.test/%s:1" % name, files=files, User=user)


def number(n):
    return {"value": n}


def user_of(d, pod, **request):
    """User, group, groups and HOME of a process; the status must say the same, also after a restart."""
    d.cri.outputs += 1
    container = d.cri.run_container(pod, name="user%d" % d.cri.outputs, **request)
    script = "id -u; id -g; grep Groups: /proc/self/status; echo $HOME"
    uid, gid, groups, home = d.cri.sh(container, script).splitlines()
    groups = sorted(map(int, groups.split()[1:]))
    status = d.cri.container(container).user.linux
    assert (status.uid, status.gid, sorted(status.supplemental_groups)) == (int(uid), int(gid), groups)
    return int(uid), int(gid), groups, home


@pytest.mark.parametrize("of_image,request_,expected", [
    ("", {}, (0, 0, [0, 10], "/root")),
    ("www", {}, (33, 34, [4, 34, 113], "/var/www")),
    ("33", {}, (33, 34, [4, 34, 113], "/var/www")),
    ("www:ssl", {}, (33, 113, [4, 113], "/var/www")),
    ("www:1003", {}, (33, 1003, [4, 113, 1003], "/var/www")),
    ("1002:1003", {}, (1002, 1003, [1003], "/")),
    ("nohome", {}, (50, 51, [4, 51], "/")),
    ("1002", {"run_as_user": number(33)}, (33, 34, [4, 34, 113], "/var/www")),
    ("www", {"run_as_user": number(7)}, (7, 0, [0], "/")),
    ("www", {"run_as_user": number(33), "run_as_group": number(9)}, (33, 9, [4, 9, 113], "/var/www")),
    ("", {"run_as_username": "www"}, (33, 34, [4, 34, 113], "/var/www")),
    ("", {"run_as_username": "www", "run_as_group": number(9)}, (33, 9, [4, 9, 113], "/var/www")),
    ("", {"run_as_username": "www", "supplemental_groups": [1234, 113], "supplemental_groups_policy": MERGE},
     (33, 34, [4, 34, 113, 1234], "/var/www")),
    ("", {"run_as_username": "www", "supplemental_groups": [1234, 113], "supplemental_groups_policy": STRICT},
     (33, 34, [34, 113, 1234], "/var/www")),
    ("www", {"supplemental_groups_policy": STRICT}, (33, 34, [34], "/var/www")),
])
def test_user_and_groups_are_those_of_the_request_and_of_the_image(containers, of_image, request_, expected):
    d = containers()
    assert user_of(d, d.cri.pod(), image=load(d, of_image), **request_) == expected


def test_the_status_has_the_user_also_after_a_restart(containers):
    d = containers()
    container = d.cri.run_container(d.cri.pod(), image=load(d), run_as_username="www")
    before = d.cri.container(container).user.linux
    assert (before.uid, before.gid, list(before.supplemental_groups)) == (33, 34, [34, 4, 113])
    d.restart()
    assert d.cri.container(container).user.linux == before
    assert d.cri.sh(container, "id -u; echo $HOME") == "33\n/var/www\n"


def test_home_of_the_image_or_of_the_request_is_kept(containers):
    d = containers()
    pod = d.cri.pod()
    image = d.load("hawser.test/home:1", files=FILES, User="www", Env=["PATH=/bin", "HOME=/image"])
    assert d.cri.output(pod, "echo $HOME", image=image) == ["/image"]
    assert d.cri.output(pod, "echo $HOME", image=image, envs=[{"key": "HOME", "value": b"/request"}]) == ["/request"]


@pytest.mark.parametrize("of_image,request_,error", [
    ("", {"run_as_username": "absent"}, CONTEXT + 'run_as_username: no user "absent" in /etc/passwd of the image'),
    ("absent", {}, 'no user "absent" in /etc/passwd of the image'),
    ("www:nogroup", {}, 'no group "nogroup" in /etc/group of the image'),
    ("", {"run_as_group": number(1)}, CONTEXT + "run_as_group needs run_as_user or run_as_username"),
    ("", {"run_as_user": number(1), "run_as_username": "www"},
     CONTEXT + "run_as_user and run_as_username exclude each other"),
    ("", {"run_as_user": number(-1)}, CONTEXT + "run_as_user: -1 is not a valid ID"),
    ("", {"run_as_user": number(2**32)}, CONTEXT + "run_as_user: 4294967296 is not a valid ID"),
    ("", {"run_as_user": number(1), "run_as_group": number(2**32 - 1)},
     CONTEXT + "run_as_group: 4294967295 is not a valid ID"),
    ("", {"supplemental_groups": [-5]}, CONTEXT + "supplemental_groups[0]: -5 is not a valid ID"),
    ("", {"supplemental_groups_policy": 7}, CONTEXT + "supplemental_groups_policy: unknown value 7"),
    ("", {"run_as_user": number(1), "supplemental_groups": list(range(2, 6000))}, "the user has more than 4096 groups"),
])
def test_what_is_invalid_is_refused_and_nothing_is_left(containers, of_image, request_, error):
    d = containers()
    assert refused(d.cri.create, d.cri.pod(), image=load(d, of_image), **request_) == ("INVALID_ARGUMENT", error)
    assert d.cri.container_ids() == []


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
@pytest.mark.parametrize("path", ["passwd", "group"])
def test_a_file_of_the_image_that_is_not_regular_is_refused(containers, kind, path):
    d = containers()
    files = [("etc/" + path, b"", {"type": kind, "devmajor": 1, "devminor": 5, "mode": 0o644})]
    assert refused(d.cri.create, d.cri.pod(), image=load(d, files=files), run_as_user=number(1)) == (
        "INVALID_ARGUMENT", "/etc/%s of the image is not a regular file" % path)


def test_a_large_file_of_the_image_is_refused(containers):
    d = containers()
    image = load(d, files=[("etc/passwd", PASSWD.encode().ljust((4 << 20) + 1), {})])
    assert refused(d.cri.create, d.cri.pod(), image=image) == (
        "INVALID_ARGUMENT", "/etc/passwd of the image has more than 4194304 bytes")


def test_a_link_in_the_image_does_not_lead_to_files_of_the_node(containers, tmp_path):
    (tmp_path / "passwd").write_text("spy:x:77:77::/:\n")
    d = containers()
    link = {"type": tarfile.SYMTYPE, "linkname": str(tmp_path / "passwd")}
    image = load(d, "spy", files=[("etc/passwd", b"", link)])
    assert refused(d.cri.create, d.cri.pod(), image=image) == (
        "INVALID_ARGUMENT", 'no user "spy" in /etc/passwd of the image')
    inside = load(d, "spy", name="inside", files=[("etc/passwd", b"", {**link, "linkname": "/../../../www/ids"}),
                                                  ("www/ids", b"spy:x:78:79::/spy:\n", {})])
    assert user_of(d, d.cri.pod("b"), image=inside) == (78, 79, [79], "/spy")


def test_status_says_that_the_policy_of_groups_is_supported(containers):
    assert containers().cri.call("Status").features.supplemental_groups_policy
