"""The facts of a run as tables: how each cell ended and what each call was, with the journal's columns.

Read from sealed Parquet where a partition is sealed, else from the journal. Polars and pyarrow are imported when
a table is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import BigInteger, Boolean, Float, Integer, Select, Table, select

from resources.journal.connection import Journal
from resources.journal.schema import calls, results, seals
from resources.store import Store

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

FactKind = Literal["results", "calls"]
_TABLES: dict[FactKind, Table] = {"results": results, "calls": calls}
_BATCH = 2_000


def load_results(store: Store, journal: Journal, run_id: str, benchmark: str | None = None) -> pl.DataFrame:
    """One row per ended cell, columns of the journal's `results`, in the order in which cells ended
    (benchmark by benchmark); of one benchmark or of all."""
    return _load(store, journal, run_id, "results", benchmark)


def load_calls(store: Store, journal: Journal, run_id: str, benchmark: str | None = None) -> pl.DataFrame:
    """One row per dispatched call (refused attempts too), columns of the journal's `calls`, in order of
    dispatch (benchmark by benchmark)."""
    return _load(store, journal, run_id, "calls", benchmark)


def arrow_schema(kind: FactKind) -> pa.Schema:
    """The columns of `kind` as Arrow types: int64, float64, bool, string."""
    import pyarrow as pa

    fields: list[pa.Field] = []
    for column in _TABLES[kind].columns:
        if isinstance(column.type, (BigInteger, Integer)):
            arrow = pa.int64()
        elif isinstance(column.type, Float):
            arrow = pa.float64()
        elif isinstance(column.type, Boolean):
            arrow = pa.bool_()
        else:
            arrow = pa.string()
        fields.append(pa.field(column.name, arrow, nullable=bool(column.nullable)))
    return pa.schema(fields)


def arrow_batches(journal: Journal, run_id: str, kind: FactKind, benchmark: str) -> Iterator[pa.RecordBatch]:
    """The rows of one partition in the journal, in order of `seq`, in batches of bounded size."""
    import pyarrow as pa

    schema = arrow_schema(kind)
    with journal.connect() as connection:
        cursor = connection.execution_options(yield_per=_BATCH).execute(_query(kind, run_id, benchmark))
        for rows in cursor.partitions(_BATCH):
            columns = zip(*rows, strict=True)
            yield pa.record_batch(
                [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)],
                schema=schema,
            )


def sealed_sha256s(journal: Journal, run_id: str, kind: FactKind) -> dict[str, str]:
    """SHA-256 of the sealed table of each sealed partition."""
    query = select(seals.c.partition, seals.c.sha256).where(seals.c.run_id == run_id, seals.c.kind == kind)
    with journal.connect() as connection:
        return {row.partition: row.sha256 for row in connection.execute(query.order_by(seals.c.version))}


def _load(store: Store, journal: Journal, run_id: str, kind: FactKind, benchmark: str | None) -> pl.DataFrame:
    import polars as pl
    import pyarrow as pa

    sealed = sealed_sha256s(journal, run_id, kind)
    names = [benchmark] if benchmark is not None else _benchmarks(journal, run_id, kind, sealed)
    empty = pl.DataFrame(pl.from_arrow(arrow_schema(kind).empty_table()))
    frames = [empty]
    for name in names:
        if name in sealed:
            frames.append(pl.read_parquet(store.objects.open_local(sealed[name])))
        elif batches := list(arrow_batches(journal, run_id, kind, name)):
            frames.append(pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches))))
    return pl.concat(frames)


def _benchmarks(journal: Journal, run_id: str, kind: FactKind, sealed: dict[str, str]) -> list[str]:
    table = _TABLES[kind]
    query = select(table.c.benchmark).where(table.c.run_id == run_id).distinct()
    with journal.connect() as connection:
        return sorted({row.benchmark for row in connection.execute(query)} | set(sealed))


def _query(kind: FactKind, run_id: str, benchmark: str) -> Select[Any]:
    table = _TABLES[kind]
    return (
        select(table)
        .where(table.c.run_id == run_id, table.c.benchmark == benchmark)
        .order_by(table.c.seq, *table.primary_key.columns)
    )
