"""Small OpenVINO IR files for tests."""

from campaigns.models.ir_writer import Ir, Sizes, binary, broadcast, dims, port

__all__ = ["Ir", "Sizes", "binary", "broadcast", "dims", "port"]
