"""`recover-plan` and `recover`: continue or retry reviewed cells of an ended run in a child run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.output import Ctx, emit, say

if TYPE_CHECKING:
    from resources.journal.connection import Journal


@click.command("recover-plan")
@click.argument("run_id", metavar="RUN")
@click.option("--mode", type=click.Choice(["undispatched", "failed"]), required=True, help="Which cells.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Also write the plan to this file for review."
)
@click.pass_obj
def recover_plan(obj: Ctx, run_id: str, mode: str, output: Path | None) -> None:
    """List the cells of an ended run that may be continued or retried. Nothing is sent.

    undispatched: cells of which no request ever generated. failed: known failures whose billing is known.
    Completed, ambiguous and claimed cells are excluded, each with its reason. Set selected_cells in the file
    to a reviewed subset; mode failed needs such a list.
    """
    import orjson

    from resources.store import replace_file
    from sr_bench_assets.results.recovery import recovery_plan

    store, journal = obj.open_journal()
    _reconcile(journal)
    recovery = recovery_plan(store, journal, run_id, "failed" if mode == "failed" else "undispatched")
    document = recovery.model_dump(mode="json")
    if output is not None:
        replace_file(output, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    if obj.wants_json:
        emit(document)
        return
    for name, count in recovery.counts.items():
        sys.stdout.write(f"{name}: {count}\n")
    if not output:
        say("Write the cells to a file for review with --output recovery.json.")
    elif recovery.eligible:
        extra = " --acknowledge-new-attempt" if mode == "failed" else ""
        command = f"sr-bench recover {recovery.run_id} --plan {output} --idempotency-key KEY{extra}"
        say(f"Review {output}, then: {command}")


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--plan", "plan_file", required=True, type=click.Path(path_type=Path), help="Reviewed recovery plan."
)
@click.option("--idempotency-key", help="Repeating a key with the same plan returns the same child run.")
@click.option("--acknowledge-new-attempt", is_flag=True, help="Accept new attempts and spend (mode failed).")
@click.option("--detach", is_flag=True, help="Return at once; the runner works on.")
@click.pass_obj
def recover(
    obj: Ctx,
    run_id: str,
    plan_file: Path,
    idempotency_key: str | None,
    acknowledge_new_attempt: bool,
    detach: bool,
) -> int:
    """Continue reviewed cells in a separate child run. The parent is not changed."""
    from cli.launch import spawn_runner
    from cli.run import wait_and_report
    from resources.documents import read_document
    from resources.endpoints import require_endpoints
    from resources.errors import Problems
    from resources.validation import validate
    from sr_bench_assets.results import recovery as recoveries

    recovery, problems = validate(recoveries.RecoveryPlan, read_document(plan_file))
    if recovery is None:
        raise Problems(f"{plan_file} is no recovery plan.", problems)
    store, journal = obj.open_journal()
    _reconcile(journal)
    child, created = recoveries.recover(
        store,
        journal,
        run_id,
        recovery,
        idempotency_key=idempotency_key,
        acknowledge_new_attempt=acknowledge_new_attempt,
        # An endpoint that is down would turn cells never sent into failed ones.
        before_claiming=lambda plan: require_endpoints(plan.all_targets, os.environ),
    )
    if not created:
        say(f"Idempotency key {idempotency_key!r} belongs to run {child.id}; nothing is sent again.")
    runner = spawn_runner(store, child.id) if child.status == "queued" else None
    if detach:
        emit(
            {
                "run_id": child.id,
                "parent_run_id": child.parent_run_id,
                "plan_sha256": child.plan_sha256,
                "status": child.status,
            }
        )
        return 0
    return wait_and_report(obj, child.id, runner)


def _reconcile(journal: Journal) -> None:
    """A run whose runner was killed has ended: give its cells their states, and say so."""
    from resources.journal.leases import reconcile_dead_runs

    for dead in reconcile_dead_runs(journal):
        say(
            f"The runner of {dead.run_id} had died: the run is {dead.status}; {dead.ambiguous} cells are ambiguous, "
            f"{dead.failed} failed."
        )
