"""The libraries that compute fused functions: one module each, imported on use."""

from __future__ import annotations

import functools

from ...peers.peer import peer_in

__all__ = ["PEERS"]


_peer = functools.partial(peer_in, __name__)
PEERS = {
    peer.name: peer
    for peer in (
        _peer("zerostride", "zerostride", "`zs.fuse`; writes into `out=`"),
        _peer(
            "numpy",
            "numpy",
            "the faster of the plain expression and of the same with `out=` into temporaries that"
            " were allocated before; one thread. erf is SciPy's",
        ),
        _peer(
            "numexpr",
            "numexpr",
            "the compiled text is called, which is cheaper than `evaluate`; several of them where"
            " reductions stand between; writes into `out=`. float32 constants are passed",
        ),
        _peer(
            "blosc2",
            "blosc2",
            "a lazy expression of arrays that it holds without compression; each call allocates a"
            " result, which is not compressed either",
        ),
        _peer(
            "torch",
            "torch",
            "eager, without gradients: the faster of the plain expression and of the library's own"
            " activation, softmax or normalisation (which rounds bfloat16 in between)",
        ),
        _peer(
            "inductor",
            "torch",
            "torch.compile (C++), `dynamic=False`: the faster of returning a result and of copying"
            " it into an output, which it fuses",
        ),
        _peer(
            "jax",
            "jax",
            "jitted, and waited for; takes no output, so each call allocates one; views are part of"
            " what is jitted. As many threads as the process has processors",
        ),
        _peer(
            "onnxruntime",
            "onnxruntime",
            "rows that dequantise: a session of one DequantizeLinear, by axis or blocked, with"
            " operands and result bound to the arrays' memory",
        ),
        _peer(
            "numba",
            "numba",
            "loops written by hand (`loops.py`), parallel=True, fastmath=False, NumPy's division;"
            " writes into an output",
        ),
    )
}
