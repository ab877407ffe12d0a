"""Repeating a transaction that an outage of the database interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from resources.errors import Unavailable
from resources.journal.engine import HOPELESS

Result = TypeVar("Result")


def patiently(transaction: Callable[[], Result], *, seconds: float = 60.0, full_disk: bool = False) -> Result:
    """The result of `transaction`, repeated for up to `seconds` while the journal cannot be reached.

    Only for transactions that may be repeated although an earlier commit succeeded whose acknowledgement was lost.
    A damaged journal is not waited for, a full disk only with `full_disk`. Raises the last `Unavailable`.
    """
    give_up = time.monotonic() + seconds
    pause = 0.05
    while True:
        try:
            return transaction()
        except Unavailable as error:
            hopeless = error.code in HOPELESS and not (full_disk and error.code == "disk_full")
            if hopeless or time.monotonic() + pause > give_up:
                raise
        time.sleep(pause)
        pause = min(pause * 2, 2.0)
