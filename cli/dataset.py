"""`dataset`: prepare, combine and browse frozen task sets, and name history to keep out of a holdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.output import Ctx, emit, say
from resources.errors import SrBenchError

if TYPE_CHECKING:
    from sr_bench_assets.datasets.artifact import DatasetManifest
    from sr_bench_assets.datasets.request import PreparationRequest

# Repeated here because importing the contract (pydantic) costs too much for `--help`.
PROFILES = ("smoke", "quick", "standard")
DEFAULT_SEED = 20260918


@click.group()
def dataset() -> None:
    """Prepare, combine and browse frozen task sets."""


@dataset.command()
@click.option(
    "--benchmark", "benchmarks", multiple=True, required=True, metavar="ID", help="Repeat for a collection."
)
@click.option("--profile", required=True, type=click.Choice(PROFILES))
@click.option("--seed", type=int, help=f"Selection seed (default {DEFAULT_SEED}: everybody's cases).")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Take only so many tasks: a labelled custom subset."
)
@click.option("--no-wait", is_flag=True, help="Return the preparation job at once.")
@click.option(
    "--reuse", multiple=True, metavar="DATASET", help="Take this prepared dataset as it is (repeatable)."
)
@click.option(
    "--fresh", is_flag=True, help="Take pinned sources, whatever other sets of them the store holds."
)
@click.option("--local", is_flag=True, help="Work in this process; needed for imports and history options.")
@click.option("--source-path", metavar="PATH", help="Import this file or checkout (--local).")
@click.option(
    "--revision", metavar="LABEL", help="Version of the import; a checkout's HEAD must be it (--local)."
)
@click.option(
    "--sample-data", metavar="TEXT", help="Label the import as sample data, saying whose (--local)."
)
@click.option(
    "--source-partition", metavar="NAME", help="Record the upstream partition and task identity (--local)."
)
@click.option("--exclusion-snapshot", metavar="FILE", help="Keep named history out of standard (--local).")
@click.option(
    "--evaluation-role", type=click.Choice(["holdout", "retest"]), help="What the set is for (--local)."
)
@click.pass_obj
def prepare(
    obj: Ctx, benchmarks: tuple[str, ...], seed: int | None, local: bool, no_wait: bool, **given: Any
) -> None:
    """Freeze the tasks of one or more benchmarks into a dataset and print its manifest.

    Sources are pinned, downloaded once and verified. The work goes on in a process of its own when this command
    is interrupted; `dataset preparations` shows it. With --local it happens here and now.
    """
    _check_mode(local, no_wait, given)
    from sr_bench_assets.benchmarks.registry import get_benchmark
    from sr_bench_assets.datasets.request import PreparationRequest

    for benchmark in benchmarks:
        get_benchmark(benchmark)  # an unknown one is no job that could be retried

    request = PreparationRequest(
        benchmarks=benchmarks,
        seed=DEFAULT_SEED if seed is None else seed,
        seed_given=seed is not None,
        **given,
    )
    if local:
        _print_manifest(obj, _prepare_here(obj, request))
        return
    from cli.preparing import follow, start

    store, journal = obj.open_journal()
    job = start(store, journal, request)
    if no_wait:
        emit(job.as_dict())
        return
    _print_manifest(obj, follow(store, journal, job))


@dataset.command(name="combine")
@click.argument("datasets", nargs=-1, required=True, metavar="MANIFEST_OR_ID...")
@click.pass_obj
def combine_command(obj: Ctx, datasets: tuple[str, ...]) -> None:
    """Compose prepared datasets (manifest files as `prepare` printed them, or ids) into one.

    Profile, seed and split must agree; conflicting tasks of one benchmark are refused, never merged.
    """
    from sr_bench_assets.datasets.combination import combine
    from sr_bench_assets.datasets.naming import named_dataset

    store = obj.open_store()
    _print_manifest(obj, combine(store, [named_dataset(store, name) for name in datasets]))


@dataset.command()
@click.argument("dataset_id", required=False, metavar="[ID]")
@click.option("--questions", is_flag=True, help="Show the tasks, 25 a page, without answers.")
@click.option("--benchmark", metavar="ID", help="Only this benchmark (with --questions).")
@click.option("--category", metavar="NAME", help="Only this category (with --questions).")
@click.option("--search", metavar="TEXT", help="Only tasks whose text or id holds this (with --questions).")
@click.option("--page", type=int, default=1, show_default=True, help="Page of the tasks (with --questions).")
@click.pass_obj
def show(obj: Ctx, dataset_id: str | None, questions: bool, **filters: Any) -> None:
    """List the prepared datasets, or show one: its manifest, or its tasks with --questions."""
    from cli import dataset_views as views
    from sr_bench_assets.datasets.artifact import list_datasets, load_manifest
    from sr_bench_assets.datasets.browse import questions_page

    store = obj.open_store()
    if dataset_id is None:
        if questions:
            raise SrBenchError(
                "Whose questions?", field="ID", mend="Name a dataset: `dataset show` lists them."
            )
        manifests = list_datasets(store)
        emit([m.as_dict() for m in manifests]) if obj.wants_json else views.show_datasets(manifests)
        return
    manifest = load_manifest(store, dataset_id)
    if questions:
        page = questions_page(manifest, **filters, store=store)
        emit(page) if obj.wants_json else views.show_questions(page)
        return
    emit(manifest.as_dict()) if obj.wants_json else views.show_manifest(manifest)


@dataset.command()
@click.pass_obj
def options(obj: Ctx) -> None:
    """Show what can be prepared on this store, and what is prepared already."""
    from cli import dataset_views as views
    from sr_bench_assets.datasets.catalogue import options as prepare_options

    found = prepare_options(obj.open_store())
    emit(found) if obj.wants_json else views.show_options(found)


@dataset.command()
@click.argument("preparation_id", required=False, metavar="[ID]")
@click.option("--retry", is_flag=True, help="Start a failed preparation again; verified files are reused.")
@click.option("--no-wait", is_flag=True, help="With --retry: return at once.")
@click.pass_obj
def preparations(obj: Ctx, preparation_id: str | None, retry: bool, no_wait: bool) -> None:
    """List the preparation jobs, or show or retry one."""
    from cli import dataset_views as views
    from cli.preparing import follow, spawn_worker
    from sr_bench_assets.datasets.jobs import fail_dead_jobs, get_job, list_jobs, retry_job

    store, journal = obj.open_journal()
    fail_dead_jobs(journal)
    if preparation_id is None:
        if retry:
            raise SrBenchError(
                "Which one?", field="ID", mend="Name a preparation: `dataset preparations` lists them."
            )
        jobs = list_jobs(journal)
        emit([job.as_dict() for job in jobs]) if obj.wants_json else views.show_jobs(jobs)
        return
    job = get_job(journal, preparation_id)
    if retry:
        job = retry_job(journal, job.id)
        spawn_worker(store, job.id)
        if not no_wait:
            _print_manifest(obj, follow(store, journal, job))
            return
    emit(job.as_dict()) if obj.wants_json else views.show_jobs([job])


@dataset.command()
@click.option(
    "--dataset", "dataset_ids", multiple=True, metavar="ID", help="A prepared dataset (repeatable)."
)
@click.option("--run", "run_ids", multiple=True, metavar="ID", help="A run, by its frozen plan (repeatable).")
@click.option("--output", type=click.Path(path_type=Path), help="Write the snapshot here (else stdout).")
@click.pass_obj
def exclusions(obj: Ctx, dataset_ids: tuple[str, ...], run_ids: tuple[str, ...], output: Path | None) -> None:
    """Compile an immutable snapshot of the tasks that named datasets and runs hold.

    It reserves every planned task, failed ones too, as identity hashes without question or answer text. Being
    named does not establish that a model answered or a person read a task.
    """
    from cli.history import snapshot_of

    snapshot = snapshot_of(obj, dataset_ids, run_ids)
    if output is None:
        emit(snapshot.as_dict())
        return
    import orjson

    from resources.durable import write_once

    write_once(output.absolute(), orjson.dumps(snapshot.as_dict(), option=orjson.OPT_INDENT_2))
    summary = {
        "snapshot_sha256": snapshot.snapshot_sha256,
        "output": str(output.absolute()),
        "counts": {name: family.count for name, family in snapshot.families.items()},
    }
    if obj.wants_json:
        emit(summary)
    else:
        counts = ", ".join(f"{count} of {name}" for name, count in summary["counts"].items())
        say(f"Reserved {counts} in {output} (sha256 {snapshot.snapshot_sha256}).")


@dataset.command(hidden=True)
@click.argument("preparation_id")
@click.pass_obj
def work(obj: Ctx, preparation_id: str) -> None:
    """Do a queued preparation in this process (what `prepare` starts in the background)."""
    from sr_bench_assets.datasets.jobs import work_on

    store, journal = obj.open_journal()
    work_on(store, journal, preparation_id)


def _check_mode(local: bool, no_wait: bool, given: dict[str, Any]) -> None:
    if local and no_wait:
        raise SrBenchError(
            "--local works in this process, --no-wait in the background.",
            field="--no-wait",
            mend="Leave one of them out.",
        )
    names = (
        "source_path",
        "revision",
        "sample_data",
        "source_partition",
        "exclusion_snapshot",
        "evaluation_role",
    )
    for name in names:
        if given[name] is not None and not local:
            option = f"--{name.replace('_', '-')}"
            raise SrBenchError(
                f"{option} needs the explicit local mode.", field=option, mend="Add --local to the command."
            )


def _prepare_here(obj: Ctx, request: PreparationRequest) -> DatasetManifest:
    from cli.preparing import PlainProgress
    from sr_bench_assets.datasets.preparation import prepare as prepare_now

    return prepare_now(obj.open_store(), request, PlainProgress())


def _print_manifest(obj: Ctx, manifest: DatasetManifest) -> None:
    if obj.wants_json:
        emit(manifest.as_dict())
        return
    from cli.dataset_views import show_manifest

    show_manifest(manifest)
