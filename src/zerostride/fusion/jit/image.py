"""Machine code without LLVM: an object file as one block of memory, and that block made executable.

LLVM takes 50 to 100 ms to come up, and more to compile. It writes a small object file (ELF) whose
only function needs nothing but its own constants. `image_of` lays its sections out in one
block, with the places that hold addresses inside of it; `load` copies such a block into memory of
its own, adds the block's address there, and makes it executable, and no longer writable.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from dataclasses import dataclass
from typing import Any

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ADDRESS = struct.Struct("<Q")
#: 64 bits, little-endian; x86-64; the kinds of sections; the flags of one that is loaded.
_IDENT, _X86_64 = b"\x7fELF\x02\x01", 62
_BITS, _SYMBOLS, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC = 1, 2
#: The relocation of an absolute address in 64 bits (R_X86_64_64), the only one that is known.
_ABSOLUTE = 1


@dataclass(frozen=True, slots=True)
class Image:
    """A function as one block of memory.

    Attributes:
        data: the block; places in `moved` hold offsets in it.
        moved: offsets of the 8-byte addresses to which the block's own address is added.
        entry: the offset of the function.
    """

    data: bytes
    moved: tuple[int, ...]
    entry: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """An executable block, which lives as long as this object.

    Attributes:
        address: of the function.
        memory: the block.
    """

    address: int
    memory: Any


def image_of(file: bytes, name: bytes = b"body") -> Image | None:
    """The image of an object file's function; None if it needs more than its own constants.

    Args:
        file: an object file as LLVM writes it.
        name: of the function.
    """
    try:
        return _image(file, name)
    except (struct.error, IndexError, OverflowError, ValueError):  # the file is damaged
        return None


def _image(file: bytes, name: bytes) -> Image | None:
    header = _HEADER.unpack_from(file)
    if not header[0].startswith(_IDENT) or header[2] != _X86_64:
        return None
    sections = [_SECTION.unpack_from(file, header[6] + k * header[11]) for k in range(header[12])]
    place: dict[int, int] = {}
    data = bytearray()
    for k, (_, kind, flags, _, at, size, _, _, align, _) in enumerate(sections):
        if flags & _ALLOC and size:
            if kind in (_NOBITS,) or flags & _WRITE:
                return None
            data += bytes(-len(data) % max(align, 1))
            place[k] = len(data)
            data += file[at : at + size]
    moved: list[int] = []
    for _, kind, _, _, at, size, link, target, _, _ in sections:
        if target not in place or kind not in (_RELA, _REL):
            continue
        symbols = _symbols(file, sections[link])
        for k in range(size // _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(file, at + k * _RELOCATION.size)
            section, value = symbols[info >> 32][1:]
            if kind == _REL or info & 0xFFFFFFFF != _ABSOLUTE or section not in place:
                return None
            spot = place[target] + offset
            _ADDRESS.pack_into(data, spot, place[section] + value + addend)
            moved.append(spot)
    entry = _entry(file, sections, place, name)
    return None if entry is None else Image(bytes(data), tuple(moved), entry)


def _symbols(file: bytes, table: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The name's offset, section and value of each symbol."""
    at, size = table[4], table[5]
    rows = (_SYMBOL.unpack_from(file, at + k) for k in range(0, size, _SYMBOL.size))
    return [(row[0], row[3], row[4]) for row in rows]


def _entry(
    file: bytes, sections: list[tuple[int, ...]], place: dict[int, int], name: bytes
) -> int | None:
    for section in sections:
        if section[1] == _SYMBOLS:
            names = sections[section[6]][4]
            for offset, home, value in _symbols(file, section):
                at = names + offset
                if home in place and file[at : file.index(b"\0", at)] == name:
                    return place[home] + value
    return None


def load(image: Image) -> Loaded:
    """The image as executable memory.

    Raises:
        OSError: the system forbids memory that was written to be executed.
    """
    size = -(-len(image.data) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory[: len(image.data)] = image.data
    for spot in image.moved:
        (offset,) = _ADDRESS.unpack_from(memory, spot)
        _ADDRESS.pack_into(memory, spot, address + offset)
    _protect(address, size)
    return Loaded(address + image.entry, memory)


def _protect(address: int, size: int) -> None:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if function(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
