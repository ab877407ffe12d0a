"""The MoM entrypoint of the lab: routing by category, the router's headers, preview and configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from resources.canonical import content_hash
from resources.lab.answer_key import KnownCase
from resources.lab.config import Decision, LabConfig, Router
from resources.lab.faults import draw

EXPECTED_HASH = "X-SR-Bench-Expected-Config-Hash"
MAX_CALLS = "X-SR-Bench-Max-Inference-Calls"
SESSION = "x-session-id"
MAX_SESSIONS = 100_000


@dataclass(frozen=True)
class Route:
    """Where one request goes."""

    decision: str
    models: list[str]
    reason: str
    session_phase: str | None = None

    @property
    def selected_model(self) -> str:
        """The model that answers: the last one called."""
        return self.models[-1]


@dataclass
class RouterState:
    """One entrypoint with the models its sessions are bound to."""

    name: str
    router: Router
    seed: int
    sessions: dict[str, Route] = field(default_factory=dict[str, Route])

    def route(self, case: KnownCase | None, session: str | None, *, keep: bool = True) -> Route:
        """The route of a request; `keep=False` (previews) leaves the sessions as they are."""
        sticky = session is not None and self.router.session_mode == "session_aware"
        if sticky and session in self.sessions:
            bound = self.sessions[session]
            return Route(bound.decision, bound.models, "the session is bound to this model", "continuation")
        decision, reason = self._decide(case)
        route = Route(decision.name, decision.models, reason, "initial" if sticky else None)
        if sticky and keep and session is not None:
            if len(self.sessions) >= MAX_SESSIONS:
                self.sessions.pop(next(iter(self.sessions)))
            self.sessions[session] = route
        return route

    def _decide(self, case: KnownCase | None) -> tuple[Decision, str]:
        router = self.router
        if case is None:
            return router.default, "unknown question"
        by_category = {name: rule for rule in router.decisions for name in rule.categories}
        true = by_category.get(case.category) or by_category.get(case.benchmark, router.default)
        if draw("classifier", self.seed, self.name, case.id) < router.classifier_accuracy:
            return true, f"classified as {case.category}"
        others = [rule for rule in [*router.decisions, router.default] if rule.name != true.name]
        if not others:
            return true, f"classified as {case.category}"
        pick = int(draw("misroute", self.seed, self.name, case.id) * len(others))
        return others[pick], "misclassified"

    def headers(self, route: Route, usages: list[dict[str, Any] | None], config_hash: str) -> dict[str, str]:
        """Response headers of an executed route; `usages` are those of its calls, in order."""
        headers = {
            "x-sr-bench-config-hash": config_hash,
            "x-vsr-selected-model": route.selected_model,
            "x-vsr-selected-decision": route.decision,
            "x-vsr-inference-call-count": str(len(route.models)),
        }
        if route.session_phase is not None:
            headers["x-vsr-session-phase"] = route.session_phase
        kind = self.router.receipt
        if kind == "always" or kind == "incomplete" or (kind == "compound" and len(route.models) > 1):
            calls = [
                {"model": model, "usage": usage} for model, usage in zip(route.models, usages, strict=True)
            ]
            complete = kind != "incomplete"
            receipt = {"version": 1, "complete": complete, "calls": calls if complete else calls[:-1]}
            headers["x-vsr-model-usage"] = json.dumps(receipt, separators=(",", ":"))
        return headers

    def preview(self, route: Route, config_hash: str, sampling_seed: Any) -> dict[str, Any]:
        """The answer of the routing preview."""
        return {
            "selected_model": route.selected_model,
            "selection_status": "selected",
            "selection_reason": route.reason,
            "selection_method": "session" if route.session_phase == "continuation" else "decision",
            "selection_provenance": {
                "config_hash": config_hash,
                "state_hash": content_hash({"sessions": len(self.sessions)}),
                "local_sampling": False,
                "sampling_seed": sampling_seed,
                "lab": True,
            },
            "decision_result": {"decision_name": route.decision, "models": route.models, "confidence": 1.0},
            "config_hash": config_hash,
        }


def called_models(router: Router) -> list[str]:
    """All models that a router can call, each once, in order of mention."""
    rules = [*router.decisions, router.default]
    return list(dict.fromkeys(model for rule in rules for model in rule.models))


def router_document(config: LabConfig) -> dict[str, Any]:
    """The router configuration that `GET /api/v1/config` shows. It holds deployment wiring and a (false)
    secret, as real ones do, so that redaction can be rehearsed."""
    models = sorted({model for router in config.routers.values() for model in called_models(router)})
    return {
        "version": "lab-router-1",
        "lab": True,
        "entrypoints": {
            name: router.model_dump(mode="json", exclude={"faults", "hash_mismatch", "overhead_ms"})
            for name, router in sorted(config.routers.items())
        },
        "models": [{"name": model, "backend_refs": [f"{model}-backend"]} for model in models],
        "backends": [
            {
                "name": f"{model}-backend",
                "address": "192.0.2.10",
                "port": 8000 + number,
                "path": "/v1/chat/completions",
                "headers": {"x-lab-tenant": "rehearsal"},
                "api_key": "lab-placeholder-not-a-key",
            }
            for number, model in enumerate(models)
        ],
    }


def config_hash(config: LabConfig) -> str:
    """The hash that the lab's routers acknowledge: content hash of `router_document`."""
    return content_hash(router_document(config))


def hash_status(config: LabConfig) -> dict[str, str]:
    """The answer of `GET /api/v1/config/hash`."""
    digest = config_hash(config)
    active = digest if config.activation == "active" else content_hash({"previous": digest})
    return {
        "source_config_hash": digest,
        "generated_runtime_hash": digest,
        "active_runtime_hash": active,
        "activation_status": config.activation,
    }
