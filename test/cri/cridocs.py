# SPDX-License-Identifier: Apache-2.0
"""
cridocs.py - the tables of docs/cri.md, and the fields of messages of CRI

What:  rows_of() reads a table; unimplemented() lists the calls that the page says are not implemented; leaves() lists
       every field of a message, also inside its fields, each with a function that gives it a value.
"""
import os
import pathlib
import re

SRC = pathlib.Path(os.environ["HAWSER_SRC"])
PAGE = SRC / "docs/cri.md"


def rows_of(heading):
    """The rows of the table below a heading: lists of cells, without backquotes around names."""
    section = re.search(r"^### %s\n(.*?)(?=^##|\Z)" % re.escape(heading), PAGE.read_text(), re.M | re.S)[1]
    rows = [line.strip("|").split("|") for line in section.splitlines() if re.match(r"\| `", line)]
    return [[re.sub(r"^`([^`]*)`$", r"\1", cell.strip()) for cell in row] for row in rows]


def unimplemented():
    return {row[0] for row in rows_of("RuntimeService") if row[1].startswith("UNIMPLEMENTED")}


def test_names():
    """The names of all tests that rows may name: of pytest, bats and cmocka."""
    names = set()
    for pattern, files in ((r"^def (test_\w+)", (SRC / "test").glob("**/test_*.py")),
                           (r'^@test "([^"]+)"', (SRC / "test").glob("**/*.bats")),
                           (r'"([a-z0-9-]+: [^"]+)"', (SRC / "src").glob("**/test-*.c"))):
        for file in files:
            names.update(re.findall(pattern, file.read_text(), re.M))
    return names


def names_field(text, path):
    """Whether an error names a field, or a message that contains it. Errors of mounts and devices name the path."""
    parts = set(path.split("."))
    parts = parts - {"linux", "security_context", "config"} or parts
    return bool(parts & set(re.findall(r"\w+", text)) or parts & {"mounts", "devices"} and
                re.search(r"\b(mount|device) ", text))


# ---- fields --------------------------------------------------------------------------------------------

# What other fields of a message need, so that the request is refused only because of the field itself.
BESIDE = {
    "Device": {"container_path": "/dev/x", "host_path": "/dev/null"},
    "KeyValue": {"key": "x"},
    "Mount": {"container_path": "/x", "host_path": "/tmp"},
}


class Leaf:
    """A field that is not a message, or is a map. path: from the outermost message; owner: MESSAGE.FIELD."""

    def __init__(self, steps):
        self.steps = steps
        self.path = ".".join(f.name for f in steps)
        self.owner = "%s.%s" % (steps[-1].containing_type.name, steps[-1].name)
        self.field = steps[-1]

    def set(self, message, value=None):
        """Sets the field to a value that differs from the default."""
        for step in self.steps[:-1]:
            message = getattr(message, step.name)
            message = message.add() if step.label == step.LABEL_REPEATED else message
            message.SetInParent()
            for name, text in BESIDE.get(step.message_type.name, {}).items():
                setattr(message, name, text)
        give(message, self.field, sample(self.field) if value is None else value)


def give(message, field, value):
    if is_map(field):
        getattr(message, field.name).update(value)
    elif field.label == field.LABEL_REPEATED:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def is_map(field):
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def sample(field):
    if is_map(field):
        return {"x": "y"}
    if field.type == field.TYPE_BOOL:
        return True
    if field.type == field.TYPE_STRING:
        return "x"
    if field.type == field.TYPE_BYTES:
        return b"x"
    return 1


def leaves(descriptor, steps=()):
    for field in descriptor.fields:
        if field.message_type and not is_map(field):
            yield from leaves(field.message_type, (*steps, field))
        else:
            yield Leaf((*steps, field))
