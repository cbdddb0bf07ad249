"""The words of a comparison of two models for all sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..models.equivalence import Difference, Equivalence, Output, Region, Sameness
from ..sizes.condition import NEVER
from .words import LONGEST_NAME, counted_noun, shown

#: The verdict of an output: its mark, its words, and the class of its badge.
SAMENESS = {
    Sameness.EQUAL: ("EQUAL", "equal for every size", "same"),
    Sameness.ROUNDED: ("EQUAL", "equal for every size, but for rounding", "same"),
    Sameness.DIFFERENT: ("DIFFERENT", "different", "different"),
    Sameness.UNDECIDED: ("UNDECIDED", "neither proven nor seen to differ", "unknown"),
}


def verdict_words(result: Equivalence) -> str:
    """The whole verdict in a phrase."""
    if result.verdict is Sameness.DIFFERENT and all(
        output.verdict is not Sameness.DIFFERENT for output in result.outputs
    ):
        return "the second refuses sizes that the first takes"
    return _worded(SAMENESS[result.verdict][1], result)


def _worded(words: str, result: Equivalence) -> str:
    """A verdict's words, where the models do not work for the same sizes."""
    apart = result.narrower is not None or result.fixed
    return words.replace("for every size", "wherever both work") if apart else words


def equivalence_lines(result: Equivalence) -> Iterator[str]:
    """Yield the lines of a comparison: outputs, the sizes it holds for, the runs behind it."""
    apart = True
    for output in result.outputs:
        lines = list(output_lines(output))
        if apart or lines:
            yield ""
        apart = bool(lines)
        mark, words, _ = SAMENESS[output.verdict]
        yield f"{mark}  {_names(output)}: {_worded(words, result)}"
        yield from (f"  {line}" for line in lines)
    yield ""
    words, *lines = narrower_lines(result) or [""]
    if words:
        yield f"{SAMENESS[Sameness.DIFFERENT][0]}  {words}"
        yield from (f"  {line}" for line in lines)
        yield ""
    yield from sizes_lines(result)


def unequal(result: Equivalence) -> Iterator[tuple[Sameness, str, list[str]]]:
    """Yield what keeps two models from being equal: outputs, and sizes that only one takes.

    Yields:
        "different" or "undecided", the output or "" for the whole model, and lines.
    """
    for output in result.outputs:
        if output.verdict in (Sameness.DIFFERENT, Sameness.UNDECIDED):
            words = f"{_names(output)}: {SAMENESS[output.verdict][1]}"
            yield output.verdict, output.name, [words, *output_lines(output)]
    lines = narrower_lines(result)
    if lines:
        yield Sameness.DIFFERENT, "", lines


def output_lines(output: Output) -> Iterator[str]:
    """Yield the lines below an output: the run that shows a difference, and where it begins."""
    if output.difference is not None:
        yield from _run_lines(output.difference)
    if output.region is not None and output.verdict in (Sameness.DIFFERENT, Sameness.UNDECIDED):
        yield from _region_lines(output.region)


def narrower_lines(result: Equivalence) -> list[str]:
    """The sizes that only the first model takes, and the run that shows it; none if none are."""
    if result.narrower is None:
        return []
    words = f"only the first works for {shown(result.only_ours, 300)}"
    return [words, *_run_lines(result.narrower)]


def sizes_lines(result: Equivalence) -> Iterator[str]:
    """Yield the sizes that the verdicts hold for, and those of the runs."""
    if result.fixed:
        yield f"the second file has numbers for open sizes: {shown(result.fixed, 300)}"
    if result.condition == str(NEVER):
        yield "both work for no sizes"
        return
    elif result.condition:
        yield f"both work for sizes with {shown(result.condition, 300)}"
    if result.only_theirs:
        yield f"only the second works for {shown(result.only_theirs, 300)}"
    if not result.tried:
        yield "no run confirms it: neither zerostride nor ONNX Runtime runs both"
        return
    sizes = dict.fromkeys(_sizes_words(tried) or "the file's sizes" for tried in result.tried)
    done = "confirmed by" if result.ok else "compared in"
    differ = any(output.verdict is Sameness.DIFFERENT for output in result.outputs)
    where = " where they do not differ" if differ else ""
    yield (
        f"{done} {counted_noun(len(result.tried), 'run')} on {result.engine}: {'; '.join(sizes)}; "
        f"largest error {result.error:.1e}{where}"
    )
    if result.rounding:
        yield f"one rounding in every tensor moves the first by up to {result.rounding:.1e}"


def _names(output: Output) -> str:
    name = shown(output.name, LONGEST_NAME)
    if output.other == output.name:
        return name
    other = shown(output.other, LONGEST_NAME)
    return f"{name} ({other} in the second)" if other else f"{name} (not in the second)"


def _sizes_words(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(name, 60)}={number}" for name, number in sizes.items())


def _run_lines(difference: Difference) -> Iterator[str]:
    sizes = _sizes_words(difference.sizes)
    where = f" with {sizes}" if sizes else ""
    yield f"{shown(difference.detail)}{where}, on {difference.engine}"
    inputs = ", ".join(f"{shown(n, 60)} {shape}" for n, shape in difference.inputs.items())
    yield f"inputs: {inputs}"


def _region_lines(region: Region) -> Iterator[str]:
    yield shown(region.why)
    for title, names in (
        ("equal in both", region.begins),
        (f"then in the first, {counted_noun(region.count, 'node')}, from", region.first),
        (f"then in the second, {counted_noun(region.other_count, 'node')}, from", region.others),
    ):
        if names:
            yield f"{title}: {', '.join(shown(name, 60) for name in names)}"
