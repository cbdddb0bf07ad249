"""The machine of the measurements."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
#: Where the system says nothing: a common size.
_UNKNOWN_CACHE = 32 << 20


@dataclass(frozen=True)
class Machine:
    """What a reader needs to judge a figure."""

    processor: str
    cores: int
    #: "L1d 48 KiB", ... of one core, and the last as it is shared.
    caches: tuple[str, ...]
    last_cache: int
    memory_gib: float
    system: str
    python: str
    #: How busy the machine was before; figures of a busy one are worth little.
    load: float

    @property
    def short_name(self) -> str:
        """The processor's name without trade marks and clock, and its last two caches.

        Virtual machines hide the model: processors of two generations, one with AVX-512 and one
        without, may have the same name and the same last cache.
        """
        name = re.sub(r"\((?:R|TM|tm|C)\)|@.*|\b(?:CPU|Processor)\b", " ", self.processor)
        words = " ".join(name.split()) or "unknown processor"
        return ", ".join((words, *self.caches[-2:]))

    @property
    def slug(self) -> str:
        """The short name as the name of a folder: lower-case letters, digits and hyphens."""
        return "-".join(re.findall(r"[a-z0-9]+", self.short_name.lower())) or "unknown"


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe() -> Machine:
    """Asks the system."""
    caches = _caches()
    return Machine(
        _field(_CPUINFO, "model name") or platform.processor() or platform.machine(),
        processors(),
        tuple(f"{name} {_size(size)}" for name, size in caches.items()),
        max(caches.values(), default=_UNKNOWN_CACHE),
        round(int((_field(_MEMINFO, "MemTotal") or "0").split()[0]) / (1 << 20), 1),
        f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        f"{platform.python_implementation()} {platform.python_version()}",
        round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0,
    )


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    found = re.search(rf"^{name}\s*:\s*(.+)$", path.read_text("utf-8"), re.MULTILINE)
    return found[1].strip() if found else ""


def _caches() -> dict[str, int]:
    """Bytes of each data cache that the first processor has."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        kind = (folder / "type").read_text().strip()
        if kind == "Instruction":
            continue
        level = (folder / "level").read_text().strip()
        size = (folder / "size").read_text().strip()
        found[f"L{level}{'d' if kind == 'Data' else ''}"] = int(size.rstrip("K")) << 10
    return found


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
