"""Rows of a table file (Parquet, CSV, JSON Lines, JSON) as dictionaries, whatever the format."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resources.errors import SrBenchError


def read_rows(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """All rows of `path` in file order; the format follows from the name's suffix.

    `columns` limits what is read of a Parquet file (absent ones are ignored); other formats give every column.
    CSV values are text. Raises SrBenchError for another suffix or a file that is not what its name says.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            yield from _parquet_rows(path, columns)
        elif suffix == ".csv":
            yield from _csv_rows(path)
        elif suffix in (".jsonl", ".ndjson"):
            yield from _json_lines(path)
        elif suffix == ".json":
            yield from json.loads(path.read_bytes())
        else:
            raise SrBenchError(
                f"{path.name}: tables are read from .parquet, .csv, .jsonl or .json files.",
                field="--source-path",
                mend="Convert the file, or name it by its format.",
            )
    except (ValueError, csv.Error) as error:
        # pyarrow.ArrowInvalid and JSON errors are ValueErrors.
        raise SrBenchError(
            f"{path.name} is not a readable {suffix[1:]} file: {error}", code="unreadable_source"
        ) from error


def _parquet_rows(path: Path, columns: list[str] | None) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(path) as table:
        wanted = None if columns is None else [c for c in columns if c in table.schema_arrow.names]
        for batch in table.iter_batches(batch_size=4096, columns=wanted):
            yield from batch.to_pylist()


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    # Task texts can be longer than the csv module's default bound of 128 KiB.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with path.open(newline="", encoding="utf-8-sig") as stream:
        yield from csv.DictReader(stream)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)
