"""Claims about crashes: a training may be killed at any moment, and goes on as if nothing had happened.

Every kill here is a real one, of a real process. Most of these trainings are forks of a process that has loaded PyTorch
already, which saves two seconds each; nothing else tells them from `python -m seq2seq train`.
"""

from __future__ import annotations

import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from conftest import ROOT, command_environment, in_process, write_base_corpus
from test_resume import assert_same_run

from seq2seq.cli.main import main
from seq2seq.errors import CheckpointError
from seq2seq.runs import RunFolder
from seq2seq.translation.translator import Translator

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")

# 63 updates that are saved, told and validated far more often than anybody would.
OFTEN = (
    "model.dropout=0.2",
    "training.epochs=9",
    "training.checkpoint_every=2",
    "training.validate_every=8",
    "training.log_every=1",
    "training.patience=null",
    "decoding.max_length_ratio=0.1",
)
FEW = (*OFTEN, "training.epochs=1", "training.validate_every=3")

# -- trainings in processes of their own -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """A training that runs now; `poll` gives its status once it has ended, and what it says goes to `output`."""

    pid: int
    output: Path
    poll: Callable[[], int | None]

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8") if self.output.exists() else ""

    def step(self) -> int:
        """The last update that it told of; 0 before the first."""
        return max(map(int, re.findall(r"^step (\d+)  epoch", self.said(), re.MULTILINE)), default=0)

    def runs_until(self, happened: Callable[[], bool]) -> bool:
        """Wait until something has happened; False where the training ended before."""
        latest = time.monotonic() + 120
        while not happened():
            if self.poll() is not None:
                return False
            assert time.monotonic() < latest, self.said()
            time.sleep(0.001)
        return self.poll() is None

    def end(self) -> int:
        """Wait for its end; its status, which is the signal's negative number where one ended it."""
        self.runs_until(lambda: False)
        status = self.poll()
        assert status is not None
        return status

    def send(self, number: signal.Signals) -> int:
        """Send a signal; the status in which the training ends."""
        if self.poll() is None:
            os.kill(self.pid, number)
        return self.end()


class Warm:
    """A process that has loaded everything already, and forks itself into one training after another."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT / "tests"), command_environment()["PYTHONPATH"]])
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import test_crash; test_crash.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=command_environment({"PYTHONPATH": path}),
        )
        self._status: int | None = None

    def start(self, output: Path, *arguments: object, die_before: int = 0, run: Path | None = None) -> Attempt:
        """Begin a training; with `die_before` N it kills itself right before its N-th step of file work in `run`."""
        assert self._process.stdin is not None
        order = {"output": str(output), "argv": list(map(str, arguments)), "die_before": die_before, "run": str(run)}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._status = None
        return Attempt(self._answer(), output, self._poll)

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def _poll(self) -> int | None:
        assert self._process.stdout is not None
        if self._status is None and select.select([self._process.stdout], [], [], 0)[0]:
            self._status = self._answer()
        return self._status

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    """What the warm process does: a line of JSON in, the number of a process out, and its status when it has ended."""
    import torch

    import seq2seq.cli.display
    import seq2seq.cli.signals
    import seq2seq.cli.train
    import seq2seq.training.trainer  # noqa: F401

    torch.optim.Adam([torch.zeros(1)])  # the first one loads a good part of PyTorch
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/task")) == 1, "only a process of one thread can be forked"  # noqa: PTH208
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            _become_the_command(**order)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become_the_command(output: str, argv: list[str], die_before: int, run: str) -> None:
    """In the fork: streams as a shell would give them, then the command."""
    try:
        for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)):
            os.dup2(os.open(name, flags, 0o644), number)
        os.dup2(1, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        steps = _count_file_work(run, die_before)
        status = main(argv)
        print(f"{next(steps) - 1} steps of file work", flush=True)
        os._exit(status)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _count_file_work(run: str, die_before: int) -> Iterator[int]:
    """Count what is opened, made, renamed and removed in a folder, and die before one of these."""
    steps = count(1)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        # What is removed is often named relative to its open folder.
        removed = event in ("os.remove", "os.rmdir")
        ours = removed or (event in ("open", "os.mkdir", "os.rename") and str(arguments[0]).startswith(run))
        if ours and next(steps) == die_before:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return steps


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    """The warm process."""
    process = Warm()
    yield process
    process.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base corpus with tiny.yaml, and beside it a place for runs."""
    return write_base_corpus(tmp_path_factory.mktemp("crash") / "corpus")


