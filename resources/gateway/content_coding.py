"""Undoing a content coding (RFC 9110, section 8.4) that a server applied although identity was asked for."""

from __future__ import annotations

import zlib

MAX_DECODED_BYTES = 64 << 20
"""No reply is longer; a body that decodes to more is a bomb."""
_GZIP_MAGIC = b"\x1f\x8b"
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_AUTO = 47
"""zlib's window bits that take gzip and zlib headers alike."""
_RAW = -15


class CodingError(ValueError):
    """The body cannot be decoded; the message says why."""


def is_identity(coding: str) -> bool:
    """Whether a Content-Encoding header means no coding at all."""
    return coding.strip().lower() in ("", "identity")


class Inflater:
    """Decodes gzip and deflate (with or without zlib's header) read by read.

    A body that is plain in spite of its label stays as it is. What follows the end, and a checksum that is wrong or
    missing, are passed over: what could be decoded counts.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding.strip().lower()
        self._head = b""
        self._begun = False
        self._plain = False
        self._over = False
        self._size = 0
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes) -> bytes:
        """The decoded form of the next bytes. Raises `CodingError`: another coding, or far too long."""
        if self._plain:
            return data
        decoded: list[bytes] = []
        while data and not self._over:
            if self._stream is None:
                # At the beginning, and after each member of a gzip file.
                self._head += data
                if len(self._head) < 2:
                    break
                data, self._head = self._head, b""
                if not self._begin(data):
                    return data if self._plain else b"".join(decoded)
            assert self._stream is not None  # begun just now, or before
            decoded.append(self._decode(self._stream, data))
            data = self._stream.unused_data
            if self._stream.eof:
                self._stream = None
                self._begun = True
        return b"".join(decoded)

    def _begin(self, data: bytes) -> bool:
        """Set up decoding of what begins with `data`; False where nothing coded begins there."""
        if self._begun:
            self._over = not data.startswith(_GZIP_MAGIC)
            bits = _AUTO
        else:
            found = _window_bits(data)
            self._plain = found is None
            if found is not None and self._coding not in _KNOWN:
                raise CodingError(f"the body has the content encoding {self._coding[:80]!r}")
            bits = found or _RAW
        if self._plain or self._over:
            return False
        self._stream = zlib.decompressobj(bits)
        return True

    def close(self) -> bytes:
        """What was held back to see whether it is coded."""
        return b"" if self._begun else self._head

    def _decode(self, stream: zlib._Decompress, data: bytes) -> bytes:
        before = stream.copy()
        try:
            decoded = stream.decompress(data, MAX_DECODED_BYTES - self._size + 1)
        except zlib.error:
            decoded = self._salvaged(before, data)
        self._size += len(decoded)
        if self._size > MAX_DECODED_BYTES:
            raise CodingError(f"the body decodes to more than {MAX_DECODED_BYTES} bytes")
        return decoded

    def _salvaged(self, stream: zlib._Decompress, data: bytes) -> bytes:
        """What precedes the fault: zlib gives nothing of a piece in which it finds one."""
        self._over = True
        pieces: list[bytes] = []
        size = self._size
        for place in range(len(data)):
            try:
                pieces.append(stream.decompress(data[place : place + 1]))
            except zlib.error:
                break
            size += len(pieces[-1])
            if size > MAX_DECODED_BYTES:
                break
        return b"".join(pieces)


def _window_bits(head: bytes) -> int | None:
    """How the body is coded by its first two bytes; None where it is plain."""
    if head.startswith(_GZIP_MAGIC) or (head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0):
        return _AUTO
    # A reply is JSON or an event stream: text. Nothing coded begins with two characters of it, as a rule.
    return None if head.startswith(b"\xef\xbb") or all(_is_text(byte) for byte in head[:2]) else _RAW


def _is_text(byte: int) -> bool:
    return 0x20 <= byte < 0x7F or byte in b"\t\n\r"
