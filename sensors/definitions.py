"""The code location that the webserver and the daemon load: the assets, and what the daemon does by itself."""

from __future__ import annotations

from dagster import Definitions

from sensors.dead_runs import dead_run_reconciliation
from sensors.holdout_builds import holdout_build
from sensors.lineage import artifact_lineage
from sensors.source_observations import source_observation
from sr_bench_assets import definitions as evaluation

# Dagster refuses a module with two Definitions at its top: those of the assets stay in their own.
defs = Definitions.merge(
    evaluation.defs,
    Definitions(
        sensors=[dead_run_reconciliation, artifact_lineage], schedules=[holdout_build, source_observation]
    ),
)
