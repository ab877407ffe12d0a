"""Dagster run tags that tie a materialization to the plan and the run it worked on."""

from __future__ import annotations

PLAN_TAG = "sr_bench/plan_sha256"
RUN_TAG = "sr_bench/run_id"
