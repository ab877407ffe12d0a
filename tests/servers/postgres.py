"""A private PostgreSQL cluster for tests, from the distribution's own binaries, on a loopback port."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_OPTIONS = (
    "fsync=off",  # tests kill clients, never the machine
    "listen_addresses=127.0.0.1",
    "max_connections=60",
    "shared_buffers=32MB",
)


@dataclass(frozen=True)
class PostgresServer:
    """A running cluster; `create_database` makes a fresh empty database."""

    port: int
    bin: Path
    account: str | None

    def url(self, database: str) -> str:
        """As a person writes it in `SR_BENCH_DATABASE_URL`."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """A new database; its URL."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        subprocess.run([self.bin / "createdb", *where, name], check=True, user=self.account)
        return self.url(name)


def postgres_bin() -> Path | None:
    """Folder of the newest installed server's programs, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).parent if on_path and shutil.which("initdb") else None


def why_not() -> str | None:
    """Why no server can be started here, or None."""
    if postgres_bin() is None:
        return "no PostgreSQL server is installed"
    if os.geteuid() == 0 and _account() is None:
        return "PostgreSQL refuses to run as root and there is no user postgres"
    return None


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server in a folder of its own under the temporary folder, removed afterwards."""
    programs = postgres_bin()
    assert programs is not None
    account = _account() if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="sr-bench-pg-"))
    try:
        if account is not None:
            shutil.chown(folder, account)
        data = folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True,
            user=account,
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        port = _free_port()
        options = [
            part for option in (*_OPTIONS, f"unix_socket_directories={folder}") for part in ("-c", option)
        ]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, "-p", str(port), *options],
                user=account,
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        try:
            _wait(server, programs, port, folder / "log")
            yield PostgresServer(port, programs, account)
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown; SIGTERM would wait for idle clients
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> str | None:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _wait(server: subprocess.Popen[bytes], programs: Path, port: int, log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ready = subprocess.run(
            [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False
        )
        if ready.returncode == 0:
            return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}")
