"""The same journal tests run on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from resources.journal.connection import Journal, open_journal
from resources.journal.leases import acquire_lease
from resources.journal.runs import Run, create_run, start_run
from resources.store import DATABASE_ENV, OBJECTS_ENV, Store
from tests.servers.postgres import PostgresServer, running_postgres, why_not


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A fresh store, with its journal in SQLite or in a new PostgreSQL database."""
    monkeypatch.delenv(OBJECTS_ENV, raising=False)
    if request.param == "sqlite":
        monkeypatch.delenv(DATABASE_ENV, raising=False)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        monkeypatch.setenv(DATABASE_ENV, server.create_database(f"t{secrets.token_hex(8)}"))
    return Store.open(tmp_path / "store")


@pytest.fixture
def journal(store: Store) -> Iterator[Journal]:
    opened = open_journal(store)
    yield opened
    opened.close()


NewRun = Callable[..., Run]


@pytest.fixture
def new_run(journal: Journal) -> NewRun:
    """Makes a run that this process is at work on: `new_run(budget_usd=…, total_cells=…, partitions=[…])`."""

    def make(
        budget_usd: str = "5", total_cells: int = 10, partitions: tuple[str, ...] = ("mmlu-pro",)
    ) -> Run:
        run, _ = create_run(
            journal,
            plan_sha256="a" * 64,
            name="test",
            mode="live",
            profile="smoke",
            total_cells=total_cells,
            budget_usd=Decimal(budget_usd),
        )
        for partition in partitions:
            acquire_lease(journal, run.id, partition)
        return start_run(journal, run.id)

    return make


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests of this folder, each in a fresh event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
