"""Statements over many rows at once, in one step of the database.

SQLite takes the rows as VALUES; PostgreSQL as one array for each column, so that its text does not depend on their
number and the driver has few parameters to look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Float, Table
from sqlalchemy.engine.interfaces import Dialect

from resources.journal.schema import calls

Rows = Sequence[Mapping[str, Any]]


def insert_rows(connection: Connection, table: Table, rows: Rows) -> int:
    """Insert `rows`, all with the same keys, leaving out those that are there; the number inserted."""
    columns = tuple(rows[0])
    source = _source(connection.dialect, table, columns, len(rows))
    # Only names of our own tables and columns are put together here; values are parameters.
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) {source} ON CONFLICT DO NOTHING"
    return _execute(connection, statement, table, rows)


def end_calls(connection: Connection, rows: Rows) -> int:
    """Write `rows` (`id` and the columns of an end) to calls that are in flight; the number written."""
    columns = tuple(rows[0])
    source = _source(connection.dialect, calls, columns, len(rows))
    return _execute(connection, _end_text(columns, source), calls, rows)


def _execute(connection: Connection, statement: str, table: Table, rows: Rows) -> int:
    if connection.dialect.name == "postgresql":
        values = tuple(_array(table, column, rows) for column in rows[0])
    else:
        values = tuple(value for row in rows for value in row.values())
    result = connection.exec_driver_sql(statement, values, {"preserve_rowcount": True})
    return result.rowcount


def _array(table: Table, column: str, rows: Rows) -> list[Any]:
    values = [row[column] for row in rows]
    if isinstance(table.c[column].type, Float):  # the driver takes no list of integers and floats together
        return [None if value is None else float(value) for value in values]
    return values


def _source(dialect: Dialect, table: Table, columns: tuple[str, ...], count: int) -> str:
    if dialect.name == "postgresql":
        return _arrays_text(dialect, table, columns)
    return _values_text(len(columns), count)


@lru_cache(maxsize=512)
def _values_text(width: int, count: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"VALUES {', '.join([row] * count)}"


@lru_cache(maxsize=16)
def _arrays_text(dialect: Dialect, table: Table, columns: tuple[str, ...]) -> str:
    arrays = ", ".join(f"CAST(%s AS {table.c[column].type.compile(dialect)}[])" for column in columns)
    names = ", ".join(f"column{number}" for number in range(1, len(columns) + 1))
    return f"SELECT * FROM unnest({arrays}) AS given ({names})"  # noqa: S608 types of our own columns


@lru_cache(maxsize=512)
def _end_text(columns: tuple[str, ...], source: str) -> str:
    # Both sources name their columns column1, column2… (SQLite's driver tells the number of changed rows only of
    # statements that begin with UPDATE, not WITH).
    place = {column: f"ended.column{number}" for number, column in enumerate(columns, 1)}
    changes = ", ".join(f"{column} = {place[column]}" for column in columns if column != "id")
    return (
        f"UPDATE calls SET {changes} FROM ({source}) AS ended "  # noqa: S608 names of our own columns
        f"WHERE calls.id = {place['id']} AND calls.outcome IS NULL AND calls.failure IS NULL"
    )
