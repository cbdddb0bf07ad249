"""Whole models and drawn nodes: audits, ports and verdicts against the engines."""
