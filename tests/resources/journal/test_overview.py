from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from resources.journal.connection import Journal
from resources.journal.overview import ended_runs
from resources.journal.progress import progress_of
from resources.journal.runs import finish_run, list_runs
from resources.journal.writer import JournalWriter
from resources.store import Store

from .conftest import NewRun
from .examples import a_dispatch, a_result, an_end

ROOT = Path(__file__).parents[3]


async def test_the_quick_list_says_what_the_journal_says(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    made = [new_run(total_cells=3) for _ in range(3)]
    for run in made:
        writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
        dispatch = a_dispatch()
        await writer.dispatch(dispatch)
        await writer.finish(an_end(dispatch), a_result(dispatch))
        writer.close()
    assert ended_runs(store) is None  # they are at work
    for run in made:
        finish_run(journal, run.id, "partial")
    found = list_runs(journal)
    states = progress_of(journal, found)
    expected = [(run, states[run.id]) for run in found]
    if journal.dialect == "sqlite":
        assert ended_runs(store) == expected
        assert ended_runs(store, 2) == expected[:2]
    else:
        assert ended_runs(store) is None


def test_where_there_is_no_journal_the_quick_list_leaves_the_word_to_it(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    assert ended_runs(store) is None
    store.journal_path.write_bytes(b"no database, but long enough to be taken for one by its size" * 20)
    assert ended_runs(store) is None


def test_the_quick_list_imports_no_database_library(store: Store, journal: Journal) -> None:
    program = (
        "import sys; from resources.store import Store; from resources.journal.overview import ended_runs\n"
        "ended_runs(Store.open(sys.argv[1])); sys.exit('sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, store.root], cwd=ROOT, check=False).returncode == 0
