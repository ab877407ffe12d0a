"""Partitions: benchmark for sources, benchmark × profile for the five stages, profile for the scorecard."""

from __future__ import annotations

from dagster import (
    AssetExecutionContext,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
)

from sr_bench_assets.benchmarks.contract import PROFILES, Profile
from sr_bench_assets.benchmarks.registry import benchmarks

BENCHMARK_DIMENSION = "benchmark"
PROFILE_DIMENSION = "profile"

benchmark_partitions = StaticPartitionsDefinition(list(benchmarks()))
profile_partitions = StaticPartitionsDefinition(list(PROFILES))
benchmark_profile_partitions = MultiPartitionsDefinition(
    {
        BENCHMARK_DIMENSION: benchmark_partitions,
        PROFILE_DIMENSION: profile_partitions,
    }
)


def partition_key(benchmark: str, profile: str) -> MultiPartitionKey:
    """The key of one benchmark × profile partition."""
    return MultiPartitionKey({BENCHMARK_DIMENSION: benchmark, PROFILE_DIMENSION: profile})


def benchmark_of(context: AssetExecutionContext) -> str:
    """The benchmark of the partition being materialized."""
    return _dimension(context, BENCHMARK_DIMENSION)


def profile_of(context: AssetExecutionContext) -> Profile:
    """The profile of the partition being materialized."""
    name = _dimension(context, PROFILE_DIMENSION)
    return next(profile for profile in PROFILES if profile == name)


def _dimension(context: AssetExecutionContext, name: str) -> str:
    key = context.partition_key
    if not isinstance(key, MultiPartitionKey):
        raise TypeError(f"{key!r} is not a benchmark × profile partition")
    return key.keys_by_dimension[name]
