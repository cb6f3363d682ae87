"""Systems: runs that differ in their seed alone are replicates of one system, named after what sets it apart."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seq2seq.errors import ConfigError
from seq2seq.report.runs import Run
from seq2seq.report.settings import PLACES

BASELINE = "none"
# Settings that say where and how a run ran, not what was trained; the attention and the seed have fields of their own.
NOT_A_DIFFERENCE = re.compile(
    rf"attention|(.*\.)?seed|{PLACES}"
    r"|(experiment|debug|recipe|trainer|logger|hydra/.*)"
    r"|trainer\.(devices|accelerator|num_nodes|strategy|log_every_n_steps|enable_.*|profiler.*)|logger\..*"
    r"|callbacks\.(progress|samples|learning_rate|results|probing|start)\b.*|datamodule\.(workers|evaluation_.*)"
)
# What an attention is made of follows from its name unless it was changed.
OF_ATTENTION = re.compile(r"(model\.decoder\.)?attention\..*")


@dataclass(frozen=True, eq=False)
class System:
    """Replicates of one setting.

    Args:
        attention: the family's member.
        variant: what else sets it apart, such as ``hidden_size=64``; empty if nothing does.
        runs: by seed, each seed once.
        settings: the variant by its parts, name and value.
    """

    attention: str
    variant: str
    runs: tuple[Run, ...]
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.attention} {self.variant}".strip()

    def probes(self) -> list[Mapping[str, np.ndarray]]:
        """Of the runs that have them."""
        return [run.probes for run in self.runs if run.probes is not None]

    def paired(self, other: "System") -> list[tuple[Run, Run]]:
        """This system's runs with the other's, same seed with same seed."""
        others = {run.seed: run for run in other.runs}
        return [(run, others[run.seed]) for run in self.runs if run.seed in others]


def group(runs: Sequence[Run]) -> list[System]:
    """Systems, ``none`` first, then by name with numbers in their order.

    Raises:
        ConfigError: two runs have the same setting and the same seed.
    """
    settings = [_settings(run) for run in runs]
    telling = _telling(runs, settings)
    groups: dict[tuple[str, str], dict[int, Run]] = {}
    variants: dict[str, tuple[tuple[str, str], ...]] = {}
    for run, setting in zip(runs, settings, strict=True):
        parts = tuple((name, setting[name]) for name in telling if name in setting)
        variant = " ".join(f"{name}={value}" for name, value in parts)
        variants[variant] = parts
        replicates = groups.setdefault((run.attention, variant), {})
        if run.seed in replicates:
            raise ConfigError(
                f"{replicates[run.seed].folder} and {run.folder} are both {run.attention} {variant}".rstrip()
                + f" with seed {run.seed}; leave one out"
            )
        replicates[run.seed] = run
    ordered = sorted(groups, key=lambda key: (key[0] != BASELINE, key[0], _numbers(key[1])))
    return [System(*key, tuple(groups[key][seed] for seed in sorted(groups[key])), variants[key[1]]) for key in ordered]


def baselines(systems: Sequence[System], wanted: str | None = None) -> dict[str, System]:
    """What each system is compared to, by the system's name; a system without a counterpart is not in it.

    The counterpart has the same variant (``scaled hidden_size=64`` and ``none hidden_size=64``). Where there is none, it is
    called exactly as wanted, or is the only system with the attention that is wanted.

    Args:
        systems: all of them.
        wanted: an attention or a system's name; None stands for ``none`` and may be missing.

    Raises:
        ConfigError: what is wanted does not exist.
    """
    name = BASELINE if wanted is None else wanted
    if wanted is not None and name not in {part for system in systems for part in (system.attention, system.name)}:
        raise ConfigError(f"--baseline {wanted}: no such system; there are {', '.join(each.name for each in systems)}")
    found = {}
    for system in systems:
        others = [each for each in systems if each is not system and system.paired(each)]
        twins = [each for each in others if each.attention == name and each.variant == system.variant]
        plain = [each for each in others if each.name == name]
        only = [each for each in systems if each.attention == name]
        for other in [*twins, *plain, *(only if len(only) == 1 and only[0] in others else [])][:1]:
            found[system.name] = other
    return found


def _telling(runs: Sequence[Run], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The fewest settings that tell the runs apart: what follows from those already taken is left out.

    A size that is written at the top and used in several parts of the model is one difference, and so are the parts that a
    choice brings along. A run that did not write down its settings differs from the others in nothing that can be named.
    """
    known = [
        (run, setting) for run, setting in zip(runs, settings, strict=True) if run.settings or run.scores.get("choices")
    ]
    taken: list[str] = []
    names = list(dict.fromkeys(name for _, setting in known for name in setting))
    for name in sorted(names, key=lambda name: (name.count("."), names.index(name))):
        seen: dict[tuple[str | None, ...], str | None] = {}
        for run, setting in known:
            given = tuple(setting.get(each) for each in taken)
            if OF_ATTENTION.fullmatch(name):
                given += (run.attention,)
            # A part that was put into another one says what that one is made of, even if only one run has it.
            inside = "@" in name and setting.get(name) != known[0][1].get(name)
            if inside or seen.setdefault(given, setting.get(name)) != setting.get(name):
                taken.append(name)
                break
    return sorted(taken, key=names.index)


def _settings(run: Run) -> Mapping[str, str]:
    """Choices first, as their names say most."""
    chosen = {name: str(value) for name, value in (run.scores.get("choices") or {}).items() if value is not None}
    settings = chosen | run.settings
    return {name: value for name, value in settings.items() if not NOT_A_DIFFERENCE.fullmatch(name)}


def _numbers(text: str) -> list[tuple[float, str]]:
    parts = re.split(r"(\d+\.?\d*)", text)
    return [(float(part), "") if place % 2 else (-1.0, part) for place, part in enumerate(parts)]
