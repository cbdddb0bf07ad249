"""ncnn's .param files, with or without their .bin: reader, sites, ONNX's words, editor."""

from __future__ import annotations

from .editor import edit
from .lower import lower
from .reader import read_ncnn as read
from .reader import read_ncnn as read_sized
from .sites import find_site

__all__ = ["edit", "find_site", "lower", "read", "read_sized"]
