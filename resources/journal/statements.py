"""Statements over many rows at once, in one step of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.engine.interfaces import Dialect

from resources.journal.schema import calls


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert `rows`, all with the same keys, leaving out those that are there; the number inserted."""
    columns = tuple(rows[0])
    statement = _insert_text(table.name, columns, len(rows), _mark(connection.dialect))
    return _execute(connection, statement, rows)


def end_calls(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write `rows` (`id` and the columns of an end) to calls that are in flight; the number written."""
    columns = tuple(rows[0])
    mark = _mark(connection.dialect)
    if connection.dialect.name == "postgresql":  # where the parameters of VALUES have no type by themselves
        types = [calls.c[column].type.compile(connection.dialect) for column in columns]
        marks = ", ".join(f"CAST({mark} AS {type_})" for type_ in types)
    else:
        marks = ", ".join([mark] * len(columns))
    return _execute(connection, _end_text(columns, marks, len(rows)), rows)


def _execute(connection: Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> int:
    values = tuple(value for row in rows for value in row.values())
    result = connection.exec_driver_sql(statement, values, {"preserve_rowcount": True})
    return result.rowcount


def _mark(dialect: Dialect) -> str:
    return "?" if dialect.paramstyle == "qmark" else "%s"


@lru_cache(maxsize=512)
def _insert_text(table: str, columns: tuple[str, ...], count: int, mark: str) -> str:
    row = f"({', '.join([mark] * len(columns))})"
    rows = ", ".join([row] * count)
    # Only names of our own tables and columns are put together here; values are parameters.
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {rows} ON CONFLICT DO NOTHING"  # noqa: S608


@lru_cache(maxsize=512)
def _end_text(columns: tuple[str, ...], marks: str, count: int) -> str:
    rows = ", ".join([f"({marks})"] * count)
    # Both databases name the columns of VALUES column1, column2… (and SQLite's driver tells the number of
    # changed rows only of statements that begin with UPDATE, not WITH).
    place = {column: f"ended.column{number}" for number, column in enumerate(columns, 1)}
    changes = ", ".join(f"{column} = {place[column]}" for column in columns if column != "id")
    # Only names of our own columns are put together here; values are parameters.
    return (
        f"UPDATE calls SET {changes} FROM (VALUES {rows}) AS ended "  # noqa: S608
        f"WHERE calls.id = {place['id']} AND calls.outcome IS NULL AND calls.failure IS NULL"
    )
