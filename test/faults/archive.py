#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
test/faults/archive.py FILE: write an archive of two images, "new" and "newer", that share a layer
"""
import io
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from fetching import OCI, Image, digest, to_json  # noqa: E402 pylint: disable=wrong-import-position
from layers import END, directory, member  # noqa: E402 pylint: disable=wrong-import-position

LOWER = directory("etc") + member("file", data=b"lower") + END
IMAGES = {"new": Image([LOWER, member("etc/more", data=b"more") + member("file", data=b"upper") + END]),
          "newer": Image([LOWER, member("etc/newer", data=b"newer") + END])}


def main(path):
    files = {"blobs/sha256/" + digest(b)[7:]: b for i in IMAGES.values() for b in (*i.blobs.values(), i.manifest)}
    files["index.json"] = to_json({"schemaVersion": 2, "manifests": [
        {"mediaType": OCI + "manifest.v1+json", "digest": digest(i.manifest), "size": len(i.manifest),
         "annotations": {"io.containerd.image.name": "docker.io/library/%s:latest" % name}}
        for name, i in IMAGES.items()]})
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


main(sys.argv[1])
