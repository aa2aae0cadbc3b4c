"""Settings of the property tests of calc."""

from hypothesis import settings

# A slow machine is no failure; a hang still is one.
settings.register_profile("calc", deadline=5000)
settings.load_profile("calc")
