"""A frozen plan in a few lines for people: on the terminal and in the Dagster UI."""

from __future__ import annotations

from sr_bench_assets.plans.advice import advice
from sr_bench_assets.plans.manifest import FrozenPlan


def plan_facts(plan: FrozenPlan) -> list[tuple[str, str]]:
    """Name and value of what identifies and bounds the plan."""
    limits, sampling = plan.limits, plan.sampling
    cells = plan.case_count * len(plan.targets)
    return [
        ("plan", plan.plan_sha256),
        ("name", plan.name),
        ("mode", plan.mode),
        ("profile", f"{plan.profile} ({plan.dataset_split}), seed {plan.seed}"),
        ("dataset", plan.dataset_id),
        ("benchmarks", ", ".join(f"{name} ({b.case_count})" for name, b in plan.benchmarks.items())),
        ("targets", ", ".join(f"{target.id} ({target.kind})" for target in plan.targets)),
        ("cells", f"{plan.case_count} cases × {len(plan.targets)} targets = {cells}"),
        ("cost", f"{plan.cost_policy}, at most {limits.max_cost_usd} USD"),
        (
            "time",
            f"call {limits.total_timeout_s:g} s, case {limits.case_timeout_s:g} s, "
            f"run {limits.max_run_seconds:g} s; {limits.concurrency} cells at a time",
        ),
        (
            "sampling",
            f"temperature {sampling.temperature}, top_p {sampling.top_p}, max_tokens {sampling.max_tokens}",
        ),
    ]


def plan_text(plan: FrozenPlan) -> str:
    """The facts as aligned plain lines, then one line for each limitation."""
    facts = plan_facts(plan)
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    return "\n".join([*lines, *(f"note: {line}" for line in advice(plan))])


def plan_markdown(plan: FrozenPlan) -> str:
    """The facts as a Markdown table, then the limitations as a list."""
    rows = [f"| {name} | {_cell(value)} |" for name, value in plan_facts(plan)]
    notes = [f"- {line}" for line in advice(plan)]
    return "\n".join(["| | |", "|---|---|", *rows, *(["", *notes] if notes else [])])


def targets_markdown(plan: FrozenPlan) -> str:
    """What will be called, as a Markdown table: target, kind, model, prices per million tokens, endpoint."""
    lines = ["| target | kind | model | USD per M in / out | endpoint |", "|---|---|---|---|---|"]
    for target in plan.targets:
        prices = target.prices or {}
        listed = [f"{price.input} / {price.output}" for price in prices.values()]
        price = listed[0] if len(listed) == 1 else f"{len(listed)} models" if listed else "unknown"
        lines.append(f"| {target.id} | {target.kind} | {_cell(target.model)} | {price} | {target.base_url} |")
    return "\n".join(lines)


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")
