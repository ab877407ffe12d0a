"""From a lab configuration to the targets document that `sr-bench target register` takes."""

from __future__ import annotations

from typing import Any

from resources.lab.config import LabConfig, Model
from resources.lab.gateway import served_models
from resources.lab.recorded import PREFIX, Recording
from resources.lab.router import called_models, config_hash
from resources.targets import Price, Target


def price_table(config: LabConfig, recording: Recording | None) -> dict[str, Price | None]:
    """Served model → its price, None where the configuration gives none."""
    prices: dict[str, Price | None] = {}
    for name, behaviour in served_models(config, recording).items():
        if isinstance(behaviour, Model):
            prices[name] = behaviour.prices
        elif config.recorded is not None:
            prices[name] = config.recorded.prices.get(name.removeprefix(PREFIX))
    return prices


def lab_targets(
    config: LabConfig, recording: Recording | None, url: str, *, judges: bool = False
) -> list[dict[str, Any]]:
    """Targets of the lab at `url` (its root): the judges, or all models but the judges, then the routers.

    A target is priced only when every model that can answer for it is.
    """
    served = served_models(config, recording)
    prices = price_table(config, recording)
    targets: list[Target] = []
    for name, behaviour in served.items():
        is_judge = isinstance(behaviour, Model) and behaviour.judge_agreement is not None
        if is_judge == judges:
            targets.append(
                Target(
                    id=name,
                    kind="single",
                    base_url=f"{url}/v1",
                    model=name,
                    api_key_env=config.api_key_env,
                    prices=_prices([name], prices),
                    pricing_basis=config.pricing_basis,
                    expected_response_model=name,
                    rate_limit=behaviour.rate_limit,
                )
            )
    for name, router in {} if judges else config.routers.items():
        rules = [*router.decisions, router.default]
        targets.append(
            Target(
                id=name,
                kind="mom",
                base_url=f"{url}/v1",
                model=name,
                api_key_env=config.api_key_env,
                prices=_prices(called_models(router), prices),
                pricing_basis=config.pricing_basis,
                config_hash=config_hash(config),
                preview_url=f"{url}/api/v1/routing/preview",
                preview_api_key_env=config.api_key_env,
                max_inference_calls=max(len(rule.models) for rule in rules),
                session_mode=router.session_mode,
            )
        )
    return [target.model_dump(mode="json", exclude_defaults=True) for target in targets]


def _prices(names: list[str], prices: dict[str, Price | None]) -> dict[str, Price] | None:
    known = {name: price for name in names if (price := prices.get(name)) is not None}
    return known if len(known) == len(names) else None
