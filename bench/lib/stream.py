# SPDX-License-Identifier: Apache-2.0
"""TCP throughput between two network namespaces

What:  rates(sender, receiver, address, windows, seconds) sends as fast as possible and returns the
       throughput in each window, in bits per second on the wire.
How:   one child process sends, another receives, each in its namespace. The first window starts after
       the initial burst. Of the 1514 bytes of a full segment on the wire, 1448 are payload and the rest
       are headers; the token bucket counts all 1514.
"""
import ctypes
import json
import os
import socket
import time

CLONE_NEWNET = 0x40000000
PORT = 7777
SETTLE = 0.5                    # seconds
CHUNK = 1 << 18                 # bytes
ON_WIRE = 1514 / 1448           # MTU 1500, Ethernet, IPv4, TCP with timestamps
TIMEOUT = 20                    # seconds


def enter(netns):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{netns}", "rb") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), f"enter {netns}")


def start_child(function, *arguments):
    """Run a function in a child process. Returns the PID, and a pipe with the function's result."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.write(writer, json.dumps(function(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def send(netns, address):
    enter(netns)
    data = bytes(CHUNK)
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((address, PORT), 1) as stream:
                while True:
                    stream.sendall(data)
        except ConnectionRefusedError:
            time.sleep(0.01)    # the receiver is not listening yet
        except OSError:
            return


def receive_for(stream, seconds):
    """(bytes received, seconds elapsed)"""
    buffer, received, start = bytearray(CHUNK), 0, time.monotonic()
    while time.monotonic() - start < seconds:
        n = stream.recv_into(buffer)
        if not n:
            raise OSError("the sender closed the connection")
        received += n
    return received, time.monotonic() - start


def receive(netns, address, windows, seconds):
    enter(netns)
    with socket.create_server((address, PORT)) as server:
        server.settimeout(TIMEOUT)
        stream = server.accept()[0]
    with stream:
        receive_for(stream, SETTLE)
        found = [receive_for(stream, seconds) for _ in range(windows)]
    return [received * 8 / took * ON_WIRE for received, took in found]


def rates(sender, receiver, address, windows, seconds):
    children = [start_child(receive, receiver, address, windows, seconds),
                start_child(send, sender, address)]
    results = []
    for pid, pipe in children:
        with os.fdopen(pipe) as file:
            results.append(file.read())
        os.waitpid(pid, 0)
    if not results[0]:
        raise RuntimeError(f"TCP from {sender} to {address} failed")
    return json.loads(results[0])
