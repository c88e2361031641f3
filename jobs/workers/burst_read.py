"""Reads files of weights in several threads, starting before Python imports torch.

A network volume has a high latency but serves many reads at once: eight threads read blocks of 16 MB, while a memory map reads one
page after the other. The tensors of a safetensors file are views of the bytes read; torch.load() reads other formats. bare() makes
the model, so that no random numbers are drawn for weights that are replaced at once.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import io
import json
import os
from typing import Any, Callable, Iterator, Optional, Sequence
from unittest import mock

BLOCK_BYTES = 16 << 20
THREADS = 8
HEADER_MOST = 100 << 20

# The types that a file may hold, by their names in its header.
TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
         "I8": "int8", "U8": "uint8", "BOOL": "bool"}


class BadFile(OSError):
    """The file holds no weights, or it is truncated."""


def read_block(fd: int, view: memoryview, at: int) -> None:
    while len(view):
        got = os.preadv(fd, [view], at)
        if not got:
            raise BadFile("the file became shorter while it was read")
        view, at = view[got:], at + got


class Reader:
    """Reads all files at once, starting now. The first ones complete first."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        self.files: dict[str, tuple[bytearray, list[concurrent.futures.Future[None]]]] = {}
        self.descriptors: list[int] = []
        for path in paths:
            self.start(path)

    def start(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.descriptors.append(fd)
        data = bytearray(os.fstat(fd).st_size)
        view = memoryview(data)
        self.files[path] = data, [self.pool.submit(read_block, fd, view[at:at + BLOCK_BYTES], at) for at in range(0, len(data), BLOCK_BYTES)]

    def data(self, path: str) -> bytearray:
        """Waits for the whole file. The caller owns the memory from then on."""
        data, blocks = self.files.pop(path)
        for block in blocks:
            block.result()
        return data

    def tensors(self, path: str) -> dict[str, Any]:
        """Returns the file's tensors by name. BadFile names the file."""
        try:
            return parse(self.data(path))
        except (ValueError, KeyError, TypeError, BadFile) as error:
            raise BadFile(f"{path} is not a file of weights: {error}") from error

    def close(self) -> None:
        self.pool.shutdown()
        for fd in self.descriptors:
            os.close(fd)
        self.descriptors.clear()


class Coming(io.RawIOBase):
    """A file that waits for its bytes at the first read."""

    def __init__(self, come: Callable[[], bytearray]) -> None:
        self.come: Optional[Callable[[], bytearray]] = come
        self.bytes, self.at = memoryview(b""), 0

    def there(self) -> memoryview:
        if self.come:
            come, self.come = self.come, None
            self.bytes = memoryview(come())
        return self.bytes

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: len(self.there())}[whence]
        self.at = max(0, base + offset)
        return self.at

    def tell(self) -> int:
        return self.at

    def readinto(self, into: Any) -> int:
        part = self.there()[self.at:self.at + len(into)]
        into[:len(part)] = part
        self.at += len(part)
        return len(part)


def parse(data: bytearray) -> dict[str, Any]:
    """The format safetensors: 8 bytes with the header's length, little-endian; the header, in JSON; then the data."""
    import torch

    if len(data) < 8:
        raise BadFile("it is too short")
    length = int.from_bytes(data[:8], "little")
    if not 0 < length <= min(HEADER_MOST, len(data) - 8):
        raise BadFile("its header does not fit")
    header, body = json.loads(bytes(data[8:8 + length])), 8 + length
    if not isinstance(header, dict):
        raise BadFile("its header is not a list of tensors")
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        first, last = about["data_offsets"]
        kind = getattr(torch, TYPES[about["dtype"]])
        count = 1
        for n in about["shape"]:
            count *= n
        if not 0 <= first <= last <= len(data) - body or count * kind.itemsize != last - first:
            raise BadFile(f"{name} does not fit")
        flat = torch.frombuffer(data, dtype=kind, count=count, offset=body + first) if count else torch.empty(0, dtype=kind)
        tensors[name] = flat.view(about["shape"])
    return tensors


DRAWS = ("normal_", "uniform_", "trunc_normal_", "exponential_")


@contextlib.contextmanager
def bare() -> Iterator[None]:
    """Modules made inside draw no random numbers for their weights. Their memory stays untouched until assign()."""
    import torch

    def untouched(tensor: Any, *_: Any, **__: Any) -> Any:
        return tensor

    with contextlib.ExitStack() as stack:
        for name in DRAWS:
            if hasattr(torch.Tensor, name):
                stack.enter_context(mock.patch.object(torch.Tensor, name, untouched))
        yield


def assign(module: Any, tensors: dict[str, Any]) -> None:
    """Puts the tensors into a module made inside bare(). BadFile names a weight without a tensor. Ignores further tensors, as the
    published code does."""
    found = module.load_state_dict(tensors, strict=False, assign=True)
    own = {name for name, _ in module.named_parameters()}
    missing = [name for name in found.missing_keys if name in own]
    if missing:
        raise BadFile(f"the weights lack {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}")
    module.eval().requires_grad_(False)
