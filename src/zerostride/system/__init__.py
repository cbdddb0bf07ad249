"""Processes and files: what every other room needs of the operating system.

`children` starts Python in a child process, the one way to do it. `fork_gate` keeps a fork from
happening during an import. `whole_files` writes files whole or not at all. `version` is ours.
In: commands and paths. Out: processes, files.
"""
