"""Claims about sameness: a translation follows from its line and the model, a training from its settings and its text.

Batches, neighbours, order, the way in and out, hash seeds, locale, time zone, folder: nothing of that has a part. In
fp32 sums that are added in another order differ in the last bits, so a translation may differ where the two best scores
are within 1e-5 of one another, and nowhere else.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from conftest import Finished, command_environment, in_process, numbered_pairs, run_python, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_resume import told

from seq2seq.config.schema import DataConfig, DecodingConfig, ModelConfig
from seq2seq.corpus.batches import collate, collate_sources
from seq2seq.corpus.encoded import EncodedCorpus, EncodedSide
from seq2seq.corpus.tokenizer import BOS, EOS
from seq2seq.model.attention import KINDS
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.translation.translator import Translation, Translator

posix_only = pytest.mark.skipif(os.name != "posix", reason="pipes and shells of POSIX")
SOURCES = [source for source, _ in numbered_pairs(20, first=181)]
CLOSE = 1e-5  # scores nearer than this may change places
# Ids of text are below V; a model may know more, since the best words of a large vocabulary are found in another way.
V, VOCABULARIES = 23, (23, 300, 1400)
FORMS = {
    "after": {"kind": "parallel", "attend": "after"},
    "between": {"kind": "parallel", "attend": "between"},
    "step": {"kind": "step"},
}
each_form = pytest.mark.parametrize("form", FORMS)
each_kind = pytest.mark.parametrize("kind", KINDS)


# ---- a translation depends on its line and the model


class Numbers:
    """A tokenizer whose text is the ids themselves, so that a translation says what the search found."""

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in texts]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [f"▁{i}" for i in ids]

    def decode_target(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))


def opinionated(
    kind: str, form: str, *, seed: int, size: int = 8, layers: int = 1, vocabulary: int = V, lexical: bool = False
) -> TranslationModel:
    """A small model with weights that make it say different things of different lines."""
    decoder_layers = layers + 1 if form == "between" else layers
    config = ModelConfig.model_validate(
        {
            "embedding_size": size + 4,
            "hidden_size": size,
            "encoder": {"layers": layers},
            "decoder": {**FORMS[form], "layers": decoder_layers},
            "attention": {"kind": kind, "heads": 2},
            "lexical_model": lexical,
            "tie_embeddings": "all",
        }
    )
    model = build_model(config, vocabulary, vocabulary, seed=seed).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.0
    return model


def translator_of(model: TranslationModel, *, longest: int = 100) -> Translator:
    pair = {"source": "a", "target": "b"}
    languages = {"source_language": "en", "target_language": "de", "max_length": longest}
    data = DataConfig.model_validate({**languages, "train": pair, "validation": pair})
    decoding = DecodingConfig(max_length_ratio=0.5)
    return Translator(model, Numbers(), decoding, data, torch.device("cpu"))  # type: ignore[arg-type]


@st.composite
def small_models(draw: st.DrawFn, kind: str, form: str) -> TranslationModel:
    return opinionated(
        kind,
        form,
        seed=draw(st.integers(0, 2**31)),
        size=draw(st.sampled_from([4, 8, 12, 24, 48])),
        layers=draw(st.integers(1, 2)),
        vocabulary=draw(st.sampled_from(VOCABULARIES)),
        lexical=draw(st.booleans()),
    )


some_lines = st.lists(st.lists(st.integers(4, V - 1), min_size=1, max_size=14), min_size=2, max_size=6, unique_by=tuple)


def hold_in_company(kind: str, form: str, examples: int) -> None:
    """Every line alone, and the same lines in some company; so many examples."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        model=small_models(kind, form),
        rows=some_lines,
        beam=st.integers(1, 5),
        n_best=st.integers(1, 5),
        batch_size=st.integers(1, 9),
        longest=st.sampled_from([100, 100, 100, 6]),
        seed=st.integers(0, 2**31),
    )
    def hold(
        model: TranslationModel, rows: list[list[int]], beam: int, n_best: int, batch_size: int, longest: int, seed: int
    ) -> None:
        made, rng = translator_of(model, longest=longest), random.Random(seed)
        lines = [" ".join(map(str, row)) for row in rows]
        alone = {line: next(made.translate([line], beam_size=beam)) for line in lines}
        company = [*lines, *rng.choices(lines, k=3), *rng.choices(["", " ", "\t\u3000"], k=3)]
        rng.shuffle(company)
        found = list(made.translate(company, beam_size=beam, n_best=min(n_best, beam), batch_size=batch_size))
        assert [translation.source for translation in found] == company
        for translation in found:
            if translation.source.strip():
                assert_same(model, alone[translation.source], translation, beam)
            else:
                assert translation == Translation(translation.source, [], 1)

    hold()


