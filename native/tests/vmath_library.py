"""native/vmath.h as a library that Python calls, for every instruction set that can be run here."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent

# As CMakeLists.txt has them.
COMMON = ["-std=c++20", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
AVX2 = ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"]
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd"]
FLAGS = {
    "baseline": [],
    "avx2": AVX2,
    "avx512": [*AVX2, *AVX512, "-mprefer-vector-width=512"],
    "neon": [],
}
CROSS = "aarch64-linux-gnu-g++"


def compiler() -> str | None:
    """A C++ compiler, if there is one."""
    return next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)


def emulator() -> str | None:
    """The emulator of 64-bit Arm, if it and a compiler for Arm are installed."""
    programs = map(shutil.which, ("qemu-aarch64-static", "qemu-aarch64"))
    return next(filter(None, programs), None) if shutil.which(CROSS) else None


def instruction_sets() -> list[str]:
    """The sets that this processor runs, plainest first."""
    info = Path("/proc/cpuinfo")
    have = set(info.read_text().split()) if info.exists() else set()
    if "asimd" in have:
        return ["neon"]
    found = ["baseline"]
    if {"avx2", "fma", "f16c", "bmi2"} <= have:
        found.append("avx2")
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= have:
            found.append("avx512")
    return found


class Functions:
    """The functions of one instruction set, and the judge of errors."""

    def __init__(self, name: str, folder: Path, program: str | None = None) -> None:
        """Compiles the library into a folder."""
        target = folder / f"ulp_{name}.so"
        _compile(program or compiler(), name, target, "-fPIC", "-shared")
        self._library = ctypes.CDLL(str(target))
        self._library.ulp_name.restype = ctypes.c_char_p
        self._library.ulp_judge_float.restype = ctypes.c_double
        self._library.ulp_judge_double.restype = ctypes.c_double

    def names(self) -> list[str]:
        """Every function."""
        found: list[str] = []
        while name := self._library.ulp_name(len(found)):
            found.append(name.decode())
        return found

    def inputs(self, name: str) -> int:
        """The number of arguments of a function."""
        return int(self._library.ulp_inputs(name.encode()))

    def compute(
        self,
        name: str,
        a: np.ndarray,
        b: np.ndarray,
        out: np.ndarray | None = None,
        repeats: int = 1,
    ) -> np.ndarray:
        """The results on contiguous arrays of one dtype; unary functions do not look at `b`."""
        result = np.empty_like(a) if out is None else out
        self._call("repeat", name, [a, b, result], ctypes.c_int(repeats))
        return result

    def judge(
        self, name: str, a: np.ndarray, b: np.ndarray, got: np.ndarray
    ) -> tuple[float, tuple[float, ...]]:
        """The largest error of results, in ulp, and the arguments that have it."""
        at = ctypes.c_int64(0)
        worst = self._call("judge", name, [a, b, got], ctypes.byref(at))
        return worst, tuple(float(x[at.value]) for x in (a, b)[: self.inputs(name)])

    def _call(self, what: str, name: str, arrays: list[np.ndarray], *more: object) -> float:
        function = getattr(self._library, f"ulp_{what}_{_word(arrays[0])}")
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        return float(function(name.encode(), *pointers, ctypes.c_int64(arrays[0].size), *more) or 0)


class Emulated(Functions):
    """The functions of 64-bit Arm, computed in emulation and judged here."""

    def __init__(self, folder: Path) -> None:
        """Compiles the library for this processor and the program for the other."""
        super().__init__("baseline", folder)
        self._program = folder / "ulp_neon"
        _compile(CROSS, "neon", self._program, "-static")

    def compute(
        self,
        name: str,
        a: np.ndarray,
        b: np.ndarray,
        out: np.ndarray | None = None,
        repeats: int = 1,
    ) -> np.ndarray:
        """The results; emulated speed means nothing, so that `repeats` is not looked at."""
        words = [str(emulator()), str(self._program), name, _word(a), str(a.size)]
        done = subprocess.run(
            words, input=a.tobytes() + b.tobytes(), stdout=subprocess.PIPE, check=True
        )
        result = np.frombuffer(done.stdout, a.dtype)
        if out is not None:
            out[:] = result
        return result


def _word(array: np.ndarray) -> str:
    return "float" if array.dtype == np.float32 else "double"


def _compile(program: str | None, name: str, target: Path, *options: str) -> None:
    assert program is not None, "there is no C++ compiler"
    flags = [*COMMON, *FLAGS[name], *options, f"-DZS_ISA={name}"]
    subprocess.run([program, *flags, str(HERE / "ulp.cpp"), "-o", str(target)], check=True)
