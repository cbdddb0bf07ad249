"""``python -m campaigns strict-alarms``: runs the packages, and writes the page."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import click

from zerostride.errors import BadInput

from .page import RESULTS, write_page
from .table import DRIVERS

_ROOT = Path(__file__).resolve().parents[2]


@click.command("strict-alarms")
@click.option("--python", required=True, metavar="FILE", help="The interpreter of the packages.")
@click.option("--only", multiple=True, metavar="PACKAGE", help="These packages; default: all.")
@click.option("--again", is_flag=True, help="Run packages that have a result, too.")
@click.option("--seconds", default=300, show_default=True, help="The limit for each package.")
def strict_alarms(python: str, only: tuple[str, ...], again: bool, seconds: int) -> int:
    """Report the lines of real packages that strict mode refuses; keep docs/strict_alarms.md.

    A run goes on where it stopped. A person writes the verdict of each alarm into results.json:
    "accident" or "meant", and why. A verdict stays as long as its line has the same source.
    """
    unknown = sorted(set(only) - set(DRIVERS))
    if unknown:
        raise BadInput(f"no driver for {', '.join(unknown)}; there are: {', '.join(DRIVERS)}")
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    missing = 0
    for package in only or DRIVERS:
        if package in results and not again:
            continue
        answer = _run(python, package, seconds)
        if answer is None:
            missing += 1
            continue
        _keep_verdicts(answer, results.get(package, {}))
        results[package] = answer
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        click.echo(f"{package}: {answer['lines']} lines, {len(answer['alarms'])} alarms")
    write_page(results)
    return int(missing > 0)


def _run(python: str, package: str, seconds: int) -> dict[str, Any] | None:
    """A package's result; None if it is not installed, or its driver fails or takes too long."""
    command = [python, "-m", "campaigns.strict_alarms.child", package]
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    # Nothing is downloaded: weights are random.
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        words = str(error.stderr or error).strip().splitlines()
        click.echo(f"{package}: no result: {words[-1] if words else error}", err=True)
        return None
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _keep_verdicts(answer: dict[str, Any], before: dict[str, Any]) -> None:
    known = {(one["file"], one["source"]): one for one in before.get("alarms", ())}
    for alarm in answer["alarms"]:
        old = known.get((alarm["file"], alarm["source"]), {})
        alarm["verdict"], alarm["why"] = old.get("verdict", "open"), old.get("why", "")


__all__ = ["strict_alarms"]
