"""The error along the depth of a model as a picture: a point for each tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..models.bisection import Bisection, Stage
from .markup import esc
from .words import shown

#: The picture in its own units, and the room for numbers.
_WIDTH, _HEIGHT, _LEFT, _BELOW = 800, 220, 60, 24
#: Powers of ten from the bottom to the top: from the rounding of float32 to wrong numbers.
_LEAST, _MOST = -8, 2


def error_plot(bisection: Bisection) -> str:
    """An SVG; the hollow points are the difference of the two sides, the full ones each node's own.

    A difference that grows from one tensor to the next without a full point at the top is rounding.
    """
    stages = bisection.stages
    if not any(stage.drift is not None or stage.judged is not None for stage in stages):
        return ""
    return (
        f'<figure class="depth"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="error of each tensor along the depth of the model">{"".join(_grid())}'
        f"{''.join(_points(stages))}</svg><figcaption>Each tensor, in the order of the model: "
        "hollow: how far the two sides are apart; full: the error of its node alone; red: a "
        "culprit.</figcaption></figure>"
    )


def _grid() -> Iterator[str]:
    for power in range(_LEAST, _MOST + 1, 2):
        y = _y(10.0**power)
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH}"/><text x="4" y="{y + 4:.1f}">1e{power}</text>'


def _points(stages: tuple[Stage, ...]) -> Iterator[str]:
    step = (_WIDTH - _LEFT - 12) / max(1, len(stages))
    for k, stage in enumerate(stages):
        x = _LEFT + (k + 0.5) * step
        title = f"<title>{esc(shown(stage.tensor, 60))}</title>"
        if stage.drift is not None:
            yield f'<circle class="apart" cx="{x:.1f}" cy="{_y(stage.drift):.1f}" r="3"/>'
        if stage.judged is not None:
            kind = "own" if stage.agrees else "culprit"
            y = _y(stage.judged.error)
            yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>'


def _y(error: float) -> float:
    power = _MOST if not math.isfinite(error) else math.log10(max(error, 10.0**_LEAST))
    share = (min(power, _MOST) - _LEAST) / (_MOST - _LEAST)
    return (1 - share) * (_HEIGHT - _BELOW) + _BELOW / 2
