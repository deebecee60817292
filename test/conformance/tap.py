# SPDX-License-Identifier: Apache-2.0
"""
test/conformance/tap.py - results in the format TAP, for the programs of this folder
"""
import traceback


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def result(self, name, error=""):
        self.failed += bool(error)
        self.line("not ok" if error else "ok", name)
        for line in error.splitlines():
            print("# " + line)

    def skip(self, name, reason):
        self.line("ok", f"{name} # SKIP {reason}")

    def line(self, result, text):
        self.n += 1
        print(f"{result} {self.n} {text}", flush=True)

    def run(self, name, function, *arguments):
        """Call a function. It has failed if it raises an exception."""
        error = ""
        try:
            function(*arguments)
        except Exception:  # the caller goes on with other tests
            error = traceback.format_exc()
        self.result(name, error)

    def finish(self):
        """Returns the exit status of the program."""
        print(f"1..{self.n}")
        return self.failed > 0
