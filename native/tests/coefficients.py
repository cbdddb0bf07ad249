"""Prints the polynomials of native/vmath/: `python native/tests/coefficients.py [name]`.

Each is fitted by least squares at Chebyshev nodes, which comes within a factor of about two of the
best there is. Coefficients are rounded one after the other, lowest first, and the rest is fitted
again to make up for it. `error` is the largest error that the polynomial alone brings to its
function, relative to the function, as a power of two. Needs mpmath.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 60


@dataclass(frozen=True)
class Fit:
    """A polynomial of `terms` coefficients for `of` on [low, high].

    `share(t, e)` is the function's relative error that an error e of the polynomial at t makes.
    """

    name: str
    of: Callable[[mp.mpf], mp.mpf]
    low: mp.mpf
    high: mp.mpf
    float_terms: int
    double_terms: int
    share: Callable[[mp.mpf, mp.mpf], mp.mpf]


def fits() -> list[Fit]:
    """Every polynomial, in the order of the headers."""
    half, quarter = mp.log(2) / 2, mp.pi / 4
    root = mp.sqrt(2) - 1
    s_end = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    return [
        # e^r = 1 + r + r^2 q(r); the share is that of e^r - 1, which needs more
        Fit("exp", lambda r: (mp.expm1(r) - r) / r**2, -half, half, 5, 10, lambda r, e: r * e),
        # 2^r = 1 + r q(r)
        Fit(
            "exp2",
            lambda r: (mp.power(2, r) - 1) / r,
            mp.mpf(-0.5),
            mp.mpf(0.5),
            6,
            11,
            lambda r, e: r * e,
        ),
        # log(1 + f) = f - f^2/2 + f^3 q(f)
        Fit(
            "log",
            lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
            1 / mp.sqrt(2) - 1,
            root,
            9,
            0,
            lambda f, e: f**2 * e,
        ),
        # log(1 + f) = f - f^2/2 + f^3 q(f), for pow of floats
        Fit(
            "log_third",
            lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
            mp.mpf(-0.14),
            mp.mpf(0.149),
            7,
            0,
            lambda f, e: f**2 * e,
        ),
        # 2^r = 1 + r log(2) + r^2 q(r), for the same
        Fit(
            "exp2_second",
            lambda r: (mp.power(2, r) - 1 - r * mp.log(2)) / r**2,
            mp.mpf(-0.5),
            mp.mpf(0.5),
            5,
            0,
            lambda r, e: r**2 * e,
        ),
        # log2(1 + f) = f log2(e) + f^2 q(f)
        Fit(
            "log2_second",
            lambda f: (mp.log1p(f) - f) / f**2 / mp.log(2),
            1 / mp.sqrt(2) - 1,
            root,
            9,
            0,
            lambda f, e: f * e * mp.log(2),
        ),
        # ... log10
        Fit(
            "log10_second",
            lambda f: (mp.log1p(f) - f) / f**2 / mp.log(10),
            1 / mp.sqrt(2) - 1,
            root,
            9,
            0,
            lambda f, e: f * e * mp.log(10),
        ),
        # log((1 + s) / (1 - s)) = 2 s + s z q(z), z = s^2
        Fit(
            "log_s",
            lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z,
            mp.mpf(0),
            s_end**2,
            0,
            7,
            lambda z, e: z * e / 2,
        ),
        # log2 of the same for log2, log10 and pow of floats without FMA: a few bits more than a
        # float's: s q(z)
        Fit(
            "log2_s",
            lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.log(2),
            mp.mpf(0),
            s_end**2,
            0,
            6,
            lambda z, e: e / 3,
        ),
        # 2^r = q(r) for the same
        Fit(
            "exp2_short", lambda r: mp.power(2, r), mp.mpf(-0.5), mp.mpf(0.5), 0, 7, lambda r, e: e
        ),
        # log((1 + s) / (1 - s)) = 2 s + s z (2/3 + z q(z)) for pow
        Fit(
            "log_pow",
            lambda z: ((2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z - mp.mpf(2) / 3) / z,
            mp.mpf(0),
            s_end**2,
            0,
            9,
            lambda z, e: z**2 * e / 2,
        ),
        # sin r = r + r^3 q(r^2), cos r = 1 - r^2/2 + r^4 q(r^2), |r| <= pi/4
        Fit(
            "sin",
            lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
            mp.mpf(0),
            quarter**2,
            3,
            6,
            lambda z, e: z * e,
        ),
        Fit(
            "cos",
            lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
            mp.mpf(0),
            quarter**2,
            3,
            6,
            lambda z, e: z**2 * e,
        ),
        # atan t = t + t^3 q(t^2)
        Fit(
            "atan",
            lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
            mp.mpf(0),
            root**2,
            5,
            12,
            lambda z, e: z * e,
        ),
        # asin t = t + t^3 q(t^2)
        Fit(
            "asin",
            lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
            mp.mpf(0),
            mp.mpf(0.25),
            5,
            12,
            lambda z, e: z * e,
        ),
        # erf a = 1 - exp(-a q(a))
        Fit(
            "erf",
            lambda a: -mp.log(mp.erfc(a)) / a,
            mp.mpf(0),
            mp.mpf(4),
            8,
            0,
            erf_share,
        ),
        Fit(
            "erf",
            lambda a: -mp.log(mp.erfc(a)) / a,
            mp.mpf(0),
            mp.mpf(6),
            0,
            26,
            erf_share,
        ),
        # For gelu: erfc(x / sqrt(2)) = exp(-x q(x)) for small x ...
        Fit(
            "tail_near",
            lambda x: -mp.log(mp.erfc(x / mp.sqrt(2))) / x,
            mp.mpf(0),
            mp.mpf(1.45),
            7,
            16,
            lambda x, e: e * x,
        ),
        # ... and e^(-x^2 / 2) q(v) / (x + 5), v = (x - 5) / (x + 5). (5: q(0) is nearly a float.)
        Fit("tail", scaled_tail, mp.mpf(-0.56), mp.mpf(0.5), 10, 0, scaled_tail_share),
        Fit("tail", scaled_tail, mp.mpf(-0.56), mp.mpf(34) / 44, 0, 21, scaled_tail_share),
    ]


def scaled_tail(v: mp.mpf) -> mp.mpf:
    """(x + 5) e^(x^2 / 2) erfc(x / sqrt(2)) for v = (x - 5) / (x + 5)."""
    x = 5 * (1 + v) / (1 - v)
    return (x + 5) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def scaled_tail_share(v: mp.mpf, e: mp.mpf) -> mp.mpf:
    """The error of erfc(x / sqrt(2)) that follows from an error of it."""
    return e / scaled_tail(v)


def erf_share(a: mp.mpf, e: mp.mpf) -> mp.mpf:
    """The error of erf(a) that follows from an error e of -log(erfc(a)) / a."""
    return e * a * mp.erfc(a) / mp.erf(a)


def nodes(low: mp.mpf, high: mp.mpf, count: int) -> list[mp.mpf]:
    """Chebyshev's nodes."""
    middle, reach = (low + high) / 2, (high - low) / 2
    return [middle + reach * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def rounded(value: mp.mpf, bits: int) -> mp.mpf:
    """To the nearest number of so many significant bits."""
    with mp.workprec(bits):
        return +value


def fit(one: Fit, terms: int, bits: int) -> list[mp.mpf]:
    """Coefficients, lowest first, each exactly a float (24 bits) or double (53)."""
    at = nodes(one.low, one.high, 4 * terms)  # an even count: 0 is none of them
    weights = [one.share(t, mp.mpf(1)) for t in at]
    values = [one.of(t) for t in at]
    fixed: list[mp.mpf] = []
    while len(fixed) < terms:
        done = len(fixed)
        known = [mp.polyval(fixed[::-1], t) if fixed else mp.mpf(0) for t in at]
        matrix = mp.matrix(len(at), terms - done)
        for i, (t, w) in enumerate(zip(at, weights, strict=True)):
            for j in range(terms - done):
                matrix[i, j] = w * t ** (done + j)
        right = [w * (v - k) for w, v, k in zip(weights, values, known, strict=True)]
        fixed.append(rounded(mp.lu_solve(matrix, mp.matrix(right))[0], bits))
    return fixed


def report(one: Fit, terms: int, bits: int) -> None:
    """Prints one polynomial and its error."""
    found = fit(one, terms, bits)
    worst = mp.mpf(0)
    for t in nodes(
        one.low, one.high, 201
    ):  # an odd count: the middle may be a zero of the argument
        if t != 0:
            worst = max(worst, abs(one.share(t, mp.polyval(found[::-1], t) - one.of(t))))
    print(f"{one.name} {'float' if bits == 24 else 'double'} error 2^{float(mp.log(worst, 2)):.1f}")
    suffix = "f" if bits == 24 else ""
    print("  " + ", ".join(float(c).hex() + suffix for c in found))


def main() -> None:
    """The command."""
    for one in fits():
        if len(sys.argv) > 1 and one.name not in sys.argv[1:]:
            continue
        for terms, bits in ((one.float_terms, 24), (one.double_terms, 53)):
            if terms:
                report(one, terms, bits)


if __name__ == "__main__":
    main()
