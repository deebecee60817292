# SPDX-License-Identifier: Apache-2.0
"""
test/cri/http2.py - frames of HTTP/2, for clients that do what a library would not do
"""
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, ACK, END_HEADERS = 1, 1, 4  # flags


def frame(kind, flags, stream, payload):
    return (struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
            + struct.pack(">I", stream) + payload)


def header(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request_headers(path):
    return b"".join(header(*h) for h in [
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
        (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers")])
