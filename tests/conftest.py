"""The whole suite judges by the newest measured rows, whichever releases are installed or learnt.

Hypothesis has no limits of time: a test never fails because other programs run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("ZEROSTRIDE_RELEASES", "newest")
os.environ["ZEROSTRIDE_ENGINES"] = os.devnull  # a user's learnt engines are no rows of the suite
settings.register_profile("any-load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-load")
