"""The Dagster instance of a store: its DAGSTER_HOME is made here, with no setup by the user."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from resources.dagster_storage import history_url, make_history
from resources.store import DATABASE_ENV, Store

HISTORY_ENV = "SR_BENCH_DAGSTER_DATABASE_URL"
_POSTGRES = f"""
storage:
  postgres:
    postgres_url:
      env: {HISTORY_ENV}
"""


def settings_file(name: str) -> Path:
    """`dagster.yaml` or `workspace.yaml`: beside the packages in a checkout, inside `resources` in a wheel."""
    checkout = Path(__file__).resolve().parent.parent / name
    return checkout if checkout.is_file() else Path(str(files("resources").joinpath("home", name)))


def prepare_dagster_home(store: Store) -> Path:
    """Write the instance settings of `store` where they are missing or outdated and point this process at them.

    Makes Dagster's databases when the store is new. Sets `DAGSTER_HOME` and `SR_BENCH_STORE` (and, with PostgreSQL,
    `SR_BENCH_DAGSTER_DATABASE_URL`) in the environment, so that code servers and run workers started from here use
    the same store. Returns the folder.
    """
    home = store.dagster_home
    text = settings_file("dagster.yaml").read_text()
    database = history_url(os.environ.get(DATABASE_ENV, ""))
    if database is not None:
        text += _POSTGRES
        os.environ[HISTORY_ENV] = database
    _write_if_changed(home / "dagster.yaml", text)
    # The webserver asks every first visitor for a newsletter address unless it believes it did so already.
    _write_if_changed(home / ".nux" / "nux.yaml", "seen: 1\n")
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ["SR_BENCH_STORE"] = str(store.root)
    make_history(home, database)
    return home


def _write_if_changed(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
