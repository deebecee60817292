# SPDX-License-Identifier: Apache-2.0
"""
samples.py - archives of sparse files and a capability, for the tests of unpacking
"""
from layers import BLOCK, header, member, padded, pax, pax_records

# cap_net_raw=ep, in the kernel's format
CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")
# the same in version 3, with root ID 0; the kernel returns it as CAPABILITY
CAPABILITY_3 = bytes.fromhex("010000030020000000000000000000000000000000000000")


def old_sparse(pieces, size, data):
    """GNU's oldest format: four pieces in the header, 21 in each block after it."""
    def table(part, n):
        return b"".join(b"%011o\0%011o\0" % p for p in part).ljust(24 * n, b"\0")
    more = bytes(41) + table(pieces[:4], 4) + (b"\1" if pieces[4:] else b"\0") + b"%011o\0" % size
    blocks, rest = b"", pieces[4:]
    while rest:
        part, rest = rest[:21], rest[21:]
        blocks += (table(part, 21) + (b"\1" if rest else b"\0")).ljust(BLOCK, b"\0")
    return header(b"f", b"S", size=len(data), more=more, magic=b"ustar  \0") + blocks + padded(data)


PIECES = [(i * 8192, 100) for i in range(1, 60)]
DATA = b"".join(b"%c" % (65 + i % 26) * n for i, (_, n) in enumerate(PIECES))
TEXT = "\n".join(str(n) for p in [(len(PIECES),)] + PIECES for n in p) + "\n"
SPARSE = {
    "old": old_sparse(PIECES, 1 << 20, DATA),
    "0.0": pax_records([("GNU.sparse.major", "0"), ("GNU.sparse.minor", "0"),
                        ("GNU.sparse.size", str(1 << 20))]
                       + [r for o, n in PIECES for r in (("GNU.sparse.offset", str(o)),
                                                         ("GNU.sparse.numbytes", str(n)))])
    + member("f", data=DATA),
    "0.1": pax(GNU__sparse__map=",".join("%d,%d" % p for p in PIECES),
               GNU__sparse__size=str(1 << 20), GNU__sparse__name="f") + member("x/f", data=DATA),
    "1.0": pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__name="f",
               GNU__sparse__realsize=str(1 << 20)) + member("x/f", data=padded(TEXT.encode()) + DATA),
}
