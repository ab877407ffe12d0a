"""Property tests here call numpy and scipy, whose first import alone exceeds hypothesis's deadline."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
