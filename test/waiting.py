# SPDX-License-Identifier: Apache-2.0
"""
waiting.py - wait for a condition; the only sleep that tests in Python may use to wait for another process
"""
import time

LONG = 60  # seconds; reached only if a test fails


def wait_until(condition, explain=lambda: "timed out", interval=0.02):
    """Call condition() until its result is true, and return the result. Fails with explain() after LONG."""
    end = time.monotonic() + LONG
    while not (result := condition()):
        assert time.monotonic() < end, explain()
        time.sleep(interval)
    return result


def wait_until_steady(read, interval=0.2):
    """Call read() until it returns the same value twice in a row, and return the value."""
    values = [None, read()]

    def is_steady():
        values[:] = values[1], read()
        return values[0] == values[1]
    wait_until(is_steady, lambda: "keeps changing: %s" % values[1], interval)
    return values[1]
