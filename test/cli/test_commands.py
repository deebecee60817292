# SPDX-License-Identifier: Apache-2.0
# Needs: no root
"""
test/cli/test_commands.py - help, manual page and completion of hawser and cnitool agree

How:   the commands and options in the help come from the tables in src/cli. They are compared with the
       manual page, in both directions, and with the words that __complete offers. A new command or
       option is therefore tested without a change here.
"""
import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["HAWSER_SRC"])
BUILD = pathlib.Path(os.environ["HAWSER_BUILD"])

both_programs = pytest.mark.parametrize("program", ["hawser", "cnitool"])


def run(program, *words):
    """Return: exit status, standard output, standard error"""
    done = subprocess.run([BUILD / "bin" / program, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def commands(program):
    """The names of the commands, in the order of the help."""
    text = run(program, "help")[1].partition("\noptions:\n")[0]
    return re.findall(r"^  ([a-z]+(?: [a-z]+)?)", text, re.M)


def options(text):
    """The options in a text of help: for each name, whether it has a value."""
    found = []
    for line in text.partition("\noptions:\n")[2].partition("\n\n")[0].splitlines():
        letter, name, value = re.match(r"  (?:(-\w), |    )--([a-z-]+)( \S+)?  +\S", line).groups()
        found += [(option, bool(value)) for option in (letter, "--" + name) if option]
    assert found and len(dict(found)) == len(found), "an option or letter has two meanings: %s" % found
    return dict(found)


def aliases(program):
    texts = [run(program, "help", *command.split())[1] for command in commands(program)]
    return {alias for text in texts for alias in re.findall(r'also available as "%s (.*)"' % program, text)}


def manual(program):
    """The commands of the manual page with their options; None stands for the options of all commands."""
    text = (SOURCE / "man" / (program + ".1")).read_text()
    found, current, depth = {None: {}}, None, 0
    for line in text.partition("\n.Sh DESCRIPTION\n")[2].partition("\n.Sh ")[0].splitlines():
        depth += line.startswith(".Bl") - line.startswith(".El")
        if line.startswith(".It Cm "):
            current = re.match(r"\.It Cm ([a-z]+(?: [a-z]+)*)", line)[1]
            found[current] = {}
        elif line.startswith(".It Fl "):
            for name in re.findall(r"Fl (-?[\w-]+)", line):
                found[None if depth == 1 else current]["-" + name] = bool(re.search(" (Ar|Cm) ", line))
    return found


@both_programs
def test_help(program):
    status, text, errors = run(program, "--help")
    assert (status, errors) == (0, "") and run(program, "help") == (0, text, "")
    assert run(program) == ({"hawser": 2, "cnitool": 1}[program], "", text)
    assert all(len(line) <= 100 for line in text.splitlines())
    for command in commands(program):
        status, text, errors = run(program, "help", *command.split())
        assert (status, errors) == (0, "")
        assert text.startswith("usage: %s [OPTIONS] %s" % (program, command))
        assert "\nexamples:\n" in text and "%s %s" % (program, command) in text
        assert all(len(line) <= 100 for line in text.splitlines())
        assert run(program, *command.split(), "--help") == (0, text, "")


@both_programs
def test_the_manual_has_the_commands_and_options_of_the_tables_and_no_others(program):
    page = manual(program)
    common = options(run(program, "help")[1])
    assert page[None] == common
    assert sorted(filter(None, page)) == sorted([*commands(program), "help"])
    for command in commands(program):
        assert {**page[command], **common} == options(run(program, "help", *command.split())[1]), command


@both_programs
def test_the_manual_has_the_aliases_of_the_tables_and_no_others(program):
    text = (SOURCE / "man" / (program + ".1")).read_text()
    listed = text.partition("\nSome commands have a second name:\n")[2].partition("\nstand for\n")[0]
    assert set(re.findall(r"\b[a-z]+ [a-z]+", listed)) == aliases(program)


@both_programs
def test_the_manual_has_the_environment_variables_of_the_help(program):
    text = (SOURCE / "man" / (program + ".1")).read_text()
    for variable in re.findall(r"\b[A-Z]+_[A-Z]+\b|NETCONFPATH", run(program, "help")[1]):
        assert "\n.It Ev %s\n" % variable in text, variable


@both_programs
def test_all_commands_and_options_are_completed(program):
    def complete(*words):
        status, text, errors = run(program, "__complete", *words)
        assert (status, errors) == (0, "")
        return text.splitlines()

    firsts = list(dict.fromkeys(command.split()[0] for command in commands(program)))
    assert complete("") == [*firsts, "help"]
    assert complete("help", "") == firsts
    for first in firsts:
        seconds = [c.split()[1] for c in commands(program) if c.startswith(first + " ")]
        assert not seconds or complete(first, "") == complete("help", first, "") == seconds
    for command in commands(program):
        text = run(program, "help", *command.split())[1]
        names = [name for name in options(text) if name.startswith("--")]
        assert sorted(complete(*command.split(), "-")) == sorted(names), command
