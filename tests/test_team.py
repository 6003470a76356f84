"""Claims about several processes: together they are one training, and it outlives any of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from conftest import ROOT, command_environment, in_process
from safetensors.torch import load_file

from seq2seq.errors import DeviceError
from seq2seq.training import team as team_room
from seq2seq.training.team import Team, joined

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or os.name != "posix", reason="PyTorch was built without processes"
)
# The sums of two processes are added in another order than those of one, and no random number is drawn twice alike. The
# gradients are clipped, which each process does for itself.
SETTINGS = (
    "model.dropout=0",
    "data.test=null",
    "training.epochs=3",
    "training.batch_tokens=300",
    "training.clip_norm=0.2",
)


def torchrun(processes: int, folder: Path, run: str, *settings: str, restarts: int = 0) -> subprocess.Popen[str]:
    """torchrun of scripts/train.py; `--run` would be taken for an option of torchrun's own."""
    arguments = [word for setting in (f"run={folder / run}", *SETTINGS, *settings) for word in ("--set", setting)]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    launcher += ["--max-restarts", str(restarts)]
    return subprocess.Popen(
        [sys.executable, *launcher, str(ROOT / "scripts" / "train.py"), str(folder / "tiny.yaml"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=command_environment({"OMP_NUM_THREADS": "1"}),
    )


def alone(folder: Path, run: str, *settings: str) -> Path:
    arguments = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
    done = in_process("train", folder / "tiny.yaml", "--run", folder / run, *arguments)
    assert done.status == 0, done.err
    return folder / run


def losses(run: Path) -> list[float]:
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [event["loss"] for event in events if "loss" in event]


def same_run(one: Path, other: Path) -> None:
    """The same story and the same weights, but for rounding."""
    assert losses(one) == pytest.approx(losses(other), abs=2e-4)
    first, second = (load_file(run / "last" / "weights.safetensors") for run in (one, other))
    for name, weight in first.items():
        torch.testing.assert_close(weight, second[name], rtol=0, atol=2e-3, msg=name)


@pytest.mark.parametrize(
    ("processes", "each", "whole", "more"),
    [
        (2, 2, 4, ()),
        pytest.param(3, 1, 3, (), marks=pytest.mark.long),
        pytest.param(2, 1, 2, ("training.epochs=1", "training.risk_epochs=1"), marks=pytest.mark.long),
    ],
)
def test_several_processes_are_one_with_the_whole_batch(
    tiny: Path, processes: int, each: int, whole: int, more: tuple[str, ...]
) -> None:
    together = torchrun(processes, tiny, "together", f"training.accumulate={each}", *more)
    out, _ = together.communicate(timeout=200)
    assert together.returncode == 0, out
    assert out.count("encoding the training pairs") == 1, "one of them speaks"
    same_run(tiny / "together", alone(tiny, "alone", f"training.accumulate={whole}", *more))


@pytest.mark.long
def test_a_process_that_dies_is_replaced_and_the_training_goes_on(tiny: Path) -> None:
    settings = ("training.checkpoint_every=1", "training.epochs=12", "training.patience=null")
    together = torchrun(2, tiny, "together", *settings, restarts=3)
    children = Path(f"/proc/{together.pid}/task/{together.pid}/children")
    deadline = time.monotonic() + 100
    while not (tiny / "together" / "last").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    victim = int(children.read_text().split()[-1])
    os.kill(victim, signal.SIGKILL)
    out, _ = together.communicate(timeout=300)
    assert together.returncode == 0, out
    assert out.count("reading the corpora") == 2, "it began twice"
    story = [json.loads(line) for line in (tiny / "together" / "metrics.jsonl").read_text().splitlines()]
    assert [event["step"] for event in story] == sorted(event["step"] for event in story)
    same_run(tiny / "together", alone(tiny, "alone", *settings, "training.accumulate=2"))


def test_a_mistake_is_told_once_and_ends_all(tiny: Path) -> None:
    together = torchrun(2, tiny, "together", "data.train.source=/nowhere")
    out, _ = together.communicate(timeout=100)
    assert together.returncode != 0
    assert out.count("seq2seq: ") == 1
    assert not (tiny / "together").exists()


# -- what needs no second process ------------------------------------------------------------------------------------


def test_a_team_of_one_adds_and_shares_nothing() -> None:
    with joined("auto") as team:
        assert team == Team()
        number = torch.tensor([3.0])
        team.add_up(number)
        team.wait()
        assert number.item() == 3.0
        assert team.collect("x") == ["x"]
        assert team.share([1, 2, 3]) == [1, 2, 3]
        assert team.device("cuda:1") == "cuda:1"


def test_work_is_shared_out_without_a_gap() -> None:
    parts = [Team(rank, 3).share(list(range(10))) for rank in range(3)]
    assert sorted(number for part in parts for number in part) == list(range(10))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_processes_that_begin_anew_do_not_find_the_addresses_of_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchrun (2.13) serves one store to all restarts; gloo and NCCL read from it where the others listen."""
    agent = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    environment = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    environment |= {"MASTER_PORT": str(agent.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    stores = []
    monkeypatch.setattr(team_room.dist, "init_process_group", lambda *_, store, **_more: stores.append(store))
    monkeypatch.setattr(team_room.signal, "signal", lambda *_: None)
    for restart in range(2):
        for name, value in (environment | {"TORCHELASTIC_RESTART_COUNT": str(restart)}).items():
            monkeypatch.setenv(name, value)
        with contextlib.suppress(AssertionError, ValueError), joined("cpu") as team:  # there is no group to leave
            assert team.restarts == restart
            assert not stores[-1].check(["address"])
            stores[-1].set("address", "where it listened")
            assert stores[-1].check(["address"])
    assert len(stores) == 2


@pytest.mark.parametrize("device", ["mps", "cuda:1"])
def test_a_device_that_cannot_be_shared_is_refused(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DeviceError, match=f"training.device {device}"), joined(device):
        pass


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(team_room.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(team_room.torch.cuda, "device_count", lambda: 1)
    with pytest.raises(DeviceError, match="there are 1 GPUs"), joined("auto"):
        pass
