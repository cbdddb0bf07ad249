"""The version of this package; `tools/release.py` checks that pyproject.toml has the same."""

__version__ = "0.1.0"
