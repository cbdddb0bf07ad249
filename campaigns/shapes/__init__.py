"""Symbolic plans compared with concrete ones, and other tools' shape inference."""
