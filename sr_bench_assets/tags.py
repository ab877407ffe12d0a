"""Names that tie a Dagster run to the plan and run it works on, and the journal's run to its Dagster runs."""

from __future__ import annotations

DATA_VERSION_TAG = "dagster/data_version"
"""Dagster's own tag of an event's data version."""
DATASET_TAG = "sr_bench/dataset_id"
PLAN_TAG = "sr_bench/plan_sha256"
RUN_TAG = "sr_bench/run_id"
DAGSTER_RUN_EVENT = "dagster_run"
"""Kind of the journal event that names an in-process Dagster run (`data.dagster_run_id`)."""
