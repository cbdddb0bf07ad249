"""Fused programs against the reference: drawn, judged by intervals, made smaller."""
