"""A database that fails again and again costs a run time, and nothing else."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection

from resources.errors import Unavailable
from resources.journal.connection import Journal
from resources.journal.runs import get_run
from sr_bench_assets.results.execution import RunExecution
from tests.sr_bench_assets.results.conftest import BENCHMARK, World


@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_run_outlasts_lost_transactions_and_lost_acknowledgements(world: World, acknowledged: bool) -> None:
    writes = itertools.count()
    draw = random.Random(1)

    class Unreliable(Journal):
        """Four writes of ten are rolled back, or committed without being acknowledged."""

        @contextmanager
        def begin(self) -> Iterator[Connection]:
            next(writes)
            lost = draw.random() < 0.4
            with super().begin() as connection:
                yield connection
                if lost and not acknowledged:
                    raise Unavailable("the connection was lost before the commit")
            if lost:
                raise Unavailable("the connection was lost after the commit")

    lab = world.lab()
    plan = world.plan(lab, cases=5)
    run = world.new_run(plan)
    execution = RunExecution(
        world.store, Unreliable(world.journal.engine), plan, run.id, [BENCHMARK], world.env
    )
    execution.start()
    execution.wait(BENCHMARK)
    execution.close()
    assert next(writes) >= 9  # lease, start, dispatches, ends, seals and conclusion, however they are grouped
    assert get_run(world.journal, run.id).status == "completed"
    assert [row.status for row in world.results(run)] == ["completed"] * 5
    assert (lab.stats()["requests"], lab.stats()["resends"]) == (5, 0)
