"""Who a process is, and whether it still lives."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_START_TOLERANCE_S = 2.0
"""Start times are derived from the boot time, which moves a little when the clock is set."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that no later one with the same pid can be taken for."""

    pid: int
    started: float
    """Seconds since the epoch."""
    host: str
    """Host name and, on Linux, pid namespace: pids of two containers do not compare."""


@lru_cache(maxsize=1)
def _identity_of(pid: int) -> ProcessIdentity:
    import psutil  # imported late: most commands need no process table

    return ProcessIdentity(pid, psutil.Process(pid).create_time(), host_name())


def this_process() -> ProcessIdentity:
    """The identity of the calling process (correct after a fork, too)."""
    return _identity_of(os.getpid())


def host_name() -> str:
    """Name of this host, with the pid namespace where it has one."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {namespace}"


def process_alive(pid: int, pid_started: float, host: str) -> bool | None:
    """Whether the process lives; None where that cannot be seen from this host. A zombie is dead."""
    if host != host_name():
        return None
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return False
        return abs(process.create_time() - pid_started) <= _START_TOLERANCE_S
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
