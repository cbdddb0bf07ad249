"""Checks that an instruction set's objects share nothing with the others: check_objects.py BUILD

The linker keeps one copy of an inline function (a weak symbol) that many objects define. If objects
of several instruction sets define the same one, baseline code may be given AVX-512's copy, and ends
with an illegal instruction on an older processor. So whatever such an object defines for others to
see is either inside of the set's own namespace or an error here.

And of optimised objects, that no loop over a row calls a function of one element.
"""

import re
import subprocess
import sys
from pathlib import Path

# `nm` letters of what an object defines and others may be linked to: code, data, read-only data,
# zeroed data, common, unique, weak (both, of objects and functions).
DEFINED = frozenset("TDRBCuWV")
# What names a symbol may have besides: the debugger's and the compiler's own, local to the object.
SET = re.compile(r"zs_(\w+)\.dir$")


def objects(build: Path) -> dict[str, list[Path]]:
    """The object files of each instruction set in a build folder."""
    found: dict[str, list[Path]] = {}
    for folder in sorted(build.glob("CMakeFiles/zs_*.dir")):
        match = SET.search(folder.name)
        if match and match[1] != "engine":
            found[match[1]] = sorted(folder.rglob("*.o"))
    return found


def shared(name: str, files: list[Path], nm: str = "nm") -> list[str]:
    """Lines on what the object files of a set define outside of its namespace."""
    if not files:
        return []
    command = [nm, "-C", "-A", "--defined-only", *map(str, files)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    faults = []
    for line in output.splitlines():
        file, _, rest = line.partition(".o:")
        match = re.match(r"\s*[0-9a-f]*\s+(\w) (.*)", rest)
        if match and match[1] in DEFINED and not owned(match[2], name):
            faults.append(f"{name}: {Path(file).name}: {match[2]} ({match[1]})")
    return faults


def owned(symbol: str, name: str) -> bool:
    """Whether a symbol is of the set's namespace: itself, not by a template's argument."""
    # A template's name is printed with the type that it returns before it; typeinfo and guards with
    # a description.
    bare = re.sub(r"^(typeinfo( name)? for|vtable for|guard variable for) ", "", symbol)
    head = re.split(r"[(<]", bare, maxsplit=1)[0]
    return head.rsplit(" ", 1)[-1].startswith(f"zs::{name}::")


def called(name: str, files: list[Path], nm: str = "nm") -> list[str]:
    """Lines on the functors that were not inlined: their loops call them, once an element."""
    if not files:
        return []
    command = [nm, "-C", "-A", "--defined-only", *map(str, files)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [
        f"{name}: {Path(file).name}: {symbol}"
        for file, _, rest in (line.partition(".o:") for line in output.splitlines())
        for symbol in re.findall(r"\s[tTwW] (.*::of(?:<.*>)?\(.*)", rest)
    ]


def main() -> int:
    """Exit status 1, and a line for each fault."""
    faults = []
    for name, files in objects(Path(sys.argv[1])).items():
        mixed = (
            f"outside of the namespace of its instruction set: {f}" for f in shared(name, files)
        )
        slow = (
            f"not inlined, so that its loop is not vectorised: {f}" for f in called(name, files)
        )
        faults += [*mixed, *slow]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