def assert_same(model: TranslationModel, one: Translation, other: Translation, beam: int) -> None:
    """The best translations are the same, or so near to each other that rounding decides."""
    first, second = one.candidates[0], other.candidates[0]
    assert one.parts == other.parts
    if first.text == second.text or beam > 1 or one.parts > 1:
        assert abs(first.score - second.score) <= CLOSE, (first, second)
    else:
        assert margin(model, one.source, first.text, second.text) <= CLOSE, (first, second)


@torch.inference_mode()
def margin(model: TranslationModel, source: str, first: str, second: str) -> float:
    """How far the log-probabilities of the two are apart at the first word in which they differ."""
    source_ids, *both = ([int(word) for word in text.split()] for text in (source, first, second))
    one, other = ([*ids, EOS] for ids in both)
    same = next(place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    state, previous = model.start(*collate_sources([source_ids])), BOS
    for place in range(same + 1):
        logit_1V, state = model.logits(torch.tensor([previous]), state)
        previous = one[place]
    return abs(float(logit_1V[0, one[same]] - logit_1V[0, other[same]]))


@each_form
@each_kind
def test_a_translation_is_the_same_alone_and_in_any_company(kind: str, form: str) -> None:
    hold_in_company(kind, form, examples=2)


@pytest.mark.long
@each_form
@each_kind
def test_a_translation_is_the_same_alone_and_in_much_company(kind: str, form: str) -> None:
    hold_in_company(kind, form, examples=100)


def test_different_lines_get_different_translations() -> None:
    """Else the claims above would say nothing."""
    rng = random.Random(3)
    for form in FORMS:
        for kind in KINDS:
            lines = [" ".join(str(rng.randrange(4, V)) for _ in range(rng.randint(2, 12))) for _ in range(12)]
            found = {each.text for each in translator_of(opinionated(kind, form, seed=5)).translate(lines, beam_size=1)}
            assert len(found) >= 3, (kind, form)


def test_a_candidate_of_the_n_best_is_the_same_in_any_company(trained: Path) -> None:
    """With a trained model and its text: every one of the n best, not only the first."""
    made = Translator.load(trained, device="cpu")
    lines = [" ".join(source.split()[: 2 + number % 6]) for number, source in enumerate(SOURCES)]
    alone = {line: next(made.translate([line], beam_size=4, n_best=4)) for line in lines}
    company = [*reversed(lines), "", *lines]
    for translation in made.translate(company, beam_size=4, n_best=4, batch_size=7):
        for found, expected in zip(
            translation.candidates, alone.get(translation.source, translation).candidates, strict=True
        ):
            # Two neighbours in the order may change places where their scores are the same to five digits.
            assert abs(found.score - expected.score) <= CLOSE


# ---- threads


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def random_side(rng: np.random.Generator, sentences: int, vocabulary: int) -> EncodedSide:
    lengths = rng.integers(1, 25, sentences)
    ids = rng.integers(4, vocabulary, int(lengths.sum())).astype(np.uint16)
    return EncodedSide(ids, np.concatenate([[0], np.cumsum(lengths)]))


@pytest.mark.parametrize(("kind", "form"), [("additive", "after"), ("multi_head", "between"), ("qkv", "step")])
def test_two_threads_compute_the_loss_of_one_to_a_hundred_thousandth(kind: str, form: str) -> None:
    hold_on_two_threads(kind, form, sentences=8)


@pytest.mark.long
@each_form
@each_kind
def test_two_threads_compute_the_loss_of_one_for_every_model(kind: str, form: str) -> None:
    hold_on_two_threads(kind, form, sentences=24)


def hold_on_two_threads(kind: str, form: str, *, sentences: int) -> None:
    vocabulary, rng = 500, np.random.default_rng(7)
    corpus = EncodedCorpus(random_side(rng, sentences, vocabulary), random_side(rng, sentences, vocabulary))
    decoder = {**FORMS[form], "layers": 2}
    sizes = {"embedding_size": 48, "hidden_size": 96, "dropout": 0.0, "lexical_model": True, "tie_embeddings": "all"}
    config = ModelConfig.model_validate({**sizes, "decoder": decoder, "attention": {"kind": kind}})
    model = build_model(config, vocabulary, vocabulary, seed=1)
    found = []
    for count in (1, 2):
        with threads(count):
            model.zero_grad()
            loss, _ = model.loss(collate(corpus, np.arange(sentences)), 0.1)
            loss.backward()
            gradients = [parameter.grad.norm().item() for parameter in model.parameters() if parameter.grad is not None]
        found.append([loss.item(), *gradients])
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-5)
    assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-4)


