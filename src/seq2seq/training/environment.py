"""What a run ran on: memory, versions, and the state of the code."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

try:
    import resource
except ImportError:  # not on Windows
    resource = None

PACKAGES = ("torch", "lightning", "torchmetrics", "sacrebleu", "sentencepiece", "babel")
PACKAGE_FOLDER = Path(__file__).parents[1]
PATIENCE_S = 10.0
MIB = 2**20


def environment(device: torch.device) -> dict[str, Any]:
    """Peak memory, versions and commit, in JSON types.

    ``peak_mib`` is the most memory that this process has held at once so far; on a CUDA device, ``peak_gpu_mib`` is the most
    that its tensors have held there.
    """
    gpu = {"peak_gpu_mib": torch.cuda.max_memory_allocated(device) / MIB} if device.type == "cuda" else {}
    return {
        "peak_mib": peak_mib(),
        **gpu,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "git_commit": git_commit(),
    }


def peak_mib() -> float | None:
    """The largest resident size of this process until now; None where the system does not keep it."""
    try:
        # On Linux the process's own; what getrusage tells there begins with the size of whoever started the process.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        pass
    if resource is None:
        return None
    # The unit is the kernel's: bytes on macOS, KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB


def git_commit(folder: Path = PACKAGE_FOLDER) -> str | None:
    """The commit of the code in ``folder``, with ``-dirty`` if a file that git tracks was changed since.

    None if git is missing, or if the folder is not part of a repository, as for an installed package.
    """
    # A package installed in an ignored folder of some repository does not come from that repository.
    if not _git(folder, "ls-files", "--", "."):
        return None
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    lines = status.splitlines()
    commit = next(line.rpartition(" ")[2] for line in lines if line.startswith("# branch.oid "))
    if commit == "(initial)":  # nothing was committed yet
        return None
    return commit + ("-dirty" if any(not line.startswith("#") for line in lines) else "")


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None if it fails. Takes no lock, so that it disturbs no other git."""
    # Set inside of a git hook, such variables would name another repository.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