def command(corpus: Path, run: Path, settings: Sequence[str]) -> list[str]:
    """The command that a person gives next: a new training, or --resume where a run has begun."""
    # Without a test set, whose translation at the end of each of many small trainings would take most of the time.
    overrides = [word for setting in ("data.test=null", *settings) for word in ("--set", setting)]
    more = ["--resume"] if RunFolder(run).holds_run() else []
    return ["train", str(corpus / "tiny.yaml"), "--run", str(run), *overrides, *more]


def finished(warm: Warm, corpus: Path, run: Path, settings: Sequence[str]) -> Path:
    """The run after a training that nothing disturbed from here on."""
    attempt = warm.start(run.with_suffix(".out"), *command(corpus, run, settings))
    assert attempt.end() == 0, attempt.said()
    return run


@pytest.fixture(scope="module")
def unbroken(warm: Warm, corpus: Path) -> Path:
    """The run that nothing disturbed at all."""
    return finished(warm, corpus, corpus.parent / "unbroken", OFTEN)


def names(run: Path) -> list[str]:
    return sorted(path.relative_to(run).as_posix() for path in run.rglob("*"))


def assert_readable(run: Path) -> str:
    """Holds that all checkpoints of a run are whole, and that it translates if there is one; what it has met."""
    folder = RunFolder(run)
    if not folder.holds_run():
        assert not folder.has("last")
        return "before the run"
    if not folder.has("last"):
        assert not folder.has("best")
        with pytest.raises(CheckpointError, match="There is no checkpoint"):
            Translator.load(run)
        return "before the first checkpoint"
    for name in filter(folder.has, ("last", "best")):
        folder.load(name, with_training=name == "last")
    (translation,) = Translator.load(run, device="cpu").translate(["The dog sees 7 red boats."], beam_size=1)
    assert len(translation.candidates) == 1
    left = [name for name in names(run) if re.search(r"\.(next|before|tmp)$", name)]
    return "in the middle of a save" if left else "between two saves"


def assert_as_if_nothing_had_happened(unbroken: Path, run: Path) -> None:
    assert_same_run(unbroken, run)
    assert names(run) == names(unbroken)  # nothing is left of the crashes


# -- kill -9 at random moments ---------------------------------------------------------------------------------------

MOMENTS = ("start", "preparation", "update", "save", "validation")


def comes(moment: str, attempt: Attempt, run: Path, rng: random.Random, start: float) -> bool:
    """Wait for a random moment of a kind; False where the training ends before it comes."""
    updates, stage = rng.randint(1, 12), rng.choice(["reading", "training the tokenizer", "encoding"])
    longest = {"start": start, "preparation": 0.05, "update": 0.02, "save": 0.01, "validation": 0.15}[moment]
    if moment == "start":
        came = True
    elif moment == "preparation":
        came = attempt.runs_until(lambda: stage in attempt.said() or attempt.step() > 0)
    else:
        came = attempt.runs_until(lambda: attempt.said().count(" tokens/s") >= updates)
    if came and moment == "save":
        came = attempt.runs_until((run / "last.next").exists)
    if came and moment == "validation":
        came = attempt.runs_until(lambda: attempt.step() % 8 == 0)
    time.sleep(rng.uniform(0, longest))
    return came and attempt.poll() is None


