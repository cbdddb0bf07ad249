"""The objects of the instruction sets share no symbols."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("c++", "nm", "cmake"))), reason="needs a C++ compiler, nm and cmake"
)
#: CMake's default is make, which a machine may lack.
GENERATOR = ["-G", "Ninja"] if shutil.which("ninja") else []

OWN = """
namespace zs { namespace avx2 {
template <class T> T twice(T x) { return x + x; }
inline int counted() { static int n = 0; return ++n; }
struct Shape { virtual ~Shape() {} };
int f(int x) { Shape shape; return twice(x) + int(twice(1.5f)) + counted(); }
} }
"""
STANDARD = """
#include <algorithm>
namespace zs { namespace avx2 { int f(int x, int y) { return std::max(x, y); } } }
"""
INLINE = """
namespace zs { inline int shared(int x) { return x; } }
namespace zs { namespace avx2 { int f(int x) { return shared(x); } } }
"""
# The argument is of the namespace, the function is not.
TEMPLATE = """
namespace zs { namespace avx2 { struct Own {}; } }
template <class T> int shared(T) { return 1; }
namespace zs { namespace avx2 { int f() { return shared(Own()); } } }
"""

FUNCTOR = """
namespace zs { namespace avx2 {
struct Twice { template <class T> static inline __attribute__((HOW)) T of(T x) { return x + x; } };
void row(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = Twice::of(x[i]); }
} }
"""


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """native/check_objects.py, which is no module of the package."""
    path = ROOT / "native" / "check_objects.py"
    spec = importlib.util.spec_from_file_location("check_objects", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_text(folder: Path, text: str) -> Path:
    source = folder / "unit.cpp"
    source.write_text(text)
    path = source.with_suffix(".o")
    subprocess.run(["c++", "-std=c++20", "-O0", "-c", source, "-o", path], check=True)
    return path


def test_symbols_of_the_namespace_are_accepted(check: ModuleType, tmp_path: Path) -> None:
    assert check.shared("avx2", [compile_text(tmp_path, OWN)]) == []


def test_symbols_of_another_sets_namespace_are_refused(check: ModuleType, tmp_path: Path) -> None:
    assert len(check.shared("avx512", [compile_text(tmp_path, OWN)])) >= 3


@pytest.mark.parametrize("text", [STANDARD, INLINE, TEMPLATE], ids=["std", "inline", "template"])
def test_shareable_symbols_are_found(check: ModuleType, tmp_path: Path, text: str) -> None:
    faults = check.shared("avx2", [compile_text(tmp_path, text)])
    assert len(faults) == 1
    assert "max" in faults[0] or "shared" in faults[0]


@pytest.mark.parametrize(("how", "count"), [("noinline", 1), ("always_inline", 0)])
def test_calls_inside_loops_are_found(
    check: ModuleType, tmp_path: Path, how: str, count: int
) -> None:
    compiled = compile_text(tmp_path, FUNCTOR.replace("HOW", how))
    assert len(check.called("avx2", [compiled])) == count


@pytest.mark.builds
def test_engines_objects_pass_the_checks(check: ModuleType, tmp_path: Path) -> None:
    """Without optimisation nothing is inlined, so every inline function that is called shows."""
    name = "baseline" if platform.machine() not in ("aarch64", "arm64") else "neon"
    if not (GENERATOR or shutil.which("make")):
        pytest.skip("needs ninja or make: pip install ninja")
    configure = ["cmake", *GENERATOR, "-S", ROOT, "-B", tmp_path, "-DCMAKE_BUILD_TYPE=Debug"]
    configure += [f"-DZEROSTRIDE_SETS={name}", "-DZEROSTRIDE_MODULE=OFF"]
    for command in (configure, ["cmake", "--build", tmp_path, "--target", f"zs_{name}"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    files = check.objects(tmp_path)[name]
    assert len(files) > 1, "nothing was compiled"
    assert check.shared(name, files) == []
