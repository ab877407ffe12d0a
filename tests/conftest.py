"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A busy machine is no fault of an example: no deadlines, no complaint about slow generation. On CI the same examples
# every time, so that a failure there belongs to the change that it is shown for.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("explore"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
