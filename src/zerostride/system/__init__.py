"""Processes and files: what the other rooms need of the operating system.

`child` starts, asks and ends a child process, by `frames`; `children` has the commands of children.
`fork_gate` delays a fork until imports have ended; `imports` waits for the import of a module.
`whole_files` writes a file completely or not at all. `cache_folder` is the folder of what can be
computed again. `version` is the package's version.
In: commands and paths. Out: processes, files.
"""
