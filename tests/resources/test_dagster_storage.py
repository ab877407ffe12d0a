"""Dagster's databases of a new store are made once, whole, whoever comes first and whoever dies meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resources.dagster_storage import history_url

ROOT = Path(__file__).parents[2]
OPEN = """
import sys
from resources.dagster_home import prepare_dagster_home
from resources.store import Store
prepare_dagster_home(Store.open(sys.argv[1]))
from dagster import DagsterInstance
with DagsterInstance.get() as instance:
    assert instance.get_runs() == []
"""


def start(store: Path) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")}
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, store], env={**kept, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE
    )


def test_several_first_users_at_once(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    processes = [start(store) for _ in range(4)]
    errors = [process.communicate(timeout=60)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, "\n".join(errors)


@pytest.mark.parametrize("later_s", [0.0, 0.02, 0.1])
def test_a_killed_first_user_leaves_nothing_half_made(tmp_path: Path, later_s: float) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    killed = start(store)
    until = time.monotonic() + 20
    while not list(store.glob("dagster/.unfinished-*/history")) and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(later_s)
    killed.kill()
    killed.communicate()
    last = start(store)
    _, error = last.communicate(timeout=60)
    assert last.returncode == 0, error.decode()
    assert list(store.glob("dagster/.unfinished-*")) == []


OPTIONS = "options=-csearch_path%3Dsr_bench_dagster"


@pytest.mark.parametrize(
    ("journal", "history"),
    [
        ("", None),
        ("sqlite:///x.db", None),
        ("postgresql+psycopg://u:p%40@h:1/d", f"postgresql+psycopg2://u:p%40@h:1/d?{OPTIONS}"),
        ("postgres://h/d?sslmode=require", f"postgresql+psycopg2://h/d?sslmode=require&{OPTIONS}"),
        (
            "postgresql://h/d?options=-cx%3D9s",
            f"postgresql+psycopg2://h/d?{OPTIONS.replace('-cs', '-cx%3D9s%20-cs')}",
        ),
    ],
)
def test_history_is_beside_the_journal_not_in_it(journal: str, history: str | None) -> None:
    assert history_url(journal) == history
