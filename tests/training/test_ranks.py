"""What several processes found, brought together by real processes."""

import json
import os
from pathlib import Path

import torch.distributed
import torch.multiprocessing

from seq2seq.training.ranks import merged

WORLD = 2


def _work(rank: int, folder: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    found = merged(dict.fromkeys(range(rank, 5, WORLD), f"from {rank}"))
    Path(folder, f"{rank}.json").write_text(json.dumps(sorted(found.items())))
    torch.distributed.destroy_process_group()


def test_every_rank_gets_the_entries_of_all(tmp_path):
    torch.multiprocessing.spawn(_work, (str(tmp_path),), nprocs=WORLD)
    expected = [[place, f"from {place % WORLD}"] for place in range(5)]
    assert [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(WORLD)] == [expected] * WORLD


def test_alone_a_process_gets_its_own():
    assert merged({1: "a"}) == {1: "a"}
