"""Bytes that other tools frame: protobuf fields, the log of W&B and SwanLab, TensorBoard's records.

Only reading, only what those files use, and every checksum is verified. Anything unsound is a
`ValueError`; the reader that called knows the file and says so, of W&B and SwanLab `read_log`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read import Imported, Where
from kleash.compare.read.gather import Points, head
from kleash.errors import DataError

Field = tuple[int, int, int | bytes]


class TornError(ValueError):
    """The file ends inside a record: its writer was stopped."""


# --- protobuf ----------------------------------------------------------------------------------


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 64 bits, and where it ends."""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("a message ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise ValueError("a number of more than ten bytes")


def fields(data: bytes) -> Iterator[Field]:
    """Number, wire type and content of every field: an int for type 0, else its bytes."""
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = varint(data, at - 1)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
            yield tag >> 3, 0, value
            continue
        if kind == 2:
            size, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        if at + size > end:
            raise ValueError("a field is longer than its message")
        yield tag >> 3, kind, data[at : at + size]
        at += size


def chosen(data: bytes, *numbers: int) -> dict[int, int | bytes]:
    """The last value of each of the fields named, where present."""
    return {number: value for number, _, value in fields(data) if number in numbers}


def repeated(data: int | bytes | None, number: int) -> list[bytes]:
    """Every message in a field of a message."""
    found = fields(data) if isinstance(data, bytes) else ()
    return [value for at, _, value in found if at == number and isinstance(value, bytes)]


def text(value: int | bytes | None) -> str:
    """A string field; empty where absent."""
    return value.decode() if isinstance(value, bytes) else ""


def double(value: int | bytes | None) -> float:
    """A double field."""
    if not isinstance(value, bytes) or len(value) != 8:
        raise ValueError("a double does not have eight bytes")
    return float(struct.unpack("<d", value)[0])


def single(value: int | bytes | None) -> float:
    """A float field, 24 bits of it."""
    if not isinstance(value, bytes) or len(value) != 4:
        raise ValueError("a float does not have four bytes")
    return float(struct.unpack("<f", value)[0])


def signed(value: int | bytes | None) -> int:
    """An int64 field."""
    if not isinstance(value, int):
        raise ValueError("an integer is not a number")
    return value - 2**64 if value >= 2**63 else value


def zigzag(value: int | bytes | None) -> int:
    """A sint64 field."""
    if not isinstance(value, int):
        raise ValueError("an integer is not a number")
    return (value >> 1) ^ -(value & 1)


# --- the log of W&B and SwanLab: LevelDB's framing, with plain CRC-32 over type and content ------

HEADER = 7  # bytes before the first record: whose log it is, and its version
BLOCK = 32_768
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
KINDS = [zlib.crc32(bytes([kind])) for kind in range(5)]
RECORD = 64 * 2**20


class Log:
    """What the records of a log say so far."""

    form = ""
    mark = b""
    versions: Sequence[bytes] = ()
    """What may stand behind the mark with which a log begins."""

    def __init__(self, path: Path) -> None:
        self.path, self.points = path, Points(path)
        name = path.stem.removeprefix("run-")
        self.run = Imported(name, "", self.form, Where(str(path)), finished=False)
        start = head(path, HEADER)
        self.version = start[6:]
        if start[:6] != self.mark:
            raise ValueError("it does not begin as such a log does")
        if self.version not in self.versions:
            raise ValueError(f"its version {self.version.hex() or 'is missing'} is not known here")

    def take(self, record: int, data: bytes) -> None:
        """One record."""
        raise NotImplementedError

    def finish(self, notes: list[str]) -> None:
        """What is left to do once all records are taken."""


def read_log(log: type[Log], path: Path, notes: list[str]) -> Imported:
    """The run of a log; one whose writer was stopped is unfinished, and `notes` say so."""
    record = 0
    try:
        made = log(path)
        with path.open("rb") as handle:
            handle.seek(HEADER)
            for record, data in enumerate(log_records(handle), 1):
                made.take(record, data)
    except TornError as error:
        notes.append(f"{path}: unfinished, read up to record {record} ({error})")
        made.run.finished = False
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} cannot be read behind record {record}: {error}") from None
    made.run.series = made.points.series(spot="record")
    made.finish(notes)
    return made.run


