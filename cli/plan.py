"""`plan`: verify a manifest against everything it depends on and freeze it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from cli.output import Ctx, emit, say


@click.command()
@click.option("--manifest", required=True, type=click.Path(path_type=Path), help="Manifest, YAML or JSON.")
@click.option("--output", type=click.Path(path_type=Path), help="Also write the frozen plan to this file.")
@click.option("--check-endpoints", is_flag=True, help="Fail unless every endpoint answers GET /models.")
@click.pass_obj
def plan(obj: Ctx, manifest: Path, output: Path | None, check_endpoints: bool) -> None:
    """Verify a manifest and freeze it. No model is called.

    Dataset bytes, profile and seed, targets, prices, limits, judges and environment variables are checked,
    and all problems listed at once. The frozen plan carries every default and its plan_sha256; it is kept in
    the store. A relative dataset path counts from the manifest's folder; a target may be
    {"ref": "<registered id>"}.
    """
    import orjson

    from resources.store import replace_file
    from sr_bench_assets.plans.advice import advice
    from sr_bench_assets.plans.freeze import plan_from
    from sr_bench_assets.plans.plan_store import plan_document, put_plan
    from sr_bench_assets.plans.summary import plan_text

    store = obj.open_store()
    frozen = plan_from(manifest, store)
    if check_endpoints:
        from resources.endpoints import require_endpoints

        require_endpoints(frozen.all_targets, os.environ)
    put_plan(store, frozen)
    document = plan_document(frozen)
    if output is not None:
        replace_file(output, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    if obj.wants_json:
        emit(document)
        for line in advice(frozen):
            say(f"note: {line}")
        return
    sys.stdout.write(f"{plan_text(frozen)}\n")
    say(f"Next: sr-bench run --manifest {output or store.plans_dir / f'{frozen.plan_sha256}.json'}")
