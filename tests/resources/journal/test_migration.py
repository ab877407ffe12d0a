from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text

from resources.errors import SrBenchError, Unavailable
from resources.journal.connection import Journal, open_journal
from resources.journal.migration import alembic_config
from resources.journal.run_record import SCHEMA_VERSION
from resources.journal.schema import metadata, runs
from resources.store import DATABASE_ENV, Store

ROOT = Path(__file__).parents[3]


def test_the_migrations_make_exactly_the_tables_of_the_code(journal: Journal) -> None:
    with journal.connect() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), metadata)
    assert difference == []


def test_the_code_names_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == SCHEMA_VERSION


def test_opening_an_up_to_date_journal_imports_no_alembic(store: Store, journal: Journal) -> None:
    program = (
        "import sys; from resources.store import Store; from resources.journal.connection import open_journal\n"
        "open_journal(Store.open(sys.argv[1]))\n"
        "heavy = {'alembic', 'filelock', 'psutil', 'fsspec', 'platformdirs'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, store.root], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_many_processes_may_open_a_new_journal_at_once(store: Store) -> None:
    program = (
        "import sys; from resources.store import Store; from resources.journal.connection import open_journal\n"
        "from resources.journal.runs import list_runs\n"
        "print(len(list_runs(open_journal(Store.open(sys.argv[1])))))"
    )
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", program, store.root], cwd=ROOT, stdout=-1, stderr=-1, text=True
        )
        for _ in range(6)
    ]
    ended = [process.communicate(timeout=60) for process in opening]
    assert [out for out, _ in ended] == ["0\n"] * 6, [error for _, error in ended]


def test_a_journal_of_a_newer_version_is_refused(store: Store, journal: Journal) -> None:
    with journal.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SrBenchError, match="newer sr-bench") as caught:
        open_journal(store)
    assert caught.value.mend


def test_a_crash_in_the_migration_leaves_the_database_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import alembic.command

    real = alembic.command.upgrade

    def dies(config: object, revision: str) -> None:
        real(config, revision)  # pyright: ignore[reportArgumentType]  # handed through as it came
        raise RuntimeError("power cut")

    monkeypatch.setattr("resources.journal.migration.command.upgrade", dies)
    with pytest.raises(RuntimeError, match="power cut"):
        open_journal(store)
    monkeypatch.undo()
    with open_journal(store).connect() as connection:
        assert connection.execute(select(runs)).all() == []


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("postgresql://me:hunter2@127.0.0.1:9/none", Unavailable, "cannot be used"),
        ("mysql://x/y", SrBenchError, "mysql"),
        ("not a url", SrBenchError, "not a database URL"),
    ],
)
def test_an_unusable_database_url_is_told_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, error: type[SrBenchError], words: str
) -> None:
    monkeypatch.setenv(DATABASE_ENV, url)
    with pytest.raises(error, match=words) as caught:
        open_journal(Store.open(tmp_path / "store"))
    assert caught.value.field == "SR_BENCH_DATABASE_URL"
    assert caught.value.mend
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_no_database_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_ENV, raising=False)
    store = Store.open(tmp_path / "store")
    store.journal_path.write_bytes(b"this is not a database, but it is long enough to look like a file" * 20)
    with pytest.raises(SrBenchError, match="is damaged: file is not a database"):
        open_journal(store)


def test_the_journal_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_ENV, raising=False)
    previous = os.umask(0)
    try:
        store = Store.open(tmp_path / "store")
        journal = open_journal(store)
        with journal.begin() as connection:
            connection.execute(select(runs))
            modes = {
                path.name: path.stat().st_mode & 0o777 for path in store.root.iterdir() if path.is_file()
            }
    finally:
        os.umask(previous)
    assert {name for name in modes if name.startswith("journal.sqlite3")}
    assert set(modes.values()) == {0o600}, modes
