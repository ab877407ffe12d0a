"""Reading the tables that upstreams publish: Parquet, CSV and JSON lines, column by column.

Every error names the file and the column or row that is wrong, because local imports are written by people.
"""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import SourceFiles

FORMATS = (".parquet", ".csv", ".jsonl")


def the_file(files: SourceFiles, name: str) -> Path:
    """The local path of the source file `name`."""
    if name not in files.files:
        raise SrBenchError(
            f"the source has no file {name!r} (it has {len(files.files)} files)",
            field="source_path",
            mend="name a folder that holds it under that name",
        )
    return files.files[name]


def tree_bytes(path: Path) -> bytes:
    """The bytes of a file of a repository. A symbolic link is the text of its target, as git holds it: what it points
    to may lie outside of the repository, and must not get into a task."""
    return str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()


def read_columns(path: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """The named columns of a Parquet, CSV or JSONL file as lists of equal length, in row order."""
    if path.suffix == ".parquet":
        return {name: column.to_pylist() for name, column in _parquet_columns(path, columns)}
    if path.suffix == ".csv":
        rows: Iterator[dict[str, Any]] = _csv_rows(path, columns)
    elif path.suffix == ".jsonl":
        rows = (row for _, row in json_lines(path))
    else:
        raise SrBenchError(
            f"{path.name} is none of {', '.join(FORMATS)}",
            field="source_path",
            mend="export the tasks in the columns of the upstream in one of these formats",
        )
    table: dict[str, list[Any]] = {name: [] for name in columns}
    for number, row in enumerate(rows):
        for name in columns:
            if name not in row:
                refuse_row(path, number, f"has no {name!r}")
            table[name].append(row[name])
    return table


def filled_rows(path: Path, column: str) -> list[bool]:
    """For each row, whether the text in `column` is there and not empty.

    For columns of large values (images): they pass through memory a few rows at a time.
    """
    if path.suffix != ".parquet":
        return [bool(value) for value in read_columns(path, (column,))[column]]
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _require_columns(path, (column,), file.schema_arrow.names)
        batches = file.iter_batches(batch_size=64, columns=[column], use_threads=False)
        return [bool(value) for batch in batches for value in batch.column(0).to_pylist()]


def _parquet_columns(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _require_columns(path, columns, file.schema_arrow.names)
            # One column at a time and no threads: a thread pool would cost more memory than it saves time.
            for name in columns:
                yield name, file.read([name], use_threads=False).column(0)
    except pa.ArrowException as error:
        raise SrBenchError(
            f"{path.name} is no readable Parquet file: {error}", field="source_path"
        ) from error


def _csv_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    text = io.StringIO(_utf8(path, path.read_bytes()).removeprefix("\ufeff"), newline="")
    reader = csv.DictReader(text, strict=True)
    try:
        _require_columns(path, columns, reader.fieldnames or ())
        for number, row in enumerate(reader):
            if None in row or None in row.values():
                refuse_row(path, number, "has another number of fields than the heading")
            yield row
    except csv.Error as error:
        raise SrBenchError(
            f"{path.name} is no valid CSV near line {reader.line_num}: {error}", field="source_path"
        ) from error


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(byte offset of the line, its JSON object) for every line that is not blank, one line in memory at a time."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if line.strip():
                yield offset, _json_object(path, number, line)
            offset += len(line)


def json_line_at(path: Path, offset: int) -> dict[str, Any]:
    """The JSON object of the line that starts at byte `offset`."""
    with path.open("rb") as file:
        file.seek(offset)
        return _json_object(path, 0, file.readline())


def _json_object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(_utf8(path, line))
    except json.JSONDecodeError as error:
        refuse_row(path, number, f"is no JSON ({error.msg})")
    if not isinstance(value, dict):
        refuse_row(path, number, "is no JSON object")
    return value


def _utf8(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SrBenchError(
            f"{path.name} is not UTF-8 at byte {error.start}",
            field="source_path",
            mend="save the file as UTF-8",
        ) from error


def _require_columns(path: Path, wanted: Sequence[str], present: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        raise SrBenchError(
            f"{path.name} has no column {', '.join(map(repr, missing))}",
            field="source_path",
            mend=f"use the upstream's columns; the file has {', '.join(present) or 'none'}",
        )


def refuse_row(path: Path, number: int, what: str) -> NoReturn:
    """Raise for the 0-based row `number` of a source file; `what` continues the sentence and shows no label."""
    raise SrBenchError(
        f"row {number} of {path.name} {what}",
        field="source_path",
        mend="correct the source file and its revision",
    )


def list_of(value: Any) -> Any:
    """A list that a CSV cell holds as a JSON array or as Python writes one; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value


def text_of(path: Path, number: int, name: str, value: Any) -> str:
    """`value` of column `name` as text with outer white space removed; refuses what is no text or empty."""
    if not isinstance(value, str):
        refuse_row(path, number, f"has no text in {name!r}")
    text = value.strip()
    if not text:
        refuse_row(path, number, f"has an empty {name!r}")
    return text
