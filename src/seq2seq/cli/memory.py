"""Memory that is given back to the process instead of to the system."""

import ctypes
import platform

# <malloc.h>
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Lets the C library keep the memory of freed tensors for the next ones. Returns whether it does.

    By default glibc hands large blocks back at once, and the system clears each page of the next one: a sixth of the time of
    a training step on a CPU, which makes and frees hundreds of megabytes. It has no effect on other C libraries.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, NEVER))
