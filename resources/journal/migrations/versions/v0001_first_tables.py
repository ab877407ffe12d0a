"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "preparations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("stage", sa.String(length=24), nullable=True),
        sa.Column("progress", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("dataset_id", sa.String(length=64), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("pid_started", sa.Float(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("plan_sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("profile", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("parent_run_id", sa.String(length=64), nullable=True),
        sa.Column("recovery_mode", sa.String(length=16), nullable=True),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("total_cells", sa.Integer(), nullable=False),
        sa.Column("budget_pico", sa.BigInteger(), nullable=False),
        sa.Column("reserved_pico", sa.BigInteger(), nullable=False),
        sa.Column("spent_pico", sa.BigInteger(), nullable=False),
        sa.Column("unknown_pico", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("finished_at", sa.Float(), nullable=True),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.Column("cancel_requested_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["parent_run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
    )
    op.create_index(op.f("ix_runs_plan_sha256"), "runs", ["plan_sha256"], unique=False)
    op.create_table(
        "calls",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("benchmark", sa.String(length=64), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        sa.Column("target_id", sa.String(length=128), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("request_sha256", sa.String(length=64), nullable=False),
        sa.Column("reserved_pico", sa.BigInteger(), nullable=False),
        sa.Column("spent_pico", sa.BigInteger(), nullable=True),
        sa.Column("reserved_tokens", sa.BigInteger(), nullable=False),
        sa.Column("rate_key", sa.String(length=160), nullable=True),
        sa.Column("dispatched_at", sa.Float(), nullable=False),
        sa.Column("finished_at", sa.Float(), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("failure", sa.String(length=48), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("output_complete", sa.Boolean(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("cost_usd", sa.Text(), nullable=True),
        sa.Column("cost_reason", sa.String(length=48), nullable=True),
        sa.Column("cache_neutral_cost_usd", sa.Text(), nullable=True),
        sa.Column("ttft_s", sa.Float(), nullable=True),
        sa.Column("latency_s", sa.Float(), nullable=True),
        sa.Column("queue_wait_s", sa.Float(), nullable=True),
        sa.Column("selected_model", sa.Text(), nullable=True),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("lab", sa.Boolean(), nullable=True),
        sa.Column("record", sa.Text(), nullable=True),
        sa.Column("evidence_sha256", sa.String(length=64), nullable=True),
        sa.Column("evidence_segment", sa.Text(), nullable=True),
        sa.Column("evidence_offset", sa.BigInteger(), nullable=True),
        sa.Column("evidence_length", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("run_id", "case_id", "target_id", "role", "step", "attempt", name="one_dispatch"),
    )
    op.create_index(
        "calls_in_flight",
        "calls",
        ["rate_key"],
        unique=False,
        sqlite_where=sa.text("outcome IS NULL AND failure IS NULL"),
        postgresql_where=sa.text("outcome IS NULL AND failure IS NULL"),
    )
    op.create_index("calls_rate", "calls", ["rate_key", "dispatched_at"], unique=False)
    op.create_index("calls_run_seq", "calls", ["run_id", "seq"], unique=False)
    op.create_index("calls_spend", "calls", ["run_id", "benchmark", "target_id", "spent_pico"], unique=False)
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("kind", sa.String(length=48), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_events_run_id"), "events", ["run_id"], unique=False)
    op.create_table(
        "recovery_claims",
        sa.Column("parent_run_id", sa.String(length=64), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        sa.Column("target_id", sa.String(length=128), nullable=False),
        sa.Column("child_run_id", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["child_run_id"],
            ["runs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["parent_run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("parent_run_id", "case_id", "target_id"),
    )
    op.create_table(
        "results",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        sa.Column("target_id", sa.String(length=128), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("benchmark", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answer_status", sa.String(length=16), nullable=False),
        sa.Column("strict_format", sa.Boolean(), nullable=True),
        sa.Column("correct", sa.Boolean(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("failure", sa.String(length=48), nullable=True),
        sa.Column("diagnostics", sa.Text(), nullable=True),
        sa.Column("call_count", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Text(), nullable=True),
        sa.Column("latency_s", sa.Float(), nullable=True),
        sa.Column("finished_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "case_id", "target_id"),
    )
    op.create_index(
        "results_progress", "results", ["run_id", "benchmark", "target_id", "status"], unique=False
    )
    op.create_index("results_run_seq", "results", ["run_id", "seq"], unique=False)
    op.create_table(
        "run_leases",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("partition", sa.String(length=64), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("pid_started", sa.Float(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("dagster_run_id", sa.Text(), nullable=True),
        sa.Column("acquired_at", sa.Float(), nullable=False),
        sa.Column("heartbeat_at", sa.Float(), nullable=False),
        sa.Column("released_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "partition"),
    )
    op.create_table(
        "seals",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("partition", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "partition", "kind", "version"),
    )


def downgrade() -> None:
    raise NotImplementedError("the journal is evidence: it is never taken back to an older schema")