# ---- the world around


def train(folder: Path, run: str, *settings: str, env: dict[str, str | None] | None = None, cwd: Path) -> Path:
    overrides = [word for setting in settings for word in ("--set", setting)]
    config = os.path.relpath(folder / "tiny.yaml", cwd)
    done = run_python("-m", "seq2seq", "train", config, "--run", folder / run, *overrides, env=env, cwd=cwd)
    assert done.status == 0, done.err
    return folder / run


def digests(run: Path) -> dict[str, str]:
    names = ("best/weights.safetensors", "last/weights.safetensors", "last/training.safetensors", "tokenizer.model")
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in names}


def losses(run: Path) -> list[float]:
    return [event["loss"] for event in told(run) if event.get("loss") is not None]


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
WORLDS: list[dict[str, str | None]] = [
    {"PYTHONHASHSEED": "0", "TZ": "Asia/Kathmandu", **ASCII},
    {"PYTHONHASHSEED": "1", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8", "COLUMNS": "20"},
]


def test_a_training_is_the_same_in_any_locale_time_zone_and_folder(tiny: Path, trained: Path, tmp_path: Path) -> None:
    """The run it is compared with was trained in this process, whose hash seed is random."""
    elsewhere = tmp_path / "an other" / "place"
    elsewhere.mkdir(parents=True)
    for number, cwd in enumerate((tiny, elsewhere)):
        run = train(tiny, f"run{number}", env=WORLDS[number], cwd=cwd)
        assert digests(run) == digests(trained)
        assert told(run) == told(trained)


@pytest.mark.long
def test_a_larger_training_is_the_same_in_every_world_and_on_two_threads_nearly(tiny: Path, tmp_path: Path) -> None:
    larger = ("training.epochs=4", "model.hidden_size=128", "model.embedding_size=96", "model.decoder.kind=step")
    worlds = [{**world, "PYTHONHASHSEED": seed} for world in WORLDS for seed in ("0", "1", "random")]
    runs = [train(tiny, f"run{number}", *larger, env=env, cwd=tmp_path) for number, env in enumerate(worlds)]
    for run in runs[1:]:
        assert digests(run) == digests(runs[0])
        assert told(run) == told(runs[0])
    # Two threads add their sums in another order, in matrices large enough to be shared.
    two = train(tiny, "two", *larger, "training.threads=2", env={"OMP_NUM_THREADS": "2"}, cwd=tmp_path)
    assert losses(two) == pytest.approx(losses(runs[0]), rel=1e-5)


# ---- streams


def arguments(*words: object) -> list[str]:
    return [sys.executable, "-m", "seq2seq", "translate", *map(str, words)]


@contextlib.contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[bytes]]:
    """`seq2seq translate` between three pipes."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(arguments(*words), **pipes, env=command_environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def in_shell(script: str, *words: object, input: bytes = b"") -> Finished:
    """Runs a command as the "$@" of a shell's script, which can close its streams."""
    command, env = ["sh", "-c", script, "sh", *map(str, words)], command_environment()
    done = subprocess.run(command, input=input, capture_output=True, env=env, timeout=120, check=False)
    return Finished(done.returncode, done.stdout, done.stderr)


