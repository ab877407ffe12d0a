"""A fast OpenAI-compatible endpoint for measuring clients: `python -m benchmarks_perf.stub --port 9000`.

POST …/chat/completions answers after `--latency-ms`, streamed when asked: `--events` text events, all at once or
`--interval-ms` apart. The first event's text begins with the server's clock, `t=<seconds since the epoch>;`.
`--refuse 0.2` answers that share of the requests at once with 429 and `Retry-After: 1`, drawn anew for each repetition.
GET /stats: requests, first and last times, most in flight, bodies repeated although not refused, and how many bodies
were refused how often. POST /reset clears.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
_REFUSAL = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
_USAGE = {"prompt_tokens": 60, "completion_tokens": 30, "total_tokens": 90}


@dataclass
class Stub:
    """What the server does and what it has seen."""

    latency_s: float
    events: int
    interval_s: float
    refuse: float = 0
    seen: set[bytes] = field(default_factory=set[bytes])
    refused: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """How often each body was refused."""
    stats: dict[str, Any] = field(default_factory=dict[str, Any])

    def reset(self) -> None:
        self.seen.clear()
        self.refused.clear()
        self.stats = {"n": 0, "dups": 0, "inflight": 0, "max_inflight": 0, "first": None, "last": None}

    def begin(self, body: bytes) -> bool:
        """Count a request; False if it is refused."""
        digest = hashlib.blake2b(body, digest_size=12).digest()
        stats = self.stats
        stats["n"] += 1
        if self.refuse and self._refuses(digest):
            return False
        stats["dups"] += digest in self.seen
        self.seen.add(digest)
        stats["inflight"] += 1
        stats["max_inflight"] = max(stats["max_inflight"], stats["inflight"])
        stats["first"] = stats["first"] or time.time()
        return True

    def _refuses(self, digest: bytes) -> bool:
        before = self.refused.get(digest, 0)
        drawn = hashlib.blake2b(digest + before.to_bytes(2), digest_size=8).digest()
        if int.from_bytes(drawn) / 2**64 >= self.refuse:
            return False
        self.refused[digest] = before + 1
        self.stats["first"] = self.stats["first"] or time.time()
        return True

    def chains(self) -> dict[str, int]:
        """Number of refusals → how many bodies had as many."""
        return {str(times): count for times, count in sorted(Counter(self.refused.values()).items())}

    def end(self) -> None:
        self.stats["inflight"] -= 1
        self.stats["last"] = time.time()


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests are parsed by hand, one at a time."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._buffer = b""
        self._transport: Any = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            head, mark, rest = self._buffer.partition(b"\r\n\r\n")
            if not mark:
                return
            length = 0
            for line in head.split(b"\r\n")[1:]:
                if line[:15].lower() == b"content-length:":
                    length = int(line[15:])
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._serve(head.split(b" ", 2)[1], rest[:length])

    def _serve(self, path: bytes, body: bytes) -> None:
        stub = self._stub
        if path == b"/stats":
            self._json({**stub.stats, "refused": stub.chains()})
        elif path == b"/reset":
            stub.reset()
            self._json({})
        elif path.endswith(b"/models"):
            self._json({"data": []})
        else:
            if not stub.begin(body):
                self._transport.write(_REFUSAL)
                return
            stream = b'"stream":true' in body
            loop = asyncio.get_running_loop()
            if stream and stub.interval_s:
                task = loop.create_task(self._paced())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                loop.call_later(stub.latency_s, self._whole, stream)

    def _whole(self, stream: bool) -> None:
        if self._transport.is_closing():
            self._stub.end()
            return
        if stream:
            body = b"".join([self._event(index) for index in range(self._stub.events)] + [_tail()])
            head = _HEAD % b"text/event-stream" + b"Transfer-Encoding: chunked\r\n\r\n"
            self._transport.write(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            message = {"role": "assistant", "content": "The answer is (B)"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._json({"model": "stub", "choices": [choice], "usage": _USAGE})
        self._stub.end()

    async def _paced(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._stub.latency_s)
        self._transport.write(_HEAD % b"text/event-stream" + b"Transfer-Encoding: chunked\r\n\r\n")
        due = loop.time()
        for index in range(self._stub.events):
            if self._transport.is_closing():
                break
            event = self._event(index)
            self._transport.write(b"%x\r\n%s\r\n" % (len(event), event))
            due += self._stub.interval_s
            await asyncio.sleep(max(0.0, due - loop.time()))
        tail = _tail()
        self._transport.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(tail), tail))
        self._stub.end()

    def _event(self, index: int) -> bytes:
        text = "so it follows "
        if index == 0:
            text = f"t={time.time():.6f}; "
        elif index == self._stub.events - 1:
            text = "\nThe answer is (B)"
        return _event({"choices": [{"index": 0, "delta": {"content": text}}], "model": "stub"})

    def _json(self, value: Any) -> None:
        body = orjson.dumps(value)
        self._transport.write(
            _HEAD % b"application/json" + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )


def _event(value: Any) -> bytes:
    return b"data: " + orjson.dumps({"id": "c", "object": "chat.completion.chunk", **value}) + b"\n\n"


def _tail() -> bytes:
    stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "model": "stub"}
    return _event(stop) + _event({"choices": [], "model": "stub", "usage": _USAGE}) + b"data: [DONE]\n\n"


async def serve(port: int, stub: Stub) -> None:
    """Serve until cancelled; port 0 takes a free one. Prints the port."""
    stub.reset()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(stub), "127.0.0.1", port, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--events", type=int, default=8)
    parser.add_argument("--interval-ms", type=float, default=0)
    parser.add_argument("--refuse", type=float, default=0)
    arguments = parser.parse_args()
    try:
        import uvloop

        run: Any = uvloop.run
    except ImportError:
        run = asyncio.run
    stub = Stub(arguments.latency_ms / 1000, arguments.events, arguments.interval_ms / 1000, arguments.refuse)
    run(serve(arguments.port, stub))


if __name__ == "__main__":
    main()
