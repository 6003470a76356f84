"""Claims about sums in shared memory: those of PyTorch's own messages, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import command_environment

from seq2seq.training.shared_memory import shared_sums
from seq2seq.training.team import ALONE, Team

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not Path("/dev/shm").is_dir(), reason="needs processes and /dev/shm"
)
PROGRAM = """
import sys, torch, torch.distributed as dist
from pathlib import Path
from seq2seq.training import shared_memory
from seq2seq.training.team import joined

with joined("cpu") as team:
    shared_memory._FOLDER = Path(sys.argv[1])
    sums = shared_memory.shared_sums(team, 1007)
    if not shared_memory._FOLDER.is_dir():
        assert sums is None
    else:
        torch.manual_seed(team.rank)
        for turn in range(20):
            parts, counts = [torch.randn(1000), torch.randn(7, 1)], torch.tensor([1.0 + team.rank, turn])
            expected = torch.cat([part.flatten() for part in parts])
            dist.all_reduce(expected)
            found = sums.add_up(parts, counts)
            torch.testing.assert_close(found, expected)
            assert counts.tolist() == [6.0, 3.0 * turn]
            everyone = team.collect(found.clone())
            found *= 0.5  # what one process does with its sums the others do not see
            team.wait()
            torch.testing.assert_close(found, 0.5 * expected)
            assert all(torch.equal(everyone[0], other) for other in everyone)
"""


def run(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    environment = command_environment({"OMP_NUM_THREADS": "1"})
    done = subprocess.run(
        [*launcher, str(tmp_path / "program.py"), str(folder)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_sums_are_those_of_messages_and_the_same_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    run(tmp_path, folder)
    assert not any(folder.iterdir()), "the file has no name any more"


@pytest.mark.long
def test_without_such_memory_all_of_them_do_without(tmp_path: Path) -> None:
    run(tmp_path, tmp_path / "nowhere")


def test_one_process_or_several_machines_share_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_sums(ALONE, 10) is None
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert shared_sums(Team(0, 4), 10) is None
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    assert shared_sums(Team(0, 4), 10) is None
