"""Transactions outside the writer also outlast a database that is away for a moment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection

from resources.errors import Unavailable
from resources.journal.connection import Journal
from resources.journal.patience import patiently
from resources.journal.seals import add_seal, list_seals

from .conftest import NewRun


class Interrupted(Journal):
    """A journal whose first write is rolled back, and whose second one commits without being acknowledged."""

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        number = next(_writes)
        with super().begin() as connection:
            yield connection
            if number == 0:
                raise Unavailable("the connection was lost before the commit")
        if number == 1:
            raise Unavailable("the connection was lost after the commit")


_writes = iter(range(10**9))


def test_a_seal_is_added_once(journal: Journal, new_run: NewRun) -> None:
    run = new_run()
    seal = add_seal(Interrupted(journal.engine), run.id, "mmlu-pro", "results", "a" * 64)
    assert next(_writes) > 2
    assert list_seals(journal, run.id) == [seal]


def test_what_does_not_pass_is_raised() -> None:
    def away() -> None:
        raise Unavailable("away")

    def full() -> None:
        raise Unavailable("no space left", code="disk_full")

    begun = time.monotonic()
    with pytest.raises(Unavailable, match="away"):
        patiently(away, seconds=0.2)
    with pytest.raises(Unavailable, match="no space left"):
        patiently(full)
    assert time.monotonic() - begun < 5
