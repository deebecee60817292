# SPDX-License-Identifier: Apache-2.0
"""
slowcrun.py - an OCI runtime whose commands wait, so that a test can interrupt an operation at a known point
"""
import shutil

# Runs crun. While the file of that name exists, a command of crun waits, or has finished its work but does not end.
WRAPPER = """#!/bin/sh
for word in "$@"; do
	case $word in create|start|kill|delete|exec|update) break ;; esac
done
echo "$word" >>%(dir)s/commands
while [ -e "%(dir)s/$word.wait" ]; do sleep 0.02; done  # the interval of a poll
if [ -e "%(dir)s/$word.linger" ]; then
	%(crun)s "$@"
	while [ -e "%(dir)s/$word.linger" ]; do sleep 0.02; done  # the interval of a poll
	exit
fi
exec %(crun)s "$@"
"""


class Crun:
    """An OCI runtime whose commands can be delayed."""

    def __init__(self, directory):
        self.dir = directory
        self.program = directory / "runtime"
        self.program.write_text(WRAPPER % {"dir": directory, "crun": shutil.which("crun")})
        self.program.chmod(0o755)

    def delay(self, command):
        (self.dir / (command + ".wait")).touch()

    def linger(self, command):
        """The command does its work, but does not end."""
        (self.dir / (command + ".linger")).touch()

    def go_on(self, command):
        for how in ("wait", "linger"):
            (self.dir / ("%s.%s" % (command, how))).unlink(missing_ok=True)

    def times(self, command):
        file = self.dir / "commands"
        return file.read_text().splitlines().count(command) if file.exists() else 0
