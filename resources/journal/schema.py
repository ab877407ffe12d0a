"""Tables of the journal. Times are seconds since the epoch (UTC); money in `_pico` columns is whole
pico-dollars (10**-12 USD), in text columns an exact decimal; JSON columns hold text."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

_IN_FLIGHT = text("outcome IS NULL AND failure IS NULL")

runs = Table(
    "runs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("plan_sha256", String(64), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("profile", String(16), nullable=False),
    Column("status", String(24), nullable=False),
    # queued | running | completed | partial | failed | budget_exhausted | timed_out | cancelled | interrupted
    Column("reason", Text),
    Column("idempotency_key", Text, unique=True),
    Column("parent_run_id", String(64), ForeignKey("runs.id")),
    Column("recovery_mode", String(16)),
    Column("scope", Text),  # JSON list of [case_id, target_id] for a child run; null = the whole plan
    Column("total_cells", Integer, nullable=False),
    Column("budget_pico", BigInteger, nullable=False),
    Column("reserved_pico", BigInteger, nullable=False, default=0),
    Column("spent_pico", BigInteger, nullable=False, default=0),
    Column(
        "unknown_pico", BigInteger, nullable=False, default=0
    ),  # kept reservations of calls of unknown spend
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("finished_at", Float),
    Column("updated_at", Float, nullable=False),
    Column("cancel_requested_at", Float),
)

run_leases = Table(
    # One live runner per (run, partition); partition is a benchmark id.
    "run_leases",
    metadata,
    Column("run_id", String(64), ForeignKey("runs.id"), primary_key=True),
    Column("partition", String(64), primary_key=True),
    Column("pid", Integer, nullable=False),
    Column("pid_started", Float, nullable=False),
    Column("host", Text, nullable=False),
    Column("dagster_run_id", Text),
    Column("acquired_at", Float, nullable=False),
    Column(
        "heartbeat_at", Float, nullable=False
    ),  # decides for runners on other hosts, whose pid says nothing
    Column("released_at", Float),
)

calls = Table(
    # Inserted (durably) before any byte of the request leaves; completed once.
    "calls",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("seq", BigInteger, nullable=False),  # order of dispatch in the run, for paging
    Column("run_id", String(64), ForeignKey("runs.id"), nullable=False),
    Column("benchmark", String(64), nullable=False),
    Column("case_id", Text, nullable=False),
    Column("target_id", String(128), nullable=False),
    Column("role", String(16), nullable=False),
    Column("step", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("request_sha256", String(64), nullable=False),
    Column("reserved_pico", BigInteger, nullable=False),
    Column(
        "spent_pico", BigInteger
    ),  # what the budget was charged; null: in flight, or unknown (reserve kept)
    Column("reserved_tokens", BigInteger, nullable=False),
    Column("rate_key", String(160)),  # null: target without rate limits
    Column("dispatched_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("outcome", String(16)),  # null in flight | completed | failed | refused (429/503 + Retry-After)
    Column("failure", String(48)),  # with outcome null: the runner died, no end of this call is known
    Column("http_status", Integer),
    Column("model", Text),
    Column("finish_reason", Text),
    Column("output_complete", Boolean),
    Column("input_tokens", BigInteger),
    Column("cached_input_tokens", BigInteger),
    Column("cache_write_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("usage", Text),  # JSON as in conformance/usage.json `expect`
    Column("cost_usd", Text),
    Column("cost_reason", String(48)),
    Column("cache_neutral_cost_usd", Text),
    Column("ttft_s", Float),
    Column("latency_s", Float),
    Column("queue_wait_s", Float),
    Column("selected_model", Text),
    Column("decision", Text),
    Column("lab", Boolean),
    Column("record", Text),  # JSON: text, reasoning, final, tool_calls, flags, headers, children…
    Column("evidence_sha256", String(64)),  # SHA-256 of the uncompressed evidence frame
    Column("evidence_segment", Text),
    Column("evidence_offset", BigInteger),
    Column("evidence_length", BigInteger),
    UniqueConstraint("run_id", "case_id", "target_id", "role", "step", "attempt", name="one_dispatch"),
    Index("calls_run_seq", "run_id", "seq"),
    Index("calls_spend", "run_id", "benchmark", "target_id", "spent_pico"),
    Index("calls_rate", "rate_key", "dispatched_at"),
    Index("calls_in_flight", "rate_key", sqlite_where=_IN_FLIGHT, postgresql_where=_IN_FLIGHT),
)

results = Table(
    # How each cell ended; a cell without a row is undispatched, running or (runner dead) ambiguous.
    "results",
    metadata,
    Column("run_id", String(64), ForeignKey("runs.id"), primary_key=True),
    Column("case_id", Text, primary_key=True),
    Column("target_id", String(128), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("benchmark", String(64), nullable=False),
    Column("status", String(16), nullable=False),  # completed | failed | ambiguous
    Column("answer", Text),  # JSON
    Column("answer_status", String(16), nullable=False),
    Column("strict_format", Boolean),
    Column("correct", Boolean),
    Column("score", Float),
    Column("failure", String(48)),
    Column("diagnostics", Text),  # JSON
    Column("call_count", Integer, nullable=False),
    Column("cost_usd", Text),
    Column("latency_s", Float),
    Column("finished_at", Float, nullable=False),
    Index("results_run_seq", "run_id", "seq"),
    Index("results_progress", "run_id", "benchmark", "target_id", "status"),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(64), ForeignKey("runs.id"), nullable=False, index=True),
    Column("at", Float, nullable=False),
    Column("kind", String(48), nullable=False),
    Column("message", Text, nullable=False),
    Column("data", Text),
)

seals = Table(
    # Artifacts sealed for a run: kind results | calls | accounting | report, by partition.
    "seals",
    metadata,
    Column("run_id", String(64), ForeignKey("runs.id"), primary_key=True),
    Column("partition", String(64), primary_key=True),
    Column("kind", String(24), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("sha256", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("data", Text),
)

recovery_claims = Table(
    # A cell of a parent run can be claimed by one child only.
    "recovery_claims",
    metadata,
    Column("parent_run_id", String(64), ForeignKey("runs.id"), primary_key=True),
    Column("case_id", Text, primary_key=True),
    Column("target_id", String(128), primary_key=True),
    Column("child_run_id", String(64), ForeignKey("runs.id"), nullable=False),
)

preparations = Table(
    "preparations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("request", Text, nullable=False),
    Column("status", String(24), nullable=False),
    Column("stage", String(24)),
    Column("progress", Text),
    Column("error", Text),
    Column("dataset_id", String(64)),
    Column("pid", Integer),
    Column("pid_started", Float),
    Column("host", Text),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
)
