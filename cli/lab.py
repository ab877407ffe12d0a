"""`sr-bench lab`: simulated and recorded models on loopback, to rehearse a plan, a budget or a router."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.output import Ctx, emit, say
from resources.errors import SrBenchError

if TYPE_CHECKING:
    from resources.lab.config import LabConfig
    from resources.lab.gateway import Lab

DEFAULT_PORT = 8123


@click.group()
def lab() -> None:
    """Serve simulated models on loopback to rehearse a plan. Nothing they say is evidence of a real model."""


@lab.command()
@click.option(
    "--config", "config_path", type=Path, metavar="FILE", help="lab.yaml (default: the built-in example)."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: a free one."
)
@click.option(
    "--dataset",
    "datasets",
    type=Path,
    multiple=True,
    metavar="PATH",
    help="cases.jsonl to know, or a folder of such files (repeatable; default: the store's datasets).",
)
@click.option("--recorded", type=Path, metavar="CSV", help="Serve the models of a CSV of predictions.")
@click.pass_obj
def serve(
    obj: Ctx,
    config_path: Path | None,
    host: str,
    port: int,
    datasets: tuple[Path, ...],
    recorded: Path | None,
) -> None:
    """Serve the lab gateway until it is interrupted; prints its address first."""
    from resources.lab.answer_key import AnswerKey
    from resources.lab.gateway import Lab
    from resources.lab.running import check_loopback

    check_loopback(host)
    config = read_config(config_path, recorded)
    if config.api_key_env is not None and not os.environ.get(config.api_key_env):
        raise SrBenchError(
            f"the environment variable {config.api_key_env} is not set",
            field="api_key_env",
            mend="Set it to the key that the lab shall ask for.",
        )
    paths = datasets or (obj.open_store().datasets_dir,)
    served = Lab(config, AnswerKey.open(paths))
    asyncio.run(_serve(obj, served, host, port))


@lab.command()
@click.option(
    "--config", "config_path", type=Path, metavar="FILE", help="lab.yaml (default: the built-in example)."
)
@click.option("--recorded", type=Path, metavar="CSV", help="As for `serve`.")
@click.option(
    "--url", default=f"http://127.0.0.1:{DEFAULT_PORT}", show_default=True, help="Where the lab is served."
)
@click.option("--judges", is_flag=True, help="List the judges of the configuration instead.")
def targets(config_path: Path | None, recorded: Path | None, url: str, judges: bool) -> None:
    """Print the targets of a lab configuration, ready for `sr-bench target register --file`."""
    from resources.lab.gateway import Lab
    from resources.lab.target_list import lab_targets

    config = read_config(config_path, recorded)
    served = Lab(config)  # checks that routers only call what is served
    emit(lab_targets(config, served.recording, url.rstrip("/").removesuffix("/v1"), judges=judges))


@lab.command()
def example() -> None:
    """Print a commented lab.yaml."""
    from resources.lab.config import EXAMPLE

    click.echo(EXAMPLE.read_text(encoding="utf-8"), nl=False)


def read_config(path: Path | None, recorded: Path | None) -> LabConfig:
    """The configuration of `--config` with `--recorded` applied. Without `--config`: the built-in example, or
    nothing but the recorded models."""
    from resources.lab.config import EXAMPLE, load_config, parse_config

    if recorded is None:
        return load_config(path or EXAMPLE)
    file = str(recorded.resolve())
    if path is None:
        return parse_config({"recorded": {"file": file}})
    config = load_config(path)
    section = config.recorded.model_dump(mode="json") if config.recorded is not None else {}
    return parse_config(
        config.model_dump(mode="json") | {"recorded": section | {"file": file}}, where=path.name
    )


async def _serve(obj: Ctx, served: Lab, host: str, port: int) -> None:
    from resources.lab.running import start_site, url_of

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopped.set)
    runner, bound = await start_site(served, host, port)
    try:
        _announce(obj, served, url_of(host, bound))
        await stopped.wait()
    finally:
        await runner.cleanup()


def _announce(obj: Ctx, served: Lab, url: str) -> None:
    notes = _warnings(served)
    for note in notes:
        say(f"Warning: {note}")
    if obj.wants_json:
        emit(
            {
                "url": url,
                "base_url": f"{url}/v1",
                "port": int(url.rsplit(":", 1)[1]),
                "pid": os.getpid(),
                "models": list(served.behaviours),
                "routers": list(served.routers),
                "config_hash": served.config_hash,
                "known_cases": len(served.key),
                "warnings": notes,
            }
        )
        return
    click.echo(f"Lab gateway at {url}/v1  (Ctrl-C stops it; counters at {url}/lab/stats)")
    click.echo(f"  models  {', '.join(served.behaviours)}")
    if served.routers:
        click.echo(f"  routers {', '.join(served.routers)}  (config hash {served.config_hash[:12]}…)")
    click.echo(
        f"  knows {len(served.key)} prepared questions. These are simulations, not evidence of real models."
    )


def _warnings(served: Lab) -> list[str]:
    notes: list[str] = []
    if not len(served.key):
        notes.append("no prepared questions yet; replies carry no answers until a dataset is prepared")
    recorded, recording = served.config.recorded, served.recording
    if recorded is not None and recording is not None:
        known, prepared = recording.coverage(recorded.benchmark, served.key.all_cases())
        if known < prepared:
            notes.append(
                f"the recording answers {known} of the {prepared} prepared {recorded.benchmark} questions"
            )
    return notes
