"""Incremental decoding of an event stream (WHATWG HTML, section 9.2.6), down to the bytes of each event's
data.

Only `data` fields matter to a chat completion; comments and all other fields are dropped. The payloads stay
bytes: decoding them is the reader's business, because broken UTF-8 is a fact about the reply worth recording.
"""

from __future__ import annotations

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class StreamTail:
    """What was left when the stream ended."""

    payload: bytes | None
    """Data of the event that was still open; None when there was none (or its data was empty)."""
    open_line: bool
    """The last line had no line end, so it may have been cut anywhere."""
    open_line_is_data: bool
    """That last line was a data field and hence the end of `payload`."""


class EventStreamDecoder:
    """Feed it network reads cut anywhere; it gives the data of each event as the event completes.

    Lines end with CRLF, CR or LF and with nothing else. One leading byte order mark is dropped. Events with
    empty data, or with nothing but white space, are dropped. The cost is linear in the bytes fed, however small the
    reads.
    """

    __slots__ = ("_at_start", "_data", "_line", "_skip_lf")

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of the line that has no end yet
        self._data: list[bytes] = []  # data lines of the event that has no end yet
        self._skip_lf = False  # the last read ended with CR: a LF that follows belongs to it
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the body; return the data of every event completed by them, in order."""
        if self._at_start:
            data = self._without_bom(data)
        if self._skip_lf and data:
            self._skip_lf = False
            if data[0] == 10:
                data = data[1:]
        if b"\r" in data:
            self._skip_lf = data[-1] == 13
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            if data:
                self._line.append(data)
            return []
        lines = data.split(b"\n")
        if self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line = []
        rest = lines.pop()
        if rest:
            self._line.append(rest)
        events: list[bytes] = []
        pending = self._data
        for line in lines:
            if not line:
                if pending:
                    payload = pending[0] if len(pending) == 1 else b"\n".join(pending)
                    pending.clear()
                    if payload and not payload.isspace():
                        events.append(payload)
            elif line.startswith(b"data:"):
                pending.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line == b"data":
                pending.append(b"")
        return events

    def close(self) -> StreamTail:
        """End of the body: the event and the line that were still open."""
        line = b"".join(self._line)
        self._line = []
        is_data = line == b"data" or line.startswith(b"data:")
        if is_data:
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        payload = b"\n".join(self._data)
        self._data = []
        return StreamTail(payload if payload.strip() else None, bool(line), is_data)

    def _without_bom(self, data: bytes) -> bytes:
        """Hold the first bytes back until they can be told from a byte order mark."""
        head = b"".join(self._line) + data
        self._line = []
        if len(head) < len(_BOM) and _BOM.startswith(head):
            if head:
                self._line.append(head)
            return b""
        self._at_start = False
        return head[len(_BOM) :] if head.startswith(_BOM) else head
