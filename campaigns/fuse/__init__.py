"""Fused programs compared with the reference: drawn, judged by intervals, shrunk."""
