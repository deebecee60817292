#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
test/faults/case.py PLUGIN NAME: print a case of test/differential as shell variables

The variables are conf (without prevResult), prev (the prevResult, or empty), args, ifname and setup
(commands). The version of the specification is always 1.1.0, the first that has GC.
"""
import json
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "differential"))
import table  # noqa: E402 pylint: disable=wrong-import-position

VERSION = "1.1.0"


def main(plugin, name):
    found = [case for case in table.cases(plugin) if case.name == name]
    if not found:
        raise SystemExit("%s.cases has no case \"%s\"" % (plugin, name))
    case = found[0]
    conf = dict(case.chain[-1], cniVersion=VERSION)
    prev = conf.pop("prevResult", None)
    if prev:
        prev["cniVersion"] = VERSION
    for variable, value in (("conf", json.dumps(conf)), ("prev", json.dumps(prev) if prev else ""),
                            ("args", case.args[0]), ("ifname", case.ifname),
                            ("setup", "\n".join(case.setup))):
        print("%s=%s" % (variable, shlex.quote(value)))


main(*sys.argv[1:])
