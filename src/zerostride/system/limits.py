"""Limits of a process on itself. A child that has no package loaded runs this file by its path."""

from __future__ import annotations


def limit_memory(more: int) -> None:
    """Limits this process to a number of bytes beyond its present use, and writes no core file."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError):
        return  # no such limits here; the parent's clock is still running
