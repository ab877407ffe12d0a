"""`report`, `compare`, `reconcile-usage` and `rebuild`: what a run showed, and whether its records hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click

from cli.output import Ctx, emit, say
from resources.errors import Incomplete, SrBenchError

Format = Literal["json", "markdown", "csv", "terminal"]
_BY_SUFFIX: dict[str, Format] = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".csv": "csv"}


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--benchmark", help="One benchmark of the run only.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a .json or .md file instead."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "terminal"]),
    help="Default: by terminal or suffix.",
)
@click.pass_obj
def report(obj: Ctx, run_id: str, benchmark: str | None, output: Path | None, form: Format | None) -> None:
    """Report accuracy with intervals, tokens, costs, times and limitations of RUN."""
    chosen = _format(obj, output, form, allowed=("json", "markdown", "terminal"))
    from sr_bench_assets.reports.report import build_report

    store, journal = obj.open_journal()
    found = build_report(store, journal, run_id, benchmark)
    if chosen == "markdown":
        from sr_bench_assets.reports.markdown import report_markdown

        _deliver(report_markdown(found), output)
    elif chosen == "json":
        _deliver(found, output)
    else:
        from sr_bench_assets.reports.terminal import print_report

        print_report(found)


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidates", metavar="[CANDIDATE]...", nargs=-1)
@click.option("--baseline-target", help="This single model instead of the strongest.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to a .json, .csv or .md file instead.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "markdown", "terminal"]),
    help="Default: by terminal or suffix.",
)
@click.pass_obj
def compare(
    obj: Ctx,
    baseline: str,
    candidates: tuple[str, ...],
    baseline_target: str | None,
    output: Path | None,
    form: Format | None,
) -> None:
    """Compare candidate runs with the strongest single model of the BASELINE run, case by case.

    Without a candidate the MoM targets of the baseline run itself are compared.
    """
    chosen = _format(obj, output, form, allowed=("json", "csv", "markdown", "terminal"))
    from sr_bench_assets.reports.comparison import compare_runs

    store, journal = obj.open_journal()
    found = compare_runs(store, journal, baseline, candidates, baseline_target=baseline_target)
    if chosen == "csv":
        from sr_bench_assets.reports.comparison_csv import comparison_csv

        _deliver(comparison_csv(found), output)
    elif chosen == "markdown":
        from sr_bench_assets.reports.markdown import comparison_markdown

        _deliver(comparison_markdown(found), output)
    elif chosen == "json":
        _deliver(found, output)
    else:
        from sr_bench_assets.reports.terminal import print_comparison

        print_comparison(found)


@click.command("reconcile-usage")
@click.argument("run_id", metavar="RUN")
@click.pass_obj
def reconcile_usage(obj: Ctx, run_id: str) -> None:
    """Verify or correct the usage and cost of every call of RUN by its retained stream.

    Sends nothing and changes no record: the finding is appended, later reports use it. Repeating it gives the
    same finding.
    """
    from sr_bench_assets.usage.accounting import reconcile_run

    store, journal = obj.open_journal()
    found = reconcile_run(store, journal, run_id)
    if obj.wants_json:
        emit(found)
        return
    counts = found["counts"]
    click.echo(
        f"{counts['calls']} calls: {counts['verified']} verified, {counts['corrected']} corrected, "
        f"{counts['unknown']} unknown, {counts['without_spend']} without spend.\n"
        f"Known spend {found['old_known_cost_usd']} → {found['new_known_cost_usd']} USD.\n"
        f"Correction {found['sha256']}"
    )
    for reason, number in found["unknown_reasons"].items():
        click.echo(f"  {number} × {reason}")


@click.command()
@click.argument("run_id", metavar="RUN")
@click.pass_obj
def rebuild(obj: Ctx, run_id: str) -> None:
    """Rebuild the derived records of RUN's calls from raw evidence, offline, and compare them."""
    from sr_bench_assets.usage.rebuild import rebuild_run

    store, journal = obj.open_journal()
    found = rebuild_run(store, journal, run_id)
    if obj.wants_json:
        emit(found)
    else:
        click.echo(
            f"{found['calls']} calls: {found['equal']} rebuilt equal, {len(found['different'])} different, "
            f"{found['without_evidence']} without evidence."
        )
        for item in found["different"]:
            click.echo(f"  {item['call_id']}: {', '.join(item['fields'])}")
    if found["different"]:
        raise Incomplete(
            f"{len(found['different'])} calls of run {found['run_id']} differ from their evidence.",
            code="records_differ",
            mend="`sr-bench show RUN --call-id ID` shows a call; if the store was changed, restore a backup.",
        )


def _format(obj: Ctx, output: Path | None, form: Format | None, *, allowed: tuple[Format, ...]) -> Format:
    """The wanted format: named, by the file's suffix, else JSON or the terminal."""
    if form is None and output is not None:
        form = _BY_SUFFIX.get(output.suffix.lower())
        if form not in allowed:
            raise SrBenchError(
                f"The suffix of {output.name} names no format.",
                field="--output",
                mend=f"Use --format, or a suffix of {', '.join(allowed[:-1])}.",
            )
    if form == "terminal" and output is not None:
        raise SrBenchError(
            "A file cannot be a terminal.", field="--format", mend=f"Choose {', '.join(allowed[:-1])}."
        )
    return form or ("json" if obj.wants_json else "terminal")


def _deliver(content: dict[str, Any] | str, output: Path | None) -> None:
    """To the file, else to stdout. An existing file is replaced whole or not at all."""
    if output is None:
        if isinstance(content, dict):
            emit(content)
        else:
            sys.stdout.write(content)
        return
    import orjson

    from resources.durable import replace_file

    data = (
        orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if isinstance(content, dict)
        else content.encode()
    )
    replace_file(output, data)
    say(f"Written to {output}.")
