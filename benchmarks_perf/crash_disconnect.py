"""Ending the PostgreSQL connections of one process, as an administrator or a failing network does."""

from __future__ import annotations

from collections.abc import Callable

import psutil
from sqlalchemy import create_engine, make_url, text


def disconnecting(url: str) -> Callable[[int], int]:
    """A function that terminates all server sessions of a process and says how many there were."""
    target = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(target, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
    query = text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE client_port = ANY(:ports)"
    )

    def disconnect(pid: int) -> int:
        try:
            runner = psutil.Process(pid)
            # The process that commits for it has connections of its own.
            sockets = [
                one for process in (runner, *runner.children()) for one in process.net_connections("tcp")
            ]
        except psutil.NoSuchProcess:
            return 0
        ports = [one.laddr.port for one in sockets if one.raddr and one.raddr.port == target.port]
        if not ports:
            return 0
        with engine.connect() as connection:
            return int(connection.execute(query, {"ports": ports}).scalar_one())

    return disconnect
