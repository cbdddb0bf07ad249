"""The processor that engines run on: some engines differ without AVX-512."""

from pathlib import Path


def processor() -> str:
    """ "avx2" of an x86 processor without AVX-512, as the op table's variants say it; else ""."""
    facts = Path("/proc/cpuinfo")
    flags = facts.read_text().split() if facts.is_file() else []
    return "avx2" if "avx2" in flags and "avx512f" not in flags else ""