def survive(
    kills: int,
    warm: Warm,
    corpus: Path,
    unbroken: Path,
    folder: Path,
    seed: int,
    through_a_shell: Callable[[int], bool],
) -> Counter[str]:
    """Kill trainings and go on with them, beginning new ones as they end; how often what was found afterwards.

    `through_a_shell` says of each attempt whether it is `python -m seq2seq` itself and no fork.
    """
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    moments: list[str] = []
    lives = count()
    run = folder / f"life{next(lives)}"
    for number in count():
        whole = through_a_shell(number)
        arguments, output = command(corpus, run, OFTEN), folder / f"attempt{number}"
        attempt = in_a_shell(output, *arguments) if whole else warm.start(output, *arguments)
        if not moments:
            moments = rng.sample(MOMENTS, len(MOMENTS))
        enough = found.total() == kills
        if not enough and comes(moments.pop(), attempt, run, rng, 2.5 if whole else 0.25):
            attempt.send(signal.SIGKILL)
        status = attempt.end()
        if status == -signal.SIGKILL:
            found[assert_readable(run)] += 1
            continue
        assert status == 0, attempt.said()
        assert_as_if_nothing_had_happened(unbroken, run)
        if enough:
            return found
        run = folder / f"life{next(lives)}"
    raise AssertionError("the loop has no other end")


def in_a_shell(output: Path, *arguments: str) -> Attempt:
    """The command as a shell starts it."""
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "seq2seq", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=command_environment(),
        )
    return Attempt(process.pid, output, process.poll)


