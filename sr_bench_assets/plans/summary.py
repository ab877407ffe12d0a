"""A frozen plan as a table for people."""

from __future__ import annotations

from sr_bench_assets.plans.manifest import FrozenPlan


def plan_markdown(plan: FrozenPlan) -> str:
    """Targets, benchmarks and the limits that matter for spend and time, in Markdown."""
    limits = plan.limits
    lines = [
        f"**{plan.name}** · {plan.mode} · {plan.profile} · {plan.cost_policy}",
        "",
        "| target | kind | model | priced |",
        "|---|---|---|---|",
        *(
            f"| {target.id} | {target.kind} | {target.model} | {'yes' if target.prices else 'no'} |"
            for target in plan.targets
        ),
        "",
        "| benchmark | cases | weight |",
        "|---|---:|---:|",
        *(
            f"| {name} | {planned.case_count} | {planned.weight} |"
            for name, planned in plan.benchmarks.items()
        ),
        "",
        f"At most {limits.max_cost_usd} USD and {limits.max_run_seconds:g} s; {limits.concurrency} cells in flight; "
        f"{limits.total_timeout_s:g} s a call; {limits.max_output_tokens} output tokens.",
    ]
    return "\n".join(lines)
