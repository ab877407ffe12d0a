"""What is stored survives a power cut: its bytes, its name, and the names of all folders above it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.journal.evidence import SegmentWriter
from resources.store import Store


def put(store: Store) -> Path:
    return store.root / "objects" / (sha := store.objects.put(b"object"))[:2] / sha


def put_file(store: Store) -> Path:
    source = store.root / "source"
    source.write_bytes(b"file")
    return store.root / "objects" / (sha := store.objects.put_file(source))[:2] / sha


def segment(store: Store) -> Path:
    writer = SegmentWriter(store.evidence_dir("r1"), "mmlu-pro")
    (place,) = writer.append([b"frame"])
    writer.close()
    return store.evidence_dir("r1") / place.segment


@pytest.mark.parametrize("write", [put, put_file, segment])
def test_every_name_on_the_way_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Store], Path]
) -> None:
    durable: dict[int, set[str]] = {}
    sizes: dict[int, int] = {}

    def recording(sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(handle: int) -> None:
            sync(handle)
            path, info = Path(os.readlink(f"/proc/self/fd/{handle}")), os.fstat(handle)
            if path.is_dir():
                durable.setdefault(info.st_ino, set()).update(os.listdir(path))
            else:
                sizes[info.st_ino] = info.st_size

        return synced

    monkeypatch.setattr("os.fsync", recording(os.fsync))
    monkeypatch.setattr("os.fdatasync", recording(os.fdatasync))
    path = write(Store.open(tmp_path / "new" / "store"))
    assert sizes[path.stat().st_ino] == path.stat().st_size > 0
    while path != tmp_path:
        assert path.name in durable.get(path.parent.stat().st_ino, ()), path
        path = path.parent
