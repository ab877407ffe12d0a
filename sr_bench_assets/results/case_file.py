"""The plan's `cases.jsonl`, verified once and read case by case, so that memory stays flat."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Sequence
from pathlib import Path

import orjson

from resources.errors import IntegrityError, NotFound
from sr_bench_assets.benchmarks.contract import Case
from sr_bench_assets.datasets.artifact import decode_case


class CaseFile:
    """Cases by benchmark and number (their order in the file).

    Keeps the verified file open, so that one renamed over it later is not read. Close it after use.
    """

    def __init__(self, path: str | Path, sha256: str) -> None:
        """Raises `NotFound` when there is no such file, `IntegrityError` when its bytes have another hash."""
        try:
            self._file = open(path, "rb")  # noqa: SIM115 - stays open as long as the run
        except FileNotFoundError as error:
            raise NotFound(
                f"There is no file {path}.",
                field="dataset.path",
                mend="Prepare the dataset again: equal tasks get the same identity and path.",
            ) from error
        self._ids: dict[str, list[str]] = {}
        self._offsets: dict[str, array[int]] = {}
        self._lengths: dict[str, array[int]] = {}
        digest = hashlib.sha256()
        offset = 0
        for line in self._file:
            digest.update(line)
            head = orjson.loads(line)
            benchmark = head["benchmark"]
            if benchmark not in self._ids:
                decode_case(line)  # of this version, as all of the file then are
            self._ids.setdefault(benchmark, []).append(head["id"])
            self._offsets.setdefault(benchmark, array("Q")).append(offset)
            self._lengths.setdefault(benchmark, array("Q")).append(len(line))
            offset += len(line)
        if digest.hexdigest() != sha256:
            self._file.close()
            raise IntegrityError(
                f"{path} is not what the plan froze: its SHA-256 is {digest.hexdigest()}, expected {sha256}.",
                code="changed_dataset",
                field="dataset.sha256",
                mend="Prepared files are never edited: prepare the dataset again and freeze a new plan.",
            )

    def ids(self, benchmark: str) -> Sequence[str]:
        """The case ids of one benchmark, in order; empty when the file has none."""
        return self._ids.get(benchmark, [])

    def case(self, benchmark: str, number: int) -> Case:
        """One case, read from the file."""
        length = self._lengths[benchmark][number]
        line = os.pread(self._file.fileno(), length, self._offsets[benchmark][number])
        # Its bytes are those that were prepared, and checked then.
        return Case.model_construct(**orjson.loads(line))

    def close(self) -> None:
        self._file.close()
