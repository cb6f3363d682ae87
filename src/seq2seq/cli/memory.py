"""The process's memory: freed blocks kept for the next ones, few prepared products, each run's peak counted by itself."""

import ctypes
import gc
import os
import platform
from pathlib import Path

import torch

# <malloc.h>
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER = 2**31 - 1
PREPARATIONS = 32
CLEAR_REFS, RESET_PEAK = Path("/proc/self/clear_refs"), "5"  # proc_pid_clear_refs(5)


def keep_few_preparations() -> None:
    """Bounds what torch's CPU library keeps of the matrix products it has prepared, one for each shape it has met.

    Batches of sentences have ever new shapes, of which it would keep a thousand, gigabytes in all; preparing one anew costs
    next to nothing. It has an effect before the first product only; who sets these variables by hand is left alone.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(PREPARATIONS))


def keep_freed_memory() -> bool:
    """Lets the C library keep the memory of freed tensors for the next ones. Returns whether it does.

    By default glibc hands large blocks back at once, and the system clears each page of the next one: a sixth of the time of
    a training step on a CPU, which makes and frees hundreds of megabytes. It has no effect on other C libraries.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, NEVER))


def forget_peak() -> None:
    """Starts the record of the largest resident size anew, so that a run of a sweep does not count the runs before it.

    What they have freed goes back to the system first. It has no effect on systems without ``/proc``.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
    try:
        CLEAR_REFS.write_text(RESET_PEAK)
    except OSError:
        return
