"""The endpoints of a plan as the dispatcher and the sessions see them: queues, keys, shared ceilings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from resources.canonical import content_hash
from resources.errors import SrBenchError
from resources.gateway.pricing import ReservationBound
from resources.journal.calls import RateCeiling
from resources.targets import Target
from sr_bench_assets.benchmarks.contract import Benchmark
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.dispatcher import Endpoint
from sr_bench_assets.results.pacing import Pacer
from sr_bench_assets.results.run_calls import Place


@dataclass(frozen=True)
class Places:
    """Where the calls of a plan go."""

    subjects: Mapping[str, Place]
    """By target id."""
    auxiliary: Mapping[str, Place]
    """By role: judge, simulator."""

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """Subjects by target id, auxiliary ones as `role:<role>` (no target id holds a colon)."""
        return {
            place.endpoint.key: place.endpoint
            for place in (*self.subjects.values(), *self.auxiliary.values())
        }


def places_of(plan: FrozenPlan, env: Mapping[str, str]) -> Places:
    """The endpoints of `plan`, with keys from `env`. Raises `SrBenchError` for a variable that is not set."""
    auxiliary = {
        role: target
        for role, target in (
            ("judge", plan.auxiliary_targets.judge),
            ("simulator", plan.auxiliary_targets.simulator),
        )
        if target is not None
    }
    return Places(
        subjects={target.id: _place(plan, target, target.id, env) for target in plan.targets},
        auxiliary={role: _place(plan, target, f"role:{role}", env) for role, target in auxiliary.items()},
    )


def needed_endpoints(benchmarks: Iterable[Benchmark], places: Places) -> dict[str, list[str]]:
    """Per benchmark the auxiliary endpoints without which its cells cannot be finished.

    Raises `SrBenchError` where the plan names no target for one.
    """
    needed: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        roles = [role for role in benchmark.needs if role in ("judge", "simulator")]
        for role in roles:
            if role not in places.auxiliary:
                raise SrBenchError(
                    f"{benchmark.id} needs a {role}, and the plan names none",
                    field=f"auxiliary_targets.{role}",
                    mend="name one in the manifest and freeze a new plan",
                )
        needed[benchmark.id] = [places.auxiliary[role].endpoint.key for role in roles]
    return needed


def rate_ceiling(target: Target) -> RateCeiling | None:
    """The ceilings that all calls of this endpoint, model and key share on the store; None without any.

    Providers count by key and model, so targets that agree in these share one account, whatever their ids.
    """
    limit = target.rate_limit
    if limit.requests_per_minute is limit.tokens_per_minute is limit.max_concurrency is None:
        return None
    return RateCeiling(
        key=content_hash([target.base_url, target.model, target.api_key_env]),
        requests_per_minute=limit.requests_per_minute,
        tokens_per_minute=limit.tokens_per_minute,
        max_in_flight=limit.max_concurrency,
    )


def _place(plan: FrozenPlan, target: Target, key: str, env: Mapping[str, str]) -> Place:
    api_key = None
    if target.api_key_env is not None:
        api_key = env.get(target.api_key_env)
        if not api_key:
            raise SrBenchError(
                f"the environment variable {target.api_key_env} of target {target.id} is not set",
                field="api_key_env",
                mend=f"export {target.api_key_env} before the run",
            )
        if not api_key.isprintable() or " " in api_key:
            raise SrBenchError(
                f"the environment variable {target.api_key_env} of target {target.id} holds a space, a line end or "
                "another character that no key has",
                field="api_key_env",
                mend=f"export {target.api_key_env} anew, with the key alone",
            )
    ceiling = min(plan.limits.concurrency, target.rate_limit.max_concurrency or plan.limits.concurrency)
    pacer = Pacer(ceiling=ceiling, max_consecutive_failures=plan.limits.max_consecutive_failures)
    bound = ReservationBound(target.prices, target.max_inference_calls or 1)
    return Place(target, Endpoint(key, pacer), api_key, rate_ceiling(target), bound)
