# SPDX-License-Identifier: Apache-2.0
"""
test/differential/table.py - the tables of cases and of allowed differences

What:  PLUGIN.cases, one block per case, and allowed.tsv.
How:   a case starts with its name at the left margin; indented lines below it have a keyword and
       a value:
           conf      JSON configuration of a plugin; its type defaults to PLUGIN. Several lines
                     make a chain. Continuation lines are indented further.
           args      CNI_ARGS; may be given once for each pod
           versions  versions of the specification, each a separate case (default 1.0.0)
           pods      number of pods, all with the same configuration (default 1)
           ifname    CNI_IFNAME (default eth0)
           verbs     verbs, each of which is called for all pods (default ADD CHECK DEL)
           setup     shell command that runs in the host's namespace before the first verb;
                     $CNI_PATH is the directory of this side's plugins
           keep      texts that are not masked, MAC addresses for example
           peer      run the case only with upstream's plugins of this version
           outside   the host has a neighbour; "reach" has the source address that the receiver
                     saw instead of True
           guest     needs features that the running kernel may lack: run under test/uml
       `let NAME JSON` at the left margin defines $NAME for later lines.
       Lines that start with # are comments.
Rules: names begin with the expected outcome, so that rows of allowed.tsv can match it: "refused:
       ..." is a configuration that both plugins reject, "fails: ..." one whose ADD fails here.
"""
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = "1.0.0"
MANY = {"conf", "setup", "args"}


class Case:
    """One case in one version of the specification."""

    def __init__(self, plugin, name, lines, version):
        self.plugin, self.name, self.version = plugin, name, version
        self.args = lines.get("args", [""])
        self.pods = ["pod%d" % n for n in range(1, int(lines.get("pods", "1")) + 1)]
        self.ifname = lines.get("ifname", "eth0")
        self.verbs = lines.get("verbs", "ADD CHECK DEL").split()
        self.setup = lines.get("setup", [])
        self.keep = lines.get("keep", "").split()
        self.peer = lines.get("peer", "*")
        self.guest = "guest" in lines
        self.outside = "outside" in lines
        if "conf" not in lines:
            raise SystemExit('%s.cases: "%s" has no conf' % (plugin, name))
        self.chain = [self.plugin_conf(text) for text in lines["conf"]]

    def plugin_conf(self, text):
        conf = {"cniVersion": self.version, "name": "net", "type": self.plugin}
        conf.update(json.loads(text))
        return conf

    def __str__(self):
        return "%s: %s (%s)" % (self.plugin, self.name, self.version)


def blocks(path):
    """Yields (name, {keyword: text or [text]}) for each case of a table, with $NAMEs replaced."""
    lets, name, lines, last = {}, None, {}, None
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        text = re.sub(r"\$(\w+)", lambda m: lets.get(m[1], m[0]), raw)
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        let = re.match(r"let (\w+) (.*)", text)
        indent = len(raw.expandtabs(8)) - len(raw.expandtabs(8).lstrip())
        if let:
            lets[let[1]] = let[2]
        elif indent == 0:
            if name:
                yield name, lines
            name, lines, last = text.strip(), {}, None
        elif indent > 8 and last:
            lines[last] = extend(lines[last], text.strip())
        else:
            last = add(lines, text.strip(), "%s:%d" % (path.name, number))
    if name:
        yield name, lines


def extend(value, text):
    return value[:-1] + [value[-1] + " " + text] if isinstance(value, list) else value + " " + text


def add(lines, text, where):
    keyword, _, rest = text.partition(" ")
    known = MANY | {"versions", "pods", "ifname", "verbs", "keep", "peer", "guest", "outside"}
    if keyword not in known:
        raise SystemExit("%s: unknown keyword: %s" % (where, keyword))
    if keyword in MANY:
        lines.setdefault(keyword, []).append(rest.strip())
    else:
        lines[keyword] = rest.strip()
    return keyword


def cases(plugin):
    """All cases of a plugin's table, in the order of the table."""
    return [Case(plugin, name, lines, version)
            for name, lines in blocks(HERE / (plugin + ".cases"))
            for version in lines.get("versions", VERSIONS).split()]


def plugins():
    return sorted(path.stem for path in HERE.glob("*.cases"))


def glob(pattern, text):
    """Match a pattern in which * matches any text; all other characters are literal."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), text, re.S)


class Row:
    """One allowed difference: peer, plugin, case, field, upstream's value, ours, reason."""

    def __init__(self, number, line):
        parts = line.split("\t")
        if len(parts) != 7:
            raise SystemExit("allowed.tsv:%d: got %d columns, want 7" % (number, len(parts)))
        self.where = "allowed.tsv:%d" % number
        self.peer, self.plugin, self.case, self.field, self.theirs, self.ours, self.reason = parts
        self.used = False

    def concerns(self, peer, case):
        return bool(glob(self.peer, peer) and glob(self.plugin, case.plugin) and
                    glob(self.case, "%s (%s)" % (case.name, case.version)))

    def covers(self, field, theirs, ours):
        return bool(glob(self.field, field) and glob(self.theirs, theirs) and
                    glob(self.ours, ours))


def allowed():
    lines = (HERE / "allowed.tsv").read_text().splitlines()
    return [Row(number, line) for number, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")]