def translations(run: Path, lines: Sequence[str]) -> dict[str, str]:
    """What each line becomes when it is all there is, by greedy search."""
    made = Translator.load(run, device="cpu")
    return {line: next(made.translate([line], beam_size=1)).text for line in dict.fromkeys(lines)}


def as_bytes(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


@posix_only
@pytest.mark.timeout(120)
def test_a_pipe_is_answered_soon_whether_it_waits_or_never_pauses(trained: Path) -> None:
    """First a line at a time, each sent when the one before is answered; then one every twenty milliseconds."""
    stop, sent = threading.Event(), 0

    def produce(stdin: IO[bytes]) -> None:
        nonlocal sent
        while not stop.wait(0.02):
            stdin.write(as_bytes([SOURCES[sent % len(SOURCES)]]))
            stdin.flush()
            sent += 1
        stdin.close()

    expected = translations(trained, SOURCES)
    with started(trained, "--beam", 1) as process:
        stdin, stdout, stderr = streams(process)
        for line in (SOURCES[0], "", SOURCES[1], " \t", "\u3000", SOURCES[0]):
            stdin.write(f"{line}\r\n".encode())
            stdin.flush()
            assert stdout.readline().decode() == f"{expected.get(line, '')}\n"
        producer = threading.Thread(target=produce, args=(stdin,))
        began = time.monotonic()
        producer.start()
        answers = [stdout.readline()]
        assert time.monotonic() - began < 3
        while time.monotonic() - began < 4:
            answers.append(stdout.readline())
        assert len(answers) > sent / 3, "and it keeps up"
        stop.set()
        producer.join(10)
        answers += stdout.read().splitlines(keepends=True)
        assert (stderr.read(), process.wait(timeout=20)) == (b"", 0)
    assert [answer.decode() for answer in answers] == [f"{expected[SOURCES[n % len(SOURCES)]]}\n" for n in range(sent)]


@posix_only
@pytest.mark.timeout(120)
def test_a_reader_that_leaves_in_the_middle_of_a_file_ends_the_command_quietly(trained: Path, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text", SOURCES * 100)
    with started(trained, text, "--beam", 1, "--batch-size", 2) as process:
        _, stdout, stderr = streams(process)
        assert stdout.readline().endswith(b"\n")
        stdout.close()
        assert process.wait(timeout=60) == 141
        assert stderr.read() == b""


@posix_only
def test_streams_that_are_closed_from_the_start_are_told_or_not_needed(trained: Path, tmp_path: Path) -> None:
    text, output = write_lines(tmp_path / "text", SOURCES[:2]), tmp_path / "out"
    expected = as_bytes(list(translations(trained, SOURCES[:2]).values()))
    translate = arguments(trained, text, "--beam", 1)
    in_shell('"$@" >&-', *translate).refused("Standard output cannot be written")
    done = in_shell('"$@" <&- >&- 2>&-', *translate, "--output", output)
    assert (done.status, output.read_bytes()) == (0, expected)
    score = [sys.executable, "-m", "seq2seq", "score", "--reference", text]
    in_shell('"$@" >&-', *score, text).refused("Standard output cannot be written")
    in_shell('"$@" <&-', *score, "-").refused("standard input cannot be read")


@posix_only
def test_without_standard_error_no_message_goes_where_translations_go(trained: Path, tmp_path: Path) -> None:
    long = " ".join(SOURCES[:10])  # it is told that a line was split
    done = in_shell('"$@" 2>&-', *arguments(trained, "--beam", 1), input=as_bytes([long]))
    assert (done.status, done.out) == (0, f"{translations(trained, [long])[long]}\n")
    done = in_shell('"$@" 2>&-', *arguments(tmp_path / "none"))
    assert (done.status, done.out) == (2, "")


def test_three_hundred_mixed_lines_come_out_in_their_order_and_number(trained: Path, tmp_path: Path) -> None:
    rng = random.Random(1)
    odd = [
        "",
        "",
        " ",
        "\t",
        "日本語",
        "a" * 300,
        "The dog \r sees\u2028houses.",
        "\x1b[31mred",
        "<unk> </s>",
        "\ufeff",
    ]
    some = [*odd, *(" ".join(rng.sample(source.split(), k=rng.randint(1, 5))) for source in SOURCES)]
    lines, alone = rng.choices(some, k=300), translations(trained, some)
    expected = as_bytes([alone[line] for line in lines])
    output = tmp_path / "out"
    done = run_python("-m", "seq2seq", "translate", trained, "--beam", 1, "--output", output, input=as_bytes(lines))
    assert (done.status, done.out_bytes) == (0, b"")
    assert output.read_bytes() == expected
    assert output.read_bytes().count(b"\n") == 300
    assert b"\r" not in output.read_bytes() + done.err_bytes
    assert b"\x1b" not in output.read_bytes() + done.err_bytes
    packed = in_process("translate", trained, "--beam", 1, stdin=gzip.compress(as_bytes(lines)))
    assert packed.out_bytes == expected


@posix_only
def test_a_pipe_with_a_name_is_read_like_standard_input(trained: Path, tmp_path: Path) -> None:
    """Such as `seq2seq translate RUN <(zcat text.gz)`: it can be read once only."""
    expected = as_bytes(list(translations(trained, SOURCES).values()))
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(as_bytes(SOURCES),))
    writer.start()
    done = in_process("translate", trained, tmp_path / "fifo", "--beam", 1)
    writer.join(10)
    assert (done.status, done.out_bytes) == (0, expected), done.err


def test_no_file_of_a_run_holds_a_cr_or_an_escape(trained: Path) -> None:
    names = {path.name for path in trained.rglob("*") if path.suffix in (".yaml", ".json", ".jsonl", ".log")}
    assert names >= {"config.yaml", "checkpoint.json", "metrics.jsonl", "train.log"}
    for path in trained.rglob("*"):
        if path.name in names:
            assert not set(b"\r\x1b") & set(path.read_bytes()), path


# Both in one process, the short text first. Not by `getrusage`, whose number begins with the size of the parent.
MEASURED = """
import re, sys
from pathlib import Path
from seq2seq.cli.main import main
run, *texts = sys.argv[1:]
for text in texts:
    assert main(["translate", run, text, "--output", f"{text}.out", "--beam", "1", "--batch-size", "256"]) == 0
    print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_a_line_of_a_megabyte_is_one_line_in_bounded_memory(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    # With short translations, and without the digest of what is changed by hand: the input is what counts here.
    heading, _, rest = (run / "config.yaml").read_text(encoding="utf-8").split("\n", 2)
    shorter = rest.replace("max_length_ratio: 2.0", "max_length_ratio: 0.05")
    assert shorter != rest
    (run / "config.yaml").write_text(f"{heading}\n{shorter}", encoding="utf-8")
    (tmp_path / "short").write_bytes(as_bytes(SOURCES))
    (tmp_path / "long").write_bytes(" ".join(SOURCES * 1000).encode()[: 2**20])
    done = run_python("-c", MEASURED, run, tmp_path / "short", tmp_path / "long")
    assert done.status == 0, done.err
    out = (tmp_path / "long.out").read_bytes()
    assert out.count(b"\n") == 1
    assert len(out) > 2**16, "all of it is translated"
    usual, most = (int(kilobytes) / 1024 for kilobytes in done.out.split())
    assert most - usual < 300, (usual, most)
