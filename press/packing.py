"""A PDF a third as long: typst writes every object by itself and in full, tags and links by the
thousand; here they share compressed streams, as PDF has allowed since version 1.5."""

from __future__ import annotations

import re
import zlib

PER_STREAM = 1000


def packed(pdf: bytes) -> bytes:
    """The same document with its objects, but for streams, packed into compressed ones."""
    table = int(pdf[pdf.rindex(b"startxref") :].split()[1])
    trailer = re.search(rb"trailer\s*<<(.*)>>\s*startxref", pdf[table:], re.DOTALL)
    offsets = [int(entry) for entry in re.findall(rb"(\d{10}) 00000 n", pdf[table:])]
    if not trailer or not offsets:
        return pdf  # a PDF of another make: left as it is
    ends = dict(zip(ordered := sorted(offsets), [*ordered[1:], table], strict=True))
    objects = [_object(pdf[start : ends[start]]) for start in offsets]
    small = [(number, body) for number, body in objects if not body.endswith(b"endstream")]
    streams = [(number, body) for number, body in objects if body.endswith(b"endstream")]

    entries: dict[int, tuple[int, int, int]] = {}  # of the new table, by object
    size = len(objects) + 1
    for first in range(0, len(small), PER_STREAM):
        group = small[first : first + PER_STREAM]
        entries |= {number: (2, size, place) for place, (number, _) in enumerate(group)}
        streams.append((size, _shared(group)))
        size += 1
    out = bytearray(pdf[: ordered[0]])
    for number, body in streams:
        entries[number] = (1, len(out), 0)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    entries |= {0: (0, 0, 65535), size: (1, len(out), 0)}
    rows = (entries[number] for number in range(size + 1))
    found = b"".join(
        kind.to_bytes(1, "big") + where.to_bytes(4, "big") + place.to_bytes(2, "big")
        for kind, where, place in rows
    )
    kept = re.sub(rb"/Size \d+", b"", trailer[1])
    index = _stream(b"/Type/XRef/Size %d/W[1 4 2]%b" % (size + 1, kept), found)
    out += b"%d 0 obj\n%b\nendobj\nstartxref\n%d\n%%%%EOF" % (size, index, len(out))
    return bytes(out)


def _object(text: bytes) -> tuple[int, bytes]:
    number, _, body = text.partition(b" 0 obj")
    return int(number), body[: body.rindex(b"endobj")].strip()


def _shared(group: list[tuple[int, bytes]]) -> bytes:
    places, bodies = [], bytearray()
    for number, body in group:
        places.append(b"%d %d" % (number, len(bodies)))
        bodies += body + b"\n"
    head = b" ".join(places) + b"\n"
    return _stream(b"/Type/ObjStm/N %d/First %d" % (len(group), len(head)), head + bodies)


def _stream(entries: bytes, content: bytes) -> bytes:
    data = zlib.compress(content, 9)
    return b"<<%b/Filter/FlateDecode/Length %d>>\nstream\n%b\nendstream" % (
        entries,
        len(data),
        data,
    )
