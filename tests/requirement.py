"""Real parts that tests need: skipped with the reason where they are missing, failed where they are required."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(part: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where `SR_BENCH_TEST_REQUIRE` (a comma list, set by `.ci/run`) names `part`."""
    if part in os.environ.get("SR_BENCH_TEST_REQUIRE", "").split(","):
        pytest.fail(f"{part} is required here: {reason}")
    pytest.skip(f"{part}: {reason}")
