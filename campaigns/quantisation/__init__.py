"""Quantisation compared with the real engines, value by value."""