def log_records(handle: BinaryIO) -> Iterator[bytes]:
    """The content of every record; the handle stands behind the file's own header.

    A record does not cross a block unless it is cut into fragments.
    """
    parts: list[bytes] = []
    at = handle.tell()
    while block := handle.read(BLOCK - at % BLOCK):
        inner, last = 0, not _more(handle)
        while len(block) - inner >= 7:
            if last and not any(block[inner:]):
                raise TornError(f"only zeros from byte {at + inner}")
            kind, piece = _fragment(block, inner, last=last)
            if (kind in (FULL, FIRST)) == bool(parts):
                raise ValueError(f"a record begins or goes on at byte {at + inner}, wrongly")
            inner += 7 + len(piece)
            parts.append(piece)
            if sum(map(len, parts)) > RECORD:
                raise ValueError(f"the record before byte {at + inner} is too long")
            if kind in (FULL, LAST):
                yield b"".join(parts)
                parts = []
        if any(block[inner:]):
            if last:
                raise TornError(f"the file ends inside a header at byte {at + inner}")
            raise ValueError(f"the end of the block before byte {at + len(block)} is not empty")
        at += len(block)
    if parts:
        raise TornError("the last record has no end")


def _more(handle: BinaryIO) -> bool:
    here = handle.tell()
    more = bool(handle.read(1))
    handle.seek(here)
    return more


def _fragment(block: bytes, at: int, *, last: bool) -> tuple[int, bytes]:
    """Kind and content of the fragment at a place in a block; `last`: no block follows."""
    check, size, kind = struct.unpack_from("<IHB", block, at)
    end = at + 7 + size
    if end > len(block):
        if last:
            raise TornError("the file ends inside a record")
        raise ValueError("a record is longer than its block")
    piece = block[at + 7 : end]
    if not FULL <= kind <= LAST or zlib.crc32(piece, KINDS[kind]) != check:
        if last and end == len(block):
            raise TornError("the last record does not have its checksum")
        raise ValueError("a record does not have its checksum")
    return kind, piece


# --- TFRecord: length, its CRC, content, its CRC; CRC-32C, masked ---------------------------------


def _table() -> list[int]:
    made = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        made.append(byte)
    return made


TABLE = _table()
TABLE_N = np.array(TABLE, dtype=np.uint32)
AT_ONCE = 2**20
LONG = 64 * 2**10  # images and graphs: passed over, nothing is taken from them


def masked(crc: int) -> int:
    """A CRC as TFRecord stores it."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFF_FFFF


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of a few bytes."""
    crc = 0xFFFF_FFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFF_FFFF


def crc32c_rows(rows_NB: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """CRC-32C of many records of one length, byte by byte over all at once."""
    crc = np.full(len(rows_NB), 0xFFFF_FFFF, dtype=np.uint32)
    for column in rows_NB.T:
        crc = TABLE_N[(crc ^ column) & 0xFF] ^ crc >> np.uint32(8)
    return crc ^ np.uint32(0xFFFF_FFFF)


def tf_records(handle: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Number (from 1) and content of every record; None for those too long to hold numbers."""
    buffer, begun = b"", 0
    while more := handle.read(AT_ONCE):
        buffer += more
        starts, sizes, used = _frames(buffer)
        good = _checked(buffer, starts, sizes)
        for start, size in zip(starts[:good], sizes[:good], strict=True):
            begun += 1
            yield begun, buffer[start : start + size] if size <= LONG else None
        if good < len(starts):
            last = good == len(starts) - 1 and used == len(buffer) and not _more(handle)
            said = f"record {begun + 1} does not have its checksum"
            raise TornError(f"{said} and is the last") if last else ValueError(said)
        buffer = buffer[used:]
    if buffer:
        raise TornError(f"the file ends inside record {begun + 1}")


def _frames(buffer: bytes) -> tuple[list[int], list[int], int]:
    """Where the whole records in a buffer begin, their sizes, and the bytes used."""
    starts: list[int] = []
    sizes: list[int] = []
    at = 0
    while at + 12 <= len(buffer):
        size, check = struct.unpack_from("<QI", buffer, at)
        if masked(crc32c(buffer[at : at + 8])) != check:
            raise ValueError("the length of a record does not have its checksum")
        if size > RECORD:
            raise ValueError(f"a record is longer than {RECORD // 2**20} MiB")
        if at + 16 + size > len(buffer):
            break
        starts.append(at + 12)
        sizes.append(int(size))
        at += 16 + int(size)
    return starts, sizes, at


def _checked(buffer: bytes, starts: Sequence[int], sizes: Sequence[int]) -> int:
    """How many records from the front have their checksum; of long ones nothing is taken."""
    flat = np.frombuffer(buffer, dtype=np.uint8)
    good = len(starts)
    for size in {size for size in sizes if size <= LONG}:
        places = np.array([at for at, each in enumerate(sizes) if each == size])
        rows = flat[np.array(starts)[places, None] + np.arange(size + 4)]
        crc = crc32c_rows(rows[:, :size])
        turned = (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(0xA282EAD8)
        wrong = np.flatnonzero(turned != np.ascontiguousarray(rows[:, size:]).view("<u4")[:, 0])
        if len(wrong):
            good = min(good, int(places[wrong[0]]))
    return good
