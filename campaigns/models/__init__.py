"""Whole models and drawn nodes: audits, ports and verdicts compared with the engines."""
