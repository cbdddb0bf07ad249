"""Benchmarks of zerostride beside other libraries: `python -m benchmarks --help`.

Reads from top to bottom: `rows` says what is computed, `peers` by whom, `timing` how a call is
timed, `stream` what the memory allows, `compare` runs them all in turns, `goals` judges. `archive`
keeps the results of each processor, and `pages` writes their pages.
"""
