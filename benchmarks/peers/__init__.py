"""The libraries: one module each, imported on use."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from fnmatch import fnmatchcase

from .peer import Call, LeftOut, Peer, Prepared, peer_in

__all__ = ["BASELINE", "PEERS", "Call", "LeftOut", "Peer", "Prepared", "choose", "version"]

#: Whose time is the unit.
BASELINE = "zerostride"


_peer = functools.partial(peer_in, __name__)
PEERS = {
    peer.name: peer
    for peer in (
        _peer("zerostride", "zerostride", "writes into `out=`"),
        _peer(
            "numpy",
            "numpy",
            "writes into `out=`; one thread, since its ufuncs have no more. `where` is the faster"
            " of np.where, which allocates, and two copies into an output",
        ),
        _peer(
            "numexpr",
            "numexpr",
            "the compiled expression is called, which is cheaper than `evaluate`; writes into"
            " `out=`",
        ),
        _peer("torch", "torch", "eager, without gradients, writes into `out=`"),
        _peer(
            "onnxruntime",
            "onnxruntime",
            "a session of one node with inputs and output bound before (no arguments are passed);"
            " its threads spin for 1 ms, not for the 60 ms of the default, in which they would"
            " disturb whoever comes next",
        ),
        _peer(
            "openvino",
            "openvino",
            "a request with inputs and output set before; the faster of `infer` and `start_async`"
            " with `wait`; computes in float32 where the row says so",
        ),
        _peer(
            "jax",
            "jax",
            "jitted, and waited for; takes no output, so each call allocates one; views are part of"
            " what is jitted. As many threads as the process has processors",
        ),
        _peer(
            "mnn",
            "MNN",
            "a session of one node whose inputs were copied into its own tensors before and whose"
            " output stays there (no arguments are passed). A session of exp, tanh or sigmoid"
            " writes its result over its input, so the next call reads that",
        ),
        _peer(
            "ncnn",
            "ncnn",
            "a Net of one layer; its extractor is made anew for each call, which is Python's part,"
            " and its output comes from a pool that keeps memory; the faster of with and without"
            " threads. Operands are reshaped so that its own broadcasting means the same",
        ),
    )
}


def version(peer: Peer) -> str | None:
    """The release that is installed, None where none is."""
    try:
        return importlib.metadata.version(peer.package)
    except importlib.metadata.PackageNotFoundError:
        return "of this checkout" if peer.name == BASELINE else None


def choose(patterns: str, known: Mapping[str, Peer] = PEERS) -> list[Peer]:
    """The peers that match one of the patterns, parted by commas; all for "". Zerostride is first.

    Raises:
        ValueError: a pattern matches no peer.
    """
    wanted = [pattern.strip() for pattern in patterns.split(",")] if patterns else ["*"]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ValueError(f"no peer is called {pattern!r}; there are {', '.join(known)}")
    return [
        peer
        for name, peer in known.items()
        if name == BASELINE or any(fnmatchcase(name, pattern) for pattern in wanted)
    ]
