"""Evidence segments: append-only files of compressed frames, to which the rows of `calls` point."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from resources.durable import make_folder, readable_os_errors, sync_folder
from resources.errors import IntegrityError, NotFound

SEGMENT_BYTES = 64 << 20
"""A segment that has grown beyond this is left and a new one begun."""


class FramePlace(NamedTuple):
    """Where a frame stands: file name within the run's evidence folder, offset and length in bytes."""

    segment: str
    offset: int
    length: int


class SegmentWriter:
    """Appends frames of one benchmark, in a segment file that no other writer shares. Used by one thread."""

    def __init__(self, folder: Path, benchmark: str) -> None:
        self._folder = folder
        self._benchmark = benchmark
        self._handle = -1
        self._name = ""
        self._size = 0

    def append(self, frames: Sequence[bytes]) -> list[FramePlace]:
        """Append `frames` and return their places; durable (fdatasync) on return."""
        if self._handle < 0 or self._size >= SEGMENT_BYTES:
            self._open_next()
        places: list[FramePlace] = []
        offset = self._size
        for frame in frames:
            places.append(FramePlace(self._name, offset, len(frame)))
            offset += len(frame)
        with readable_os_errors(self._folder):
            try:
                rest = memoryview(b"".join(frames))
                while rest:
                    rest = rest[os.write(self._handle, rest) :]
                os.fdatasync(self._handle)
            except OSError:
                # What was half written stays behind as unused bytes; later frames go to a new segment.
                self.close()
                raise
        self._size = offset
        return places

    def close(self) -> None:
        """Close the open segment; a later append begins another one."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open_next(self) -> None:
        self.close()
        with readable_os_errors(self._folder):
            make_folder(self._folder)
            number = sum(1 for _ in self._folder.glob(f"{self._benchmark}.*.seg"))
            while True:
                name = f"{self._benchmark}.{number}.seg"
                try:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
                    self._handle = os.open(self._folder / name, flags, 0o600)
                    break
                except FileExistsError:
                    number += 1
            sync_folder(self._folder)
        self._name = name
        self._size = 0


class SegmentReader:
    """Reads frames of one run's segments, each file opened once. Close it after use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handles: dict[str, int] = {}

    def frame(self, place: FramePlace) -> bytes:
        """The frame at `place`, still compressed. Raises `NotFound` or, for a short file, `IntegrityError`."""
        handle = self._handles.get(place.segment)
        if handle is None:
            try:
                handle = os.open(self._folder / place.segment, os.O_RDONLY)
            except FileNotFoundError:
                raise NotFound(
                    f"no evidence segment {place.segment}",
                    mend="restore the run's evidence folder from a backup",
                ) from None
            self._handles[place.segment] = handle
        frame = os.pread(handle, place.length, place.offset)
        if len(frame) != place.length:
            raise IntegrityError(
                f"the evidence segment {place.segment} ends before byte {place.offset + place.length}",
                mend="restore it from a backup",
            )
        return frame

    def close(self) -> None:
        """Close the files."""
        while self._handles:
            os.close(self._handles.popitem()[1])


def read_frame(folder: Path, place: FramePlace) -> bytes:
    """One frame, as `SegmentReader.frame`."""
    with closing(SegmentReader(folder)) as reader:
        return reader.frame(place)
