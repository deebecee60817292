# SPDX-License-Identifier: Apache-2.0
"""find the last of 200 networks in a directory"""
import json

from lib.rows import Pair


def rows(place):
    for i in range(200):
        place.write(f"net.d/{i:03}-net.conflist", json.dumps({
            "cniVersion": "1.0.0",
            "name": f"net{i:03}",
            "plugins": [
                {"type": "bridge", "bridge": f"br{i}", "isGateway": True, "ipMasq": True,
                 "ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}],
                          "ranges": [[{"subnet": f"10.88.{i}.0/24", "gateway": f"10.88.{i}.1"}]]}},
                {"type": "portmap", "capabilities": {"portMappings": True}},
                {"type": "tuning", "sysctl": {"net.core.somaxconn": "512"}},
            ]}, indent=2))
    yield Pair("hw_conf_load()", peer="read + json_loadb of the files",
               command=[place.build / "bench/bench-load-dir", "{samples}",
                        place.dir / "net.d", "net199"])
