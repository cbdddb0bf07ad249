"""Builds the native engine while working on it, incrementally.

    python native/develop.py                       this processor's module: into build/dev, and src/
    python native/develop.py --tests               with the C++ programs of native/tests
    python native/develop.py --build FOLDER        into a folder of your own; src/ is not touched
    python native/develop.py --sanitize address    into build/address; also undefined, thread
    python native/develop.py --isa all             the kernels of every instruction set
    python native/develop.py --arm                 into build/arm: the library and the C++ programs

After a change of one kernel file the first takes seconds. With --sanitize or --arm the programs are
always built. A build that is not src/'s is imported with PYTHONPATH=FOLDER/package, where
`zerostride` is made of links into src/ and of that build's extension module. The C++ programs of
native/tests lie in FOLDER as test_NAME.
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "zerostride"
# Loads a module by its path.
LOAD = (
    "import importlib.util, sys;"
    "spec = importlib.util.spec_from_file_location('_native', sys.argv[1]);"
    "spec.loader.exec_module(importlib.util.module_from_spec(spec))"
)
MODULE = Path("compute")  # where in the package the extension module lies


def main() -> int:
    """Configures, builds, checks the objects, and puts the extension module where it is found."""
    options = parse()
    kind = options.sanitize or ("arm" if options.arm else "dev")
    folder = options.build or ROOT / "build" / kind
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two builds of one folder would spoil each other
        try:
            configure(folder, options)
            compile_all(folder, options.jobs)
            if not options.sanitize:  # its runtime adds symbols of its own
                run(sys.executable, ROOT / "native" / "check_objects.py", folder)
            if not options.arm:
                own = options.build is not None or options.sanitize is not None
                place(folder, folder / "package" / "zerostride" if own else PACKAGE)
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="build here")
    parser.add_argument("--sanitize", choices=["address", "undefined", "thread"])
    parser.add_argument("--arm", action="store_true", help="cross-compile (native/arm.cmake)")
    parser.add_argument("--tests", action="store_true", help="build the C++ programs, too")
    parser.add_argument(
        "--isa", default="", help="instruction sets, with commas, or all; default: this processor's"
    )
    parser.add_argument("--jobs", "-j", type=int, help="compilers at once")
    parser.add_argument("--compiler", help="default: $CXX, or the system's")
    return parser.parse_args()


def configure(folder: Path, options: argparse.Namespace) -> None:
    """Runs CMake; quick where nothing has changed."""
    ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "ZEROSTRIDE_TESTS": "ON" if options.tests or options.sanitize or options.arm else "OFF",
        "ZEROSTRIDE_SETS": options.isa.replace(",", ";"),
        "ZEROSTRIDE_SANITIZE": sanitizers(options.sanitize),
        "Python_EXECUTABLE": sys.executable,
    }
    if options.arm:
        settings["CMAKE_TOOLCHAIN_FILE"] = str(ROOT / "native" / "arm.cmake")
        settings["ZEROSTRIDE_MODULE"] = "OFF"
    if options.compiler:
        settings["CMAKE_CXX_COMPILER"] = options.compiler
    made = (folder / "CMakeCache.txt").exists()
    defines = [f"-D{name}={value}" for name, value in settings.items()]
    run("cmake", "-S", ROOT, "-B", folder, *([] if made else ninja), *defines, quiet=True)


def sanitizers(name: str | None) -> str:
    """AddressSanitizer comes with UndefinedBehaviorSanitizer: one run finds what both find."""
    return {None: "", "address": "address,undefined"}.get(name, name or "")


def compile_all(folder: Path, jobs: int | None) -> None:
    """Compiles what has changed, a compiler for each processor."""
    run("cmake", "--build", folder, "--parallel", str(jobs or len(os.sched_getaffinity(0))))


def place(folder: Path, package: Path) -> None:
    """Puts the built module into the package, which may be one of links into src/."""
    built = sorted(folder.glob("_native*.so"))
    if not built:
        print("develop.py: no extension module yet, only the library", file=sys.stderr)
        return
    if package != PACKAGE:
        link(package)
    else:  # others import it from there: one that does not load stays out
        run(sys.executable, "-c", LOAD, *built)
    for module in built:
        target = package / MODULE / module.name
        # A new file in the place of the old: processes that run the old one keep it.
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copy2(module, fresh)
        fresh.replace(target)
        print(f"develop.py: {target}")


def link(package: Path) -> None:
    """Makes a package of links to src/'s files, but for the folder with the extension module."""
    for source, target in ((PACKAGE, package), (PACKAGE / MODULE, package / MODULE)):
        target.mkdir(parents=True, exist_ok=True)
        for entry in target.iterdir():
            if entry.is_symlink():
                entry.unlink()
        for entry in source.iterdir():
            if entry.name not in ("__pycache__", MODULE.name) and entry.suffix != ".so":
                (target / entry.name).symlink_to(entry)


def run(*command: str | Path, quiet: bool = False) -> None:
    """Runs a command, and shows what it printed if it failed (or is not quiet)."""
    output = subprocess.PIPE if quiet else None
    try:
        subprocess.run([str(part) for part in command], check=True, stdout=output, text=True)
    except subprocess.CalledProcessError as error:
        print(error.stdout or "", end="", file=sys.stderr)
        raise


if __name__ == "__main__":
    sys.exit(main())
