"""The lab gateway's HTTP server: OpenAI-compatible chat, the router's management API, the lab's counters."""

from __future__ import annotations

import asyncio
import hmac
import os
from typing import Any

import orjson
from aiohttp import web

from resources.canonical import sha256_bytes
from resources.lab.answer_key import KnownCase
from resources.lab.faults import REFUSALS, FaultRule, Sighting
from resources.lab.gateway import Lab, NoAnswer
from resources.lab.router import EXPECTED_HASH, hash_status, router_document
from resources.lab.sending import ConnectionCut, close, send_body, send_stream, wire_of
from resources.lab.stats import RequestRecord

MAX_REQUEST_BYTES = 64 * 1024 * 1024
LAB = web.AppKey("lab", Lab)


def make_app(lab: Lab) -> web.Application:
    """The aiohttp application of `lab`. Every response says `x-sr-bench-lab: 1`."""
    app = web.Application(client_max_size=MAX_REQUEST_BYTES, middlewares=[_guard])
    app[LAB] = lab
    app.on_response_prepare.append(_mark)
    app.add_routes(
        [
            web.post("/v1/chat/completions", chat),
            web.get("/v1/models", models),
            web.post("/api/v1/routing/preview", preview),
            web.get("/api/v1/config/hash", config_hashes),
            web.get("/api/v1/config", router_config),
            web.get("/lab/stats", stats),
            web.get("/lab/requests", requests),
            web.post("/lab/reset", reset),
        ]
    )
    return app


async def _mark(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["x-sr-bench-lab"] = "1"


@web.middleware
async def _guard(request: web.Request, handler: Any) -> web.StreamResponse:
    lab = request.app[LAB]
    if request.path != "/v1/chat/completions":
        lab.stats.other[f"{request.method} {request.path}"] += 1
    name = lab.config.api_key_env
    if name is not None and not request.path.startswith("/lab/"):
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {os.environ.get(name, '')}".encode()):
            return failure(401, f"the lab wants the value of ${name} as bearer token", "unauthorised")
    return await handler(request)


def failure(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> web.Response:
    """An OpenAI-shaped error answer."""
    body = {"error": {"message": message, "type": "lab_error", "code": code}}
    return web.Response(
        status=status, body=orjson.dumps(body), content_type="application/json", headers=headers
    )


def document(data: Any, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=orjson.dumps(data), content_type="application/json", headers=headers)


async def chat(request: web.Request) -> web.StreamResponse:
    lab = request.app[LAB]
    raw = await request.read()
    try:
        body = orjson.loads(raw)
        model = body["model"]
        assert isinstance(model, str)
        assert isinstance(body["messages"], list)
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError):
        return failure(400, "the body must be JSON with `model` and a list of `messages`", "bad_request")
    if model not in lab.behaviours and model not in lab.routers:
        served = ", ".join(lab.names())
        return failure(404, f"the lab has no model {model}; it has {served}", "model_not_found")
    case = lab.case_of(body)
    counters = lab.stats
    record = counters.arrive(model, case.id if case else None, sha256_bytes(raw))
    outcome = "disconnected"
    try:
        response, outcome = await _respond(request, lab, body, case, record)
        return response
    except ConnectionCut:
        outcome = "failed"
        return web.Response()
    except ConnectionResetError:
        return web.Response()  # the client has left: nobody reads it
    finally:
        counters.end(record, outcome)


async def _respond(
    request: web.Request, lab: Lab, body: dict[str, Any], case: KnownCase | None, record: RequestRecord
) -> tuple[web.StreamResponse, str]:
    """The response (already sent, unless it is a plain `web.Response`) and how the request ended."""
    headers = {"x-sr-bench-lab-request": str(record.seq)}
    if (wait := lab.overload(record)) is not None:
        return failure(429, "lab: rate limit", "rate_limit", headers | {"retry-after": str(wait)}), "refused"
    index = lab.stats.requests_of(record.model)
    fault = lab.switches[record.model].strike(
        Sighting(record.model, record.case_id, index, record.digest, record.attempt)
    )
    record.fault = fault.kind if fault is not None else None
    expected = request.headers.get(EXPECTED_HASH)
    router = lab.config.routers.get(record.model)
    if router is not None and router.hash_mismatch == "reject" and expected not in (None, lab.config_hash):
        acknowledged = {"x-sr-bench-config-hash": lab.config_hash}
        return failure(
            409, "lab: another configuration is active", "config_hash", headers | acknowledged
        ), "failed"
    if fault is not None and (refusal := await _refusal(request, fault, headers)) is not None:
        return refusal, "refused" if fault.kind in REFUSALS and "retry-after" in refusal.headers else "failed"
    lab.asked(record.model, case)
    try:
        answer = lab.answer(body, case, request.headers, fault)
    except NoAnswer as error:
        return failure(error.status, str(error), error.code, headers | error.headers), "failed"
    if fault is not None and fault.kind == "slow":
        await asyncio.sleep(fault.seconds)
    options = body.get("stream_options")
    asked = isinstance(options, dict) and bool(options.get("include_usage"))
    wire = wire_of(answer, record, usage=asked)
    response = web.StreamResponse(headers=headers | answer.headers)
    stream = bool(body.get("stream"))
    plain = not stream or "json_content_type" in wire.shapes
    response.content_type = "application/json" if plain else "text/event-stream"
    send = send_stream if stream else send_body
    await send(request, response, answer, wire, record, fault, lab.config.time_scale)
    return response, "completed"


async def _refusal(request: web.Request, fault: FaultRule, headers: dict[str, str]) -> web.Response | None:
    """The answer of faults that strike before generation; None for those that strike later."""
    if fault.kind in REFUSALS:
        status = 429 if fault.kind == "rate_limit" else 503
        if fault.retry_after_s is not None:
            headers = headers | {"retry-after": f"{fault.retry_after_s:g}"}
        return failure(status, "lab: refused on demand", fault.kind, headers)
    if fault.kind == "http_error":
        return failure(fault.status, "lab: error on demand", "http_error", headers)
    if fault.kind == "reset":
        close(request)
        raise ConnectionCut
    return None


async def models(request: web.Request) -> web.Response:
    lab = request.app[LAB]
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "sr-bench-lab"} for name in lab.names()]
    return document({"object": "list", "data": data})


