"""The simulation of the pool on many processors: what must hold of it, by counting."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.cores import CORES, DESIGNS, SIZES
from benchmarks.simulated import NOW, Call, Machine, seconds

MACHINE = Machine(
    own=160e9, last=120e9, memory=40e9, transfer=40e-9, enter=500e-9, ring=2e-6, wake=3e-6,
    call=60e-9, socket=300e9, link=100e9, farther=2.5,
)  # fmt: skip
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("elements", SIZES)
@pytest.mark.parametrize("cores", CORES)
def test_no_call_is_faster_than_its_memory(elements: int, cores: int) -> None:
    call = Call(elements, 12)
    took = seconds(MACHINE, call, cores, NOW)
    assert took >= elements * 12 / (MACHINE.own * cores)
    assert took <= seconds(MACHINE, call, 1, NOW) + 2e-6


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize("elements", SIZES)
def test_the_engine_as_it_is_beats_the_one_before(elements: int, asleep: bool) -> None:
    call = Call(elements, 12, asleep=asleep)
    for cores in (16, 32, 64):
        before, now = (seconds(MACHINE, call, cores, design) for design in DESIGNS.values())
        assert now <= before * 1.01


def test_pages_of_one_socket_are_the_slower() -> None:
    two = replace(MACHINE, sockets=2)
    call = Call(SIZES[-1], 12)
    assert seconds(two, replace(call, one_socket=True), 64, NOW) > seconds(two, call, 64, NOW)


def test_the_design_is_that_of_the_engine() -> None:
    """Its constants stand in the engine's source."""
    launch = (ROOT / "native" / "launch.cpp").read_text("utf-8")
    assert f"kEach = {NOW.each};" in launch
    assert f"kWakes = {NOW.wakes};" in (ROOT / "native" / "pool.cpp").read_text("utf-8")
