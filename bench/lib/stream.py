# SPDX-License-Identifier: Apache-2.0
"""How fast TCP is between two network namespaces

What:  rates(sender, receiver, address, windows, seconds) sends as much as passes and returns what did
       in each of some windows, in bits per second on the wire.
How:   a child sends, another receives, each in its namespace. The first window starts when whatever
       may go at once has gone. On the wire a full segment has its headers, too: of 1514 bytes 1448
       are ours, and the token bucket counts all of them.
"""
import ctypes
import json
import os
import socket
import time

CLONE_NEWNET = 0x40000000
PORT = 7777
SETTLE = 0.5                    # seconds
AT_ONCE = 1 << 18               # bytes
ON_WIRE = 1514 / 1448           # MTU 1500, Ethernet, IPv4, TCP with timestamps
PATIENCE = 20                   # seconds


def enter(netns):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{netns}", "rb") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), f"enter {netns}")


def child(work, *arguments):
    """A process that does it, and the reading end of a pipe with what it returns"""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.write(writer, json.dumps(work(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def send(netns, address):
    enter(netns)
    data = bytes(AT_ONCE)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((address, PORT), 1) as stream:
                while True:
                    stream.sendall(data)
        except ConnectionRefusedError:
            time.sleep(0.01)    # nobody listens yet
        except OSError:
            return


def receive_for(stream, seconds):
    """Bytes and seconds"""
    room, got, start = bytearray(AT_ONCE), 0, time.monotonic()
    while time.monotonic() - start < seconds:
        n = stream.recv_into(room)
        if not n:
            raise OSError("the sender has gone")
        got += n
    return got, time.monotonic() - start


def receive(netns, address, windows, seconds):
    enter(netns)
    with socket.create_server((address, PORT)) as server:
        server.settimeout(PATIENCE)
        stream = server.accept()[0]
    with stream:
        receive_for(stream, SETTLE)
        found = [receive_for(stream, seconds) for _ in range(windows)]
    return [got * 8 / took * ON_WIRE for got, took in found]


def rates(sender, receiver, address, windows, seconds):
    children = [child(receive, receiver, address, windows, seconds), child(send, sender, address)]
    said = []
    for pid, pipe in children:
        with os.fdopen(pipe) as file:
            said.append(file.read())
        os.waitpid(pid, 0)
    if not said[0]:
        raise RuntimeError(f"no TCP from {sender} to {address}")
    return json.loads(said[0])
