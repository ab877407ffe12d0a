"""`ui`: the Dagster webserver and daemon on the store's own instance."""

from __future__ import annotations

import http.client
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
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
    from filelock import FileLock, Timeout

    from resources.dagster_home import prepare_dagster_home, settings_file
    from resources.journal.connection import open_journal
    from resources.journal.leases import reconcile_dead_runs

    _refuse_used_port(host, port)
    store = obj.open_store()
    home = prepare_dagster_home(store)
    lock = FileLock(home / "ui.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise SrBenchError(
            f"The Dagster UI of the store {store.root} is running already.",
            code="ui_running",
            mend="Use that one, or stop it first: two daemons on one store would do everything twice.",
        ) from None
    with lock:
        reconcile_dead_runs(open_journal(store))
        _catch_up(store)
        workspace = ["-w", str(settings_file("workspace.yaml")), "--code-server-log-level", "warning"]
        web = ["dagster_webserver", "-h", host, "-p", str(port), "--dagster-log-level", "warning"]
        daemon = ["dagster._daemon", "run", "--log-level", "warning"]
        say("Starting the Dagster UI…")
        return _serve(
            [[sys.executable, "-m", *command, *workspace] for command in (web, daemon)],
            cwd=home,
            url=f"http://{f'[{host}]' if ':' in host else host}:{port}",
            ready=f"(store {store.root}; Ctrl-C stops it)",
        )


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


def _refuse_used_port(host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return
    raise SrBenchError(
        f"Somebody listens on {host}:{port} already.", field="--port", mend="Choose another port with --port."
    )


def _serve(commands: list[list[str]], *, cwd: Path, url: str, ready: str) -> int:
    """Run the processes until one of them ends or we are interrupted, then end the others.

    `url` is announced when it answers. The processes work in `cwd`: Dagster imports from its working directory
    first, and a folder of the user's may hold a package called like one of ours.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    processes = [subprocess.Popen(command, env=_environment(), cwd=cwd) for command in commands]
    announced = False
    try:
        while True:
            for process in processes:
                if process.poll() is not None:
                    raise SrBenchError(
                        f"A process of the Dagster UI ended with code {process.returncode}.",
                        code="ui_ended",
                        mend="Its messages are above.",
                    )
            if not announced and _answers(url):
                say(f"Dagster UI: {url}  {ready}")
                announced = True
            time.sleep(0.25)
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


def _environment() -> dict[str, str]:
    """Ours, with absolute import paths: the processes work in another folder."""
    paths = [str(Path(__file__).resolve().parents[1])]
    paths += [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/server_info", timeout=1) as response:
            return response.status == 200
    except (OSError, http.client.HTTPException):
        return False
