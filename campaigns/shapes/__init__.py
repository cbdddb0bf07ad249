"""Symbolic plans against concrete ones, and other tools' shape inference beside ours."""
