"""The processor that engines run on: some compute otherwise without AVX-512."""

from pathlib import Path


def has_avx512() -> bool:
    """Whether this is an x86 processor with AVX-512; False where the system does not say."""
    facts = Path("/proc/cpuinfo")
    return facts.is_file() and "avx512f" in facts.read_text()
