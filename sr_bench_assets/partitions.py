"""Partitions: benchmark × profile for the five stages, profile for the scorecard."""

from __future__ import annotations

from dagster import MultiPartitionKey, MultiPartitionsDefinition, StaticPartitionsDefinition

from sr_bench_assets.benchmarks.contract import PROFILES
from sr_bench_assets.benchmarks.registry import benchmarks

BENCHMARK_DIMENSION = "benchmark"
PROFILE_DIMENSION = "profile"

profile_partitions = StaticPartitionsDefinition(list(PROFILES))
benchmark_profile_partitions = MultiPartitionsDefinition(
    {
        BENCHMARK_DIMENSION: StaticPartitionsDefinition(list(benchmarks())),
        PROFILE_DIMENSION: profile_partitions,
    }
)


def partition_key(benchmark: str, profile: str) -> MultiPartitionKey:
    """The key of one benchmark × profile partition."""
    return MultiPartitionKey({BENCHMARK_DIMENSION: benchmark, PROFILE_DIMENSION: profile})
