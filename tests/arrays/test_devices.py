"""Arrays on an NVIDIA GPU agree with the reference, under every rule."""

from __future__ import annotations

import pytest
from campaigns.arrays.command import RULES, tallied
from campaigns.arrays.libraries import ROWS

from zerostride.errors import BadInput


@pytest.mark.parametrize("name", ["torch on cuda", "cupy", "jax on cuda"])
@pytest.mark.parametrize("rule", RULES)
def test_arrays_on_a_gpu_agree_with_the_reference(name, rule):
    library = ROWS[name]
    try:
        _ = library.imported
    except BadInput as error:
        pytest.skip(str(error))  # the library is not installed, or finds no GPU
    tally = tallied(library, rule, 0, 60, seed=3)
    assert tally.cases == 60
    assert not tally.shown
    assert tally.refused + tally.lacking < tally.cases / 2
