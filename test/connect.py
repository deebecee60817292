#!/usr/bin/python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""
test/connect.py SECONDS FROM TO ADDRESS PROTOCOL PORT [SERVER-PORT] - connect two network namespaces

What:  a server in namespace TO listens on SERVER-PORT of all its addresses. A client in FROM sends a message to
       PORT of ADDRESS, and the server answers. Prints the client's address as the server sees it. The
       namespace "host" is the one of the caller. PROTOCOL is tcp, udp or sctp.
How:   one process, because a socket stays in the namespace in which it was created. So the server is ready
       before the client sends, and no process has to wait for another one.
Rules: gives up after SECONDS. A datagram without an answer is sent again after a second, because a busy kernel
       drops packets: its queue for all namespaces has a limit. For the same reason, an address whose neighbour
       was not found is tried again. The exit status is 0 if the client got the answer, 3 if the message did
       not arrive, and 4 if the message arrived and the answer did not.
"""
import ctypes
import errno
import os
import select
import socket
import sys
import time

NO_MESSAGE, NO_ANSWER = 3, 4
RESEND = 1  # seconds
CLONE_NEWNET = 0x40000000
KINDS = {"tcp": (socket.SOCK_STREAM, socket.IPPROTO_TCP), "udp": (socket.SOCK_DGRAM, socket.IPPROTO_UDP),
         "sctp": (socket.SOCK_STREAM, socket.IPPROTO_SCTP)}


def socket_in(namespace, family, protocol, seconds):
    """Create a socket in a namespace; this process stays in that namespace."""
    if libc.setns(namespace, CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")
    created = socket.socket(family, *KINDS[protocol])
    created.settimeout(seconds)
    return created


def open_namespace(name):
    return os.open("/proc/self/ns/net" if name == "host" else "/run/netns/" + name, os.O_RDONLY)


def answer(server, protocol):
    """Answer the message or connection that has arrived. Returns the client's address, and the connection."""
    if protocol == "udp":
        _, destination, _, source = server.recvmsg(9, 99)
        server.sendmsg([b"hello"], destination, 0, source)  # from the address that the message was sent to
        return source[0], None
    connection, source = server.accept()
    connection.sendall(b"hello")
    return source[0], connection


def try_once(client, server, address, protocol, port, seconds):
    """Send one message. Returns the status, the client's address, and if another message could arrive."""
    waiting = [server, client]  # a client that is refused after it has sent a message becomes readable
    try:
        client.settimeout(seconds)
        client.connect((address, port))
        client.send(b"x")
    except OSError as error:  # timed out, refused or unreachable
        no_neighbour = error.errno == errno.EHOSTUNREACH
        seconds = min(seconds, RESEND) if no_neighbour else 0
        waiting = [server] if no_neighbour else waiting
    ready = select.select(waiting, [], [], seconds)[0]
    if server not in ready:
        return NO_MESSAGE, None, not ready and seconds
    source, _connection = answer(server, protocol)  # the connection stays open until the client has read
    try:
        return 0 if client.recv(9) == b"hello" else NO_ANSWER, source, False
    except OSError:
        return NO_ANSWER, None, True


def main(seconds, client_namespace, server_namespace, address, protocol, port, server_port=None):
    spaces = [open_namespace(name) for name in (client_namespace, server_namespace)]
    server = socket_in(spaces[1], socket.AF_INET6, protocol, seconds)  # accepts IPv4 as well
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("::", server_port or port))
    if protocol == "udp":
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        server.listen()
    client = socket_in(spaces[0], socket.AF_INET6 if ":" in address else socket.AF_INET, protocol, seconds)
    end, status, again = time.monotonic() + seconds, NO_MESSAGE, True
    while again and (left := end - time.monotonic()) > 0:
        wait = min(left, RESEND) if protocol == "udp" else left
        result, source, again = try_once(client, server, address, protocol, port, wait)
        status = max(status, result) if result else 0
    if status == 0:
        print(source.replace("::ffff:", ""))
    return status


libc = ctypes.CDLL(None, use_errno=True)
sys.exit(main(float(sys.argv[1]), *sys.argv[2:6], *map(int, sys.argv[6:])))