@pytest.mark.slow
def test_a_training_killed_again_and_again_goes_on_as_if_nothing_had_happened(
    warm: Warm, corpus: Path, unbroken: Path, tmp_path: Path
) -> None:
    found = survive(10, warm, corpus, unbroken, tmp_path, 5, lambda number: number in (1, 4))
    assert found.total() == 10
    assert len(found) > 1, found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_kills_change_nothing(
    warm: Warm, corpus: Path, unbroken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    found = survive(120, warm, corpus, unbroken, tmp_path, 17, lambda number: number % 10 == 0)
    with capsys.disabled():
        told = ", ".join(f"{times} {where}" for where, times in found.most_common())
        print(f"\n{found.total()} kills survived in {time.monotonic() - began:.0f} seconds: {told}")
    assert len(found) == 4


# -- kill -9 before each step of the file work -----------------------------------------------------------------------


def assert_survives_a_kill_before(steps: Sequence[int], whole: Path, warm: Warm, corpus: Path, folder: Path) -> None:
    for step in steps:
        run = folder / f"killed{step}"
        arguments = command(corpus, run, FEW)
        attempt = warm.start(run.with_suffix(".killed"), *arguments, die_before=step, run=run)
        assert attempt.end() == -signal.SIGKILL, attempt.said()
        assert_readable(run)
        finished(warm, corpus, run, FEW)
        assert_as_if_nothing_had_happened(whole, run)


def file_work(warm: Warm, corpus: Path, run: Path) -> int:
    """How many steps of file work a short training takes, which is left in `run`."""
    attempt = warm.start(run.with_suffix(".out"), *command(corpus, run, FEW), run=run)
    assert attempt.end() == 0, attempt.said()
    return int(re.findall(r"(\d+) steps of file work", attempt.said())[0])


def test_a_kill_before_any_step_of_the_file_work_changes_nothing(warm: Warm, corpus: Path, tmp_path: Path) -> None:
    total = file_work(warm, corpus, tmp_path / "whole")
    assert total > 100
    chosen = random.Random(3).sample(range(1, total + 1), 4)
    assert_survives_a_kill_before(chosen, tmp_path / "whole", warm, corpus, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_kill_before_every_step_of_the_file_work_changes_nothing(
    warm: Warm, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    total = file_work(warm, corpus, tmp_path / "whole")
    assert_survives_a_kill_before(range(1, total + 1), tmp_path / "whole", warm, corpus, tmp_path)
    with capsys.disabled():
        print(f"\na kill before each of {total} steps of file work survived in {time.monotonic() - began:.0f} seconds")


class Crashed(BaseException):
    """The end of a process, for what has to happen at one certain line."""


@pytest.mark.parametrize("name", ["best", "last"])
def test_a_validation_that_was_told_and_not_saved_is_told_once(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settings = ("model.dropout=0.2", "training.epochs=1", "training.log_every=1")
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert in_process(*command(corpus, whole, settings)).status == 0
    save, saves = RunFolder.save, Counter[str]()

    def crashing(self: RunFolder, checkpoint: str, *arguments: object, **named: object) -> None:
        saves[checkpoint] += 1
        # The first `last` is there before the validation begins, the second one says that it is done.
        if checkpoint == name and saves[checkpoint] == {"best": 1, "last": 2}[name]:
            raise Crashed
        save(self, checkpoint, *arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save", crashing)
        with pytest.raises(Crashed):
            in_process(*command(corpus, run, settings))
    done = in_process(*command(corpus, run, settings))
    assert done.status == 0, done.err
    assert_as_if_nothing_had_happened(whole, run)


@pytest.mark.parametrize("state", ["there", "next", "before"])
def test_a_resume_puts_right_what_crashes_have_left(
    warm: Warm, corpus: Path, unbroken: Path, tmp_path: Path, state: str
) -> None:
    run = Path(shutil.copytree(unbroken, tmp_path / "run"))
    for name in (".config.yaml.12.tmp", ".metrics.jsonl.345.tmp"):
        (run / name).write_bytes(b"half")
    for name in ("last.next", "last.before", "best.next", "best.before"):
        shutil.copytree(run / name.split(".")[0], run / name)
    (run / "best.next" / "checkpoint.json").unlink()
    if state != "there":  # the crash came between two renames
        shutil.rmtree(run / "last")
    if state == "before":
        (run / "last.next" / "checkpoint.json").unlink()
    finished(warm, corpus, run, OFTEN)
    assert_as_if_nothing_had_happened(unbroken, run)


# -- interruptions of every kind -------------------------------------------------------------------------------------


def has_come(attempt: Attempt, step: int) -> bool:
    return attempt.step() >= step if step else "reading the corpora" in attempt.said()


def interrupted(
    start: Callable[[Path], Attempt], run: Path, kind: signal.Signals, step: int, rng: random.Random
) -> tuple[Attempt, int]:
    """A training that gets a signal soon after a step, and the status in which it ends.

    On a busy machine it may be over before the signal can reach it. Then it is as if it had not been, and begins anew.
    """
    for chance in range(5):
        before = shutil.copytree(run, run.with_name(f"before{step}-{chance}")) if run.exists() else None
        attempt = start(run.with_name(f"attempt{step}-{chance}"))
        attempt.runs_until(partial(has_come, attempt, step))
        time.sleep(rng.uniform(0, 0.02))
        if (status := attempt.send(kind)) != 0:
            break
        shutil.rmtree(run)
        if before is not None:
            before.rename(run)
    return attempt, status


STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        (*OFTEN, "model.dropout=0.3"),
        pytest.param(
            (
                *OFTEN,
                "training.accumulate=2",
                "training.batch_tokens=200",
                "training.schedule=plateau",
                "training.plateau_patience=0",
                "training.choose_by=loss",
                "training.learning_rate=0.1",
                "training.validate_every=6",
                "training.checkpoint_every=5",
            ),
            marks=pytest.mark.long,
        ),
    ],
    ids=["dropout", "accumulated_plateau"],
)
def test_twelve_interruptions_of_every_kind_change_nothing(
    warm: Warm, corpus: Path, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    rng = random.Random(settings[-1])
    whole, run = finished(warm, corpus, tmp_path / "whole", settings), tmp_path / "run"
    kinds = [*STATUS, None] * 3  # None: training.max_steps
    rng.shuffle(kinds)
    steps = int(re.findall(r'"step": (\d+)', (whole / "metrics.jsonl").read_text(encoding="utf-8"))[-1])
    assert steps > 60
    for number, (kind, step) in enumerate(zip(kinds, sorted(rng.sample(range(1, steps - 12), 12)), strict=True)):
        if kind is None:
            limited = (*settings, f"training.max_steps={step}")
            attempt = warm.start(tmp_path / f"attempt{number}", *command(corpus, run, limited))
            assert attempt.end() == 0, attempt.said()
            continue
        # The first one comes before there is a run.
        attempt, status = interrupted(
            lambda output: warm.start(output, *command(corpus, run, settings)), run, kind, step if number else 0, rng
        )
        assert status == STATUS[kind], attempt.said()
        assert "Traceback" not in attempt.said()
        assert_readable(run)
    finished(warm, corpus, run, settings)
    assert_as_if_nothing_had_happened(whole, run)
