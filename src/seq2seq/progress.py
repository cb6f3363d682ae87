"""How far a long pass over many things has come."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, unit: str, shared: bool = False) -> Iterator[Callable[[int], None]]:
    """A moving count on standard error where that is a terminal; yields what takes the number of things just done.

    Args:
        what: is done.
        unit: of what is counted.
        shared: standard output is written meanwhile: where that is a terminal, too, there is no count to write over.
    """
    if sys.stderr is None or not sys.stderr.isatty() or (sys.stdout is not None and sys.stdout.isatty() and shared):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,}"),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda count: shown.advance(task, count)
