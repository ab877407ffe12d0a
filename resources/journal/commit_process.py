"""Committing in a process of its own, so that it never waits for the interpreter lock of a busy event loop.

Measured at 64 calls in flight: a dispatch waits 2 ms for its commit instead of 10. The runner and this process talk
over a socket pair. When the runner dies, what it still said about calls that had ended is committed; requests that it
had no answer for yet are not, for it cannot have sent them.

`python -m resources.journal.commit_process FD` is the process where it cannot be forked.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from resources.errors import Unavailable
from resources.journal.batch import Operation
from resources.journal.calls import Dispatch
from resources.journal.connection import open_journal
from resources.journal.group_commit import Answer, GroupCommit
from resources.journal.wire import (
    FrameReader,
    answers_frame,
    frame,
    operation_frame,
    read_answers,
    read_operation,
)
from resources.store import Store

_MAX_BATCH = 256
_READ_BYTES = 1 << 20
_END = "end"


class CommitProcess:
    """The runner's side. Start it early, `serve` a run, then use it as the writer's committer."""

    def __init__(self, ours: socket.socket, wait: Callable[[], int]) -> None:
        self._socket = ours
        self._wait = wait
        self._reader = FrameReader()
        self._unsent = bytearray()
        self._last_words: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered: Callable[[Sequence[Answer]], None] | None = None
        self._broken: Callable[[Exception], None] | None = None

    @classmethod
    def forked(cls) -> CommitProcess:
        """A copy of this process, which must have no threads and no open databases: costs milliseconds."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                ours.close()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                status = serve(theirs)
            finally:
                # Not sys.exit: what the runner registered to be done at its end is not this process's.
                os._exit(status)
        theirs.close()
        return cls(ours, lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    @classmethod
    def spawned(cls) -> CommitProcess:
        """A fresh interpreter: some tenths of a second of processor time until it is ready."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        root = Path(__file__).parents[2]
        path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        return cls(ours, process.wait)

    def serve(self, store: Store, run_id: str) -> None:
        """Tell it whose calls it commits; once, before anything is sent."""
        self._socket.sendall(frame((str(store.root), run_id)))

    def open(
        self,
        loop: asyncio.AbstractEventLoop,
        answered: Callable[[Sequence[Answer]], None],
        broken: Callable[[Exception], None],
    ) -> None:
        """`answered` is called in `loop` with the answers to operations, in the order in which they were sent;
        `broken` when there will be no more."""
        self._loop, self._answered, self._broken = loop, answered, broken
        self._socket.setblocking(False)
        loop.add_reader(self._socket.fileno(), self._read)

    def send(self, operations: Sequence[Operation]) -> None:
        """Have `operations` committed."""
        waiting = bool(self._unsent)
        for operation in operations:
            self._unsent += operation_frame(operation)
        if not waiting:
            self._write()

    def close(self) -> None:
        """Return when all that was sent is committed and the process has ended. May be called from any thread once
        the loop rests."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
        self._socket.setblocking(False)
        self._unsent += frame(_END)
        with self._socket, contextlib.suppress(OSError):
            while True:
                # Answers that nobody waits for any more are read all the same, or the process could not go on.
                writing = [self._socket] if self._unsent else []
                readable, writable, _ = select.select([self._socket], writing, [])
                if writable:
                    del self._unsent[: self._socket.send(self._unsent)]
                if readable and not self._socket.recv(_READ_BYTES):
                    break
        self._wait()

    def _write(self) -> None:
        assert self._loop is not None  # opened before anything was sent
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._lost(error)
            return
        del self._unsent[:sent]
        if self._unsent:
            self._loop.add_writer(self._socket.fileno(), self._write)
        else:
            self._loop.remove_writer(self._socket.fileno())

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        if not data:
            self._lost(None)
            return
        for value in self._reader.feed(data):
            if isinstance(value, str):
                self._last_words = value
            elif self._answered is not None:
                self._answered(read_answers(value))

    def _lost(self, error: OSError | None) -> None:
        assert self._loop is not None  # nothing is read or written before
        self._unsent.clear()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        if self._broken is not None:
            cause = self._last_words or error
            self._broken(
                Unavailable(
                    "the process that writes the journal has ended" + (f": {cause}" if cause else ""),
                    code="journal_unavailable",
                    mend="Nothing more is sent; what was not sent can be recovered.",
                )
            )


def serve(channel: socket.socket) -> int:
    """The process's side: commit for one run until the runner says that it is done, or is gone. Its exit code."""
    gc.freeze()
    gc.enable()  # a runner that forks it does so with the collector at rest
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The runner decides: it may have ends of calls to tell yet.
        signal.signal(number, signal.SIG_IGN)
    try:
        _serve(channel)
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            channel.sendall(frame(f"{type(error).__name__}: {error}"))
        return 1
    return 0


def _serve(channel: socket.socket) -> None:
    reader = FrameReader()
    values, gone = _read_all(channel, reader)
    while not values and not gone:
        select.select([channel], [], [])
        values, gone = _read_all(channel, reader)
    if not values or values[0] == _END:
        return
    root, run_id = values.pop(0)
    store = Store.open(root)
    journal = open_journal(store)
    commits = GroupCommit(journal, run_id, store.evidence_dir(run_id))
    while True:
        done = values[-1:] == [_END]
        operations = [read_operation(value) for value in (values[:-1] if done else values)]
        if gone and not done:
            operations = [operation for operation in operations if not isinstance(operation, Dispatch)]
        for start in range(0, len(operations), _MAX_BATCH):
            answers = commits.commit(operations[start : start + _MAX_BATCH])
            with contextlib.suppress(OSError):  # the runner is gone: the next read tells
                channel.sendall(answers_frame(answers))
        if done or gone:
            break
        select.select([channel], [], [], commits.beat_if_due())
        values, gone = _read_all(channel, reader)
    commits.close()
    journal.close()


def _read_all(channel: socket.socket, reader: FrameReader) -> tuple[list[Any], bool]:
    """What has arrived, and whether the other side is gone."""
    values: list[Any] = []
    while True:
        try:
            data = channel.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return values, False
        except OSError:
            return values, True
        if not data:
            return values, True
        values += reader.feed(data)


if __name__ == "__main__":
    sys.exit(serve(socket.socket(fileno=int(sys.argv[1]))))