async def preview(request: web.Request) -> web.Response:
    lab = request.app[LAB]
    try:
        body = orjson.loads(await request.read())
        state = lab.routers.get(body["model"])
        context = body.get("preview_context") or {}
        session, seed = context.get("session_id"), context.get("sampling_seed")
    except (ValueError, TypeError, KeyError, AttributeError):
        return failure(400, "the body must be JSON with `model` and `messages`", "bad_request")
    if state is None:
        return failure(404, f"the lab has no router {body['model']}", "model_not_found")
    found = lab.case_of(body)
    return document(state.preview(state.route(found, session, keep=False), lab.config_hash, seed))


async def config_hashes(request: web.Request) -> web.Response:
    return document(hash_status(request.app[LAB].config))


async def router_config(request: web.Request) -> web.Response:
    lab = request.app[LAB]
    return document(router_document(lab.config), {"etag": f'"{lab.config_hash}"'})


async def stats(request: web.Request) -> web.Response:
    return document(request.app[LAB].stats.summary())


async def requests(request: web.Request) -> web.Response:
    """Records of chat requests with `seq` beyond `?after=`, at most `?limit=` (1,000)."""
    query = request.query
    after, limit = query.get("after", "0"), query.get("limit", "1000")
    if not (after.isdigit() and limit.isdigit()):
        return failure(400, "`after` and `limit` are whole numbers", "bad_request")
    records = [record for record in request.app[LAB].stats.records if record.seq > int(after)][: int(limit)]
    return document({"requests": [record.as_dict() for record in records]})


async def reset(request: web.Request) -> web.Response:
    request.app[LAB].reset()
    return document({"lab": True, "reset": True})
