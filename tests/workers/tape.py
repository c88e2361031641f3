"""tape.py - records a step on the processor as a CUDA graph would on a card, in place of burst_graphs.CudaTape: each operation with the
very tensors that it read. A replay runs the same operations on the same tensors; whatever Python knew is as it was when the step was
recorded. What a card cannot record is an error here too: reading a number on the host, and tensors made from the host's numbers."""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

HOST = ("_local_scalar_dense", "lift_fresh", "lift", "item", "is_nonzero", "nonzero", "masked_select", "equal", "_unique2")


def tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Callable[..., Any], Any, Any, list[torch.Tensor]]] = []  # keeps all alive: no address is used twice
        self.made: set[int] = set()
        self.found: dict[int, torch.Tensor] = {}             # what was there before, by address
        self.written: dict[int, tuple[Any, Any]] = {}        # of that, what was written: its storage and what that held

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.split("::")[1]
        if name in HOST:
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        for tensor in tensors((args, kwargs)):
            if address(tensor) not in self.made:
                self.found[address(tensor)] = tensor
        for given, value in zip(func._schema.arguments, args):
            if given.alias_info and given.alias_info.is_write and isinstance(value, torch.Tensor):
                self.keep(value)
        out = func(*args, **(kwargs or {}))
        for tensor in tensors(out):
            if address(tensor) not in self.found:
                self.made.add(address(tensor))
        self.calls.append((func, args, kwargs or {}, tensors(out)))
        return out

    def keep(self, tensor: torch.Tensor) -> None:
        at = address(tensor)
        if at not in self.made and at not in self.written:
            self.written[at] = tensor.untyped_storage(), tensor.untyped_storage().clone()

    def undo(self) -> None:
        for storage, held in self.written.values():
            storage.copy_(held)

    def replay(self) -> None:
        now: dict[int, torch.Tensor] = {}

        def value(leaf: Any) -> Any:
            return now.get(id(leaf), leaf)

        for func, args, kwargs, out in self.calls:
            again = func(*tree_map(value, args), **tree_map(value, kwargs))
            now.update((id(was), tensor) for was, tensor in zip(out, tensors(again)))


class CpuTape:
    """Keeps its recordings, so that a test can see what they have read."""

    def __init__(self) -> None:
        self.recordings: list[Recording] = []
        self.free = 100.0

    def run(self, step: Callable[[], None]) -> None:
        step()

    def record(self, step: Callable[[], None]) -> Callable[[], None]:
        recording = Recording()
        try:
            with recording:
                step()
        finally:
            recording.undo()
        self.recordings.append(recording)
        return recording.replay

    def check(self) -> None:
        pass

    def clear(self) -> None:
        self.recordings.clear()

    def free_gib(self) -> float:
        return self.free

    def shared_gib(self) -> float:
        return 0.5

    def each_gib(self) -> float:
        return 0.25
