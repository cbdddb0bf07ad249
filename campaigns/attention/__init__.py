"""Attention on real engines: plans and numbers, against `zerostride.attention`."""
