"""Attention on real engines: what is refused, and every number.

`python -m campaigns attention` asks more of the same.
"""

from __future__ import annotations

import pytest
from campaigns.attention.judge import judge, rules

from zerostride.attention.rules import AttentionRule


@pytest.mark.parametrize("rule", tuple(rules(())), ids=lambda rule: rule.name)
def test_an_engine_attends_as_its_row_says(rule: AttentionRule) -> None:
    pytest.importorskip(rule.engine.partition(".")[0])
    tally = judge(rule, 120, 0, 0)
    assert tally.wrong == []
    assert tally.counts["computed"] > 30
