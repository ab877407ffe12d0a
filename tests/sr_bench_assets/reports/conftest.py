"""A store and journal of the test's own, and a hypothesis profile without deadline.

Property tests here call numpy and scipy, whose first import alone exceeds hypothesis's deadline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from resources.journal.connection import Journal, open_journal
from resources.store import Store

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store on this disk."""
    for name in ("SR_BENCH_STORE", "SR_BENCH_DATABASE_URL", "SR_BENCH_OBJECTS_URL"):
        monkeypatch.delenv(name, raising=False)
    return Store.open(tmp_path / "store")


@pytest.fixture
def journal(store: Store) -> Iterator[Journal]:
    """Its journal."""
    opened = open_journal(store)
    yield opened
    opened.engine.dispose()
