"""HTTP/1.1 as servers really speak it: every framing, whole and one byte at a time."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from resources.gateway.client import GatewayClient
from tests.resources.gateway.calling import (
    ANSWER,
    DONE,
    checked_evidence,
    event,
    limits,
    request,
    run,
    send_once,
    target,
)
from tests.servers.scripted import LAST_CHUNK, STREAM_HEAD, Connection, ScriptedServer, chunk, whole

SSE = "Content-Type: text/event-stream"
OK = "HTTP/1.1 200 OK"
HALVES = ANSWER[:40], ANSWER[40:]
CHUNKED = b"".join(map(chunk, HALVES)) + LAST_CHUNK


def head(*lines: str, end: str = "\r\n") -> bytes:
    return (end.join(lines) + end + end).encode("latin-1")


COMPLETE = {
    "chunked": STREAM_HEAD + CHUNKED,
    "sized": whole(200, ANSWER, SSE),
    "until close": head(OK, SSE) + ANSWER,
    "HTTP/1.0": head("HTTP/1.0 200 OK", SSE) + ANSWER,
    "closing": whole(200, ANSWER, SSE, "Connection: close"),
    "chunk extensions and trailers": STREAM_HEAD
    + b"%x;name=value\r\n%s\r\n0\r\nX-Checksum: 1\r\nContent-Type: a/b\r\n\r\n" % (len(ANSWER), ANSWER),
    "upper-case chunk sizes with zeros": STREAM_HEAD + b"00%X\r\n%s\r\n000\r\n\r\n" % (len(ANSWER), ANSWER),
    "a continuation first": head("HTTP/1.1 100 Continue") + whole(200, ANSWER, SSE),
    "early hints first": head("HTTP/1.1 103 Early Hints", "Link: </a>") * 2 + STREAM_HEAD + CHUNKED,
    "no reason": head("HTTP/1.1 200", SSE, "Transfer-Encoding: chunked") + CHUNKED,
    "header names in any case": head(OK, "CONTENT-TYPE: Text/Event-Stream", "transfer-encoding: Chunked") + CHUNKED,
    "LF alone in the head": head(OK, SSE, f"Content-Length: {len(ANSWER)}", end="\n") + ANSWER,
    "a folded header": head(OK, SSE, "X-Note: one", "  two", "Transfer-Encoding: chunked") + CHUNKED,
    "a header in latin-1": head(OK, SSE, "Server: caf\xe9", "Transfer-Encoding: chunked") + CHUNKED,
    "a header of 200 kB": head(OK, SSE, "X-Vsr-Note: " + "n" * 200_000, "Transfer-Encoding: chunked") + CHUNKED,
    "more than was announced": whole(200, ANSWER, SSE) + b"HTTP/1.1 200 OK\r\n",
    "nonsense after the end": whole(200, ANSWER, SSE) + b"nonsense",
}  # fmt: skip
BROKEN = {
    "no HTTP": (b"220 ready\r\n" * 20, "connection_lost"),
    "hung up at once": (b"", "connection_lost"),
    "hung up in the head": (STREAM_HEAD[:30], "connection_lost"),
    "an endless head": (head(OK)[:-2] + b"X-A: " + b"a" * 1_200_000, "connection_lost"),
    "an upgrade": (head("HTTP/1.1 101 Switching", "Upgrade: h2c", "Connection: upgrade"), "stream_truncated"),
    "less than was announced": (head(OK, SSE, "Content-Length: 9000") + event("half "), "stream_truncated"),
    "cut between chunks": (STREAM_HEAD + chunk(event("half ")), "stream_truncated"),
    "no chunk size": (STREAM_HEAD + chunk(event("half ")) + b"ZZ\r\n", "stream_truncated"),
    "no content": (head("HTTP/1.1 204 No Content"), "stream_truncated"),
}


async def _reply_to(response: bytes, *, slow: bool) -> ScriptedServer:
    async def script(connection: Connection) -> None:
        step = 1 if slow else len(response) or 1
        for at in range(0, len(response), step):
            await connection.send(response[at : at + step])
            await asyncio.sleep(0)
        connection.writer.close()

    return ScriptedServer(script)


@pytest.mark.parametrize(
    ("name", "slow"),
    [(name, False) for name in COMPLETE]
    + [(name, True) for name in COMPLETE if len(COMPLETE[name]) < 10_000],
)
def test_every_framing_of_a_whole_reply_is_read(name: str, slow: bool) -> None:
    async def work() -> None:
        async with await _reply_to(COMPLETE[name], slow=slow) as server:
            outcome = await send_once(server.base_url)
            assert (outcome.reply.failure, outcome.reply.final) == (None, "The answer is (B)")
            assert outcome.headers["content-type"].lower() == "text/event-stream"
            assert checked_evidence(outcome).body == ANSWER
            assert len(server.requests) == 1

    run(work())


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_framing_is_a_failed_call(name: str) -> None:
    response, failure = BROKEN[name]

    async def work() -> None:
        async with await _reply_to(response, slow=False) as server:
            outcome = await send_once(server.base_url)
            assert (outcome.kind, outcome.reply.failure) == ("failed", failure)
            assert not outcome.never_sent
            assert outcome.detail is None or len(outcome.detail) <= 300
            if "half" in repr(response):
                assert outcome.reply.text == "half "
            assert len(server.requests) == 1

    run(work())


@pytest.mark.parametrize(
    "first",
    [
        whole(200, ANSWER, SSE) + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
        whole(200, ANSWER, SSE, "Connection: close"),
        head("HTTP/1.0 200 OK", SSE, f"Content-Length: {len(ANSWER)}") + ANSWER,
        whole(429, b"later", "Retry-After: 1", "Connection: close"),
    ],
)
def test_a_connection_that_cannot_be_trusted_any_more_is_not_used_again(first: bytes) -> None:
    replies = [first, whole(200, event("second") + event(finish="stop") + DONE, SSE)]

    async def script(connection: Connection) -> None:
        await connection.send(replies.pop(0))

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            await client.send(request(to), api_key=None, limits=limits(), target=to)
            second = await client.send(request(to), api_key=None, limits=limits(), target=to)
            assert second.reply.final == "second"
            assert (server.connections, len(server.requests)) == (2, 2)

    run(work())


def test_bytes_that_nobody_asked_for_end_an_idle_connection() -> None:
    late: list[asyncio.Task[None]] = []

    async def script(connection: Connection) -> None:
        await connection.send(whole(200, ANSWER, SSE))
        late.append(asyncio.create_task(_say_more(connection)))

    async def _say_more(connection: Connection) -> None:
        await asyncio.sleep(0.02)
        await connection.send(whole(200, event("wrong") + DONE, SSE))

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            for _ in range(2):
                outcome = await client.send(request(to), api_key=None, limits=limits(), target=to)
                assert outcome.reply.final == "The answer is (B)"
                await asyncio.sleep(0.05)
            assert server.connections == 2

    run(work())


def test_a_long_request_that_is_answered_before_it_was_read() -> None:
    async def answer_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole(413, b"too long", "Connection: close"))
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(answer_early, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        to = target(f"http://127.0.0.1:{port}/v1")
        long = request(to, bounds=limits())
        big = type(long)(long.url, b'{"x":"' + b"x" * 20_000_000 + b'"}', "0" * 64, 10, True, long.headers)
        async with GatewayClient() as client:
            outcome = await client.send(big, api_key=None, limits=limits(), target=to)
        server.close()
        assert (outcome.http_status, outcome.reply.error_message) == (413, "too long")

    run(work())


def test_the_request_says_where_it_goes_and_what_it_holds() -> None:
    async def script(connection: Connection) -> None:
        await connection.stream(ANSWER)

    async def work() -> None:
        async with ScriptedServer(script) as server:
            await send_once(f"http://localhost:{server.port}/a%20b/v1", api_key="schl\u00fcssel-123")
            sent, body = server.requests[0]
            lines = sent.decode().split("\r\n")
            assert lines[0] == "POST /a%20b/v1/chat/completions HTTP/1.1"
            assert f"Host: localhost:{server.port}" in lines
            assert f"Content-Length: {len(body)}" in lines
            assert "Authorization: Bearer schl\u00fcssel-123" in lines
            assert json.loads(body)["model"] == "m-1"

    run(work())


def test_a_key_that_would_break_the_head_is_never_sent() -> None:
    async def work() -> None:
        async with ScriptedServer(lambda connection: connection.stream(ANSWER)) as server:
            outcome = await send_once(server.base_url, api_key="secret-1234\r\nX-Evil: 1")
            assert (outcome.reply.failure, outcome.never_sent) == ("connect_error", True)
            assert "secret" not in repr(outcome) + repr(checked_evidence(outcome))
            assert not server.requests

    run(work())


def test_a_name_that_does_not_exist_is_a_connect_error() -> None:
    outcome = run(send_once("http://no-such-host.invalid/v1", bounds=limits(connect_timeout_s=3)))
    assert (outcome.reply.failure, outcome.never_sent) == ("connect_error", True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("good", "other"):
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={name}",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-keyout",
                tmp_path / f"{name}.key",
                "-out",
                tmp_path / f"{name}.pem",
            ],
            check=True,
            capture_output=True,
        )
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "good.pem"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536) != b"":
            writer.write(whole(200, ANSWER, SSE))

    async def work() -> None:
        for name, host, failure in (
            ("good", "localhost", None),
            ("other", "localhost", "connect_error"),
            ("good", "127.0.0.1", "connect_error"),
        ):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
            server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
            port = server.sockets[0].getsockname()[1]
            outcome = await send_once(f"https://{host}:{port}/v1")
            server.close()
            assert (outcome.reply.failure, outcome.never_sent) == (failure, failure is not None), (
                outcome.detail
            )

    run(work())
