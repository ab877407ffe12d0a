"""What breaks outside the program (disk, journal, rights) is told with field, cause and mend, and sends nothing."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resources.journal.connection import open_journal
from resources.journal.runs import create_run, finish_run, start_run
from resources.store import Store
from sr_bench_assets.plans.freeze import frozen_from
from tests.planning import manifest_document, publish_cases, single

COMMANDS = {
    "runs": ("runs",),
    "show": ("show", "RUN"),
    "report": ("report", "RUN"),
    "recover-plan": ("recover-plan", "RUN", "--mode", "undispatched"),
    "run": ("run", "--manifest", "MANIFEST", "--idempotency-key", "k"),
}


def sr_bench(store: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """A real process; its exit code, and the error it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")}
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "--json", "--store", store, *arguments],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, json.loads(done.stderr or b'{"error": {}}')["error"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, str]:
    """Store, id of an ended run with evidence, and a manifest."""
    monkeypatch.delenv("SR_BENCH_DATABASE_URL", raising=False)
    store = Store.open(tmp_path / "store")
    manifest = tmp_path / "m.json"
    manifest.write_text(json.dumps(manifest_document(publish_cases(store), targets=[single()])))
    plan = frozen_from(manifest, store, {})
    journal = open_journal(store)
    run, _ = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=3,
        budget_usd=plan.limits.max_cost_usd,
        idempotency_key="k",
    )
    start_run(journal, run.id)
    finish_run(journal, run.id, "cancelled")
    (store.evidence_dir(run.id) / "mmlu-pro.0.seg").write_bytes(b"evidence")
    journal.close()
    return store.root, run.id, str(manifest)


def _broken_middle(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    data[4096:-100] = random.Random(1).randbytes(len(data) - 4196)
    path.write_bytes(data)


def _no_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM alembic_version")
    connection.close()


DAMAGES = {
    "random bytes": (lambda path: path.write_bytes(os.urandom(9000)), "journal_damaged"),
    "a broken middle": (_broken_middle, "journal_damaged"),
    "a truncated file": (lambda path: os.truncate(path, 5000), "journal_damaged"),
    "no version": (_no_version, "journal_damaged"),
    "an empty file": (lambda path: os.truncate(path, 0), "journal_lost"),
    "no file": (lambda path: path.unlink(), "journal_lost"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_lost_journal_is_told_and_no_run_begins(
    world: tuple[Path, str, str], damage: str
) -> None:
    store, run_id, manifest = world
    for name in ("journal.sqlite3-wal", "journal.sqlite3-shm"):
        assert not (store / name).exists()
    break_it, code = DAMAGES[damage]
    break_it(store / "journal.sqlite3")
    for arguments in COMMANDS.values():
        given = [run_id if word == "RUN" else manifest if word == "MANIFEST" else word for word in arguments]
        status, error = sr_bench(store, *given)
        assert (status, error["code"], error["field"]) == (4, code, "store"), arguments
        assert "sqlalche.me" not in error["message"]
        assert error["mend"]
    assert [path.name for path in (store / "runs").iterdir()] == [run_id]


@pytest.mark.parametrize("path", ["/proc/nope", "/dev/null/x", "/dev/null"])
def test_a_store_that_cannot_be_is_told(path: str) -> None:
    status, error = sr_bench(Path(path), "runs")
    assert status in (2, 4)
    assert error["field"] == "store"
    assert error["mend"]
    assert error["code"] != "unexpected"
