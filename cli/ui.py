"""`ui`: the Dagster webserver and daemon on the store's own instance."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from cli.output import Ctx, say
from resources.errors import SrBenchError

if TYPE_CHECKING:
    from resources.store import Store


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; loopback only.")
@click.option("--port", default=3000, show_default=True, type=click.IntRange(1, 65535))
@click.pass_obj
def ui(obj: Ctx, host: str, port: int) -> int:
    """Open the Dagster UI on this store: assets, lineage, checks, partitions, schedules.

    The UI has no login of its own, so it listens on loopback only; reach it from elsewhere by an SSH tunnel.
    """
    if host != "localhost" and not _is_loopback(host):
        raise SrBenchError(
            f"{host} is not a loopback address, and the Dagster UI has no login.",
            field="--host",
            mend="Use 127.0.0.1 and an SSH tunnel or an authenticating proxy.",
        )
    from resources.dagster_home import prepare_dagster_home, settings_file
    from resources.journal.connection import open_journal
    from resources.journal.leases import reconcile_dead_runs

    store = obj.open_store()
    reconcile_dead_runs(open_journal(store))
    prepare_dagster_home(store)
    _catch_up(store)
    workspace = str(settings_file("workspace.yaml"))
    commands = [
        [sys.executable, "-m", "dagster_webserver", "-w", workspace, "-h", host, "-p", str(port)],
        [sys.executable, "-m", "dagster._daemon", "run", "-w", workspace],
    ]
    say(f"Dagster UI: http://{host}:{port}  (store {store.root}; Ctrl-C stops it)")
    return _serve(commands)


def _catch_up(store: Store) -> None:
    """Show what commands made since the last time, before the first page is served."""
    from dagster import DagsterInstance

    from sensors.lineage import record_artifacts

    with DagsterInstance.get() as instance:
        record_artifacts(store, instance)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _serve(commands: list[list[str]]) -> int:
    """Run the processes until one of them ends or we are interrupted, then end the others."""
    processes = [subprocess.Popen(command, env=os.environ.copy()) for command in commands]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            for process in processes:
                try:
                    process.wait(timeout=0.5)
                except subprocess.TimeoutExpired:
                    continue
                raise SrBenchError(
                    f"A process of the Dagster UI ended with code {process.returncode}.",
                    code="ui_ended",
                    mend="Its messages are above. Often the port is in use: choose another with --port.",
                )
    except (KeyboardInterrupt, SystemExit):
        return 0
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
