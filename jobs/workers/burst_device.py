"""The device that a worker computes on, and the meaning of its errors. Callers pass torch in, so that this file imports no packages."""
from __future__ import annotations

import gc
import re
from typing import Any, Optional, Protocol

GIB = float(1 << 30)
MEMORY = re.compile(r"out of memory|_ALLOC_FAILED|Failed to allocate memory|bad allocation|bad_alloc|can't allocate memory", re.I)
DEVICE = re.compile(r"CUDA error|CUDA driver error|CUDNN_STATUS|cuDNN error|CUBLAS_STATUS|CUFFT_|CUSOLVER_|CUSPARSE_|HIP error|"
                    r"device-side assert|no kernel image|NVML", re.I)


class OutOfMemory(Exception):
    """The batch does not fit, even when halved."""


class DeviceLost(Exception):
    """The card's context is lost; only a new process can continue."""


class Unfit(str):
    """Why this card cannot run the installed software, while another may. blame: the value of "unfit" in hello."""
    blame = "card"


class TooSmall(Unfit):
    blame = "memory"


def kind_of(error: BaseException) -> str:
    """"memory": smaller batches may help; "device": the context is lost and with it the process; "other": this input's fault."""
    if isinstance(error, (MemoryError, OutOfMemory)) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if isinstance(error, DeviceLost):
        return "device"
    if isinstance(error, RuntimeError) or type(error).__module__.startswith(("onnxruntime", "torch")):
        if MEMORY.search(str(error)):
            return "memory"
        if DEVICE.search(str(error)) or type(error).__name__ == "AcceleratorError":
            return "device"
    return "other"


class Device(Protocol):
    gpu: Any  # False, or the card's name, as hello says it

    def self_test(self) -> Optional[str]:
        """Returns None, or why this device cannot compute."""

    def release(self) -> None:
        """Returns cached memory to the card. Call it outside `except`: a traceback holds tensors."""

    def total_gib(self) -> float:
        """Returns 0 if there is no memory to probe."""

    def reset_peak(self) -> None: ...

    def peak_gib(self) -> float: ...

    def free_gib(self) -> float: ...

    def facts(self) -> str:
        """What else than the engine decides a measured limit."""


class Cpu:
    gpu: Any = False

    def self_test(self) -> Optional[str]:
        return None

    def release(self) -> None:
        gc.collect()

    def total_gib(self) -> float:
        return 0.0

    def reset_peak(self) -> None:
        pass

    def peak_gib(self) -> float:
        return 0.0

    def free_gib(self) -> float:
        return 0.0

    def facts(self) -> str:
        return "cpu"


def has_kernels(archs: list[str], major: int, minor: int) -> bool:
    """Whether a build for these architectures runs on a card of this capability. Machine code runs on later cards of its major
    number, PTX ("compute_") on all later cards. A suffix ("sm_90a") binds it to one."""
    for arch in archs:
        found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([a-z]?)", arch)
        if not found:
            continue
        kind, a, b, suffix = found[1], int(found[2]), int(found[3]), found[4]
        if (a, b) == (major, minor):
            return True
        if suffix:
            continue
        if kind == "sm" and a == major and b < minor or kind == "compute" and (a, b) < (major, minor):
            return True
    return False


def driver_version(path: str = "/proc/driver/nvidia/version") -> str:
    """Version of NVIDIA's kernel module, such as "570.86.15"; empty if unknown."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", f.read(4096))
    except OSError:
        return ""
    return found[1] if found else ""


class Cuda:
    """The first card that torch sees."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.gpu: Any = "unknown"

    def self_test(self) -> Optional[str]:
        torch = self.torch
        if not torch.cuda.is_available():
            return f"torch {torch.__version__} finds no GPU that CUDA can use"
        self.gpu = torch.cuda.get_device_name(0)
        major, minor = torch.cuda.get_device_capability(0)
        archs = list(torch.cuda.get_arch_list())
        if not has_kernels(archs, major, minor):
            return Unfit(f"torch {torch.__version__} has no kernels for {self.gpu} (sm_{major}{minor}; it has {' '.join(archs)})")
        return self.compute()

    def compute(self) -> Optional[str]:
        """Computes a product with a known result on the card."""
        torch = self.torch
        try:
            a = torch.full((64, 64), 2.0, device="cuda")
            got = float((a @ a).sum().item())
        except RuntimeError as error:
            text = f"{self.gpu} cannot compute: {str(error)[:200]}"
            return Unfit(text) if "no kernel image" in text else text
        return None if got == 64 * 64 * 64 * 4.0 else f"{self.gpu} computes wrongly: {got} instead of {64 * 64 * 64 * 4}"

    def release(self) -> None:
        gc.collect()
        self.torch.cuda.empty_cache()

    def total_gib(self) -> float:
        return self.torch.cuda.mem_get_info()[1] / GIB

    def free_gib(self) -> float:
        """Memory free on the card or cached by torch."""
        cuda = self.torch.cuda
        return (cuda.mem_get_info()[0] + cuda.memory_reserved() - cuda.memory_allocated()) / GIB

    def reset_peak(self) -> None:
        self.torch.cuda.reset_peak_memory_stats()

    def peak_gib(self) -> float:
        return self.torch.cuda.max_memory_allocated() / GIB

    def facts(self) -> str:
        return f"{self.gpu} {self.total_gib():.1f} GiB driver {driver_version() or '?'} torch {self.torch.__version__}"


def in_bfloat16(torch: Any) -> tuple[str, Any, Device]:
    """Returns a language model's device name, its type, and the device. Products that stay in float32 use TF32."""
    torch.set_float32_matmul_precision("high")
    return "cuda", torch.bfloat16, Cuda(torch)
