"""Trains and translates with torchtext in an environment of its own, and prints figures: see docs/torchtext.md.

    python3 scripts/torchtext_trial.py                                   the bundled digits, to be written backwards
    python3 scripts/torchtext_trial.py --multi30k data/multi30k          a folder with Multi30k's plain text files
    python3 scripts/torchtext_trial.py --python .venv-torchtext/bin/python --minutes 10

torchtext 0.18 needs PyTorch 2.3 and Python 3.10 to 3.12. The environment is made once (PyTorch's download has some
gigabytes on Linux) and found again. Standard library only.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The words of the bundled Chinese have no blanks between them, at which torchtext could cut; digits have.
BUNDLED = ROOT / "data" / "reverse"


def main():
    parser = argparse.ArgumentParser(description="Trains, translates and scores with torchtext's tokenizer.")
    parser.add_argument("--python", metavar="FILE", help="an environment that has torchtext and this package's needs")
    parser.add_argument("--multi30k", metavar="DIR", help="train.en, train.de, val.* and test_2016_flickr.* are in it")
    parser.add_argument("--minutes", type=float, default=20, help="of training, at the most (default: 20)")
    parser.add_argument("--run", metavar="DIR", default="runs/torchtext-trial", help="where the run goes")
    parser.add_argument("--name", default="basic_english", help="the tokenizer (default: basic_english)")
    arguments = parser.parse_args()
    python = arguments.python or environment(ROOT / ".venv-torchtext")
    folder = Path(arguments.multi30k or BUNDLED).absolute()
    missing = [name for name in files(folder).values() if not (folder / name).is_file()]
    if missing:
        parser.error(f"{folder} lacks {', '.join(missing)}")
    run = Path(arguments.run).absolute()
    config = run.with_suffix(".yaml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(settings(folder, arguments), encoding="utf-8")
    seq2seq(python, "train", config, "--run", run, "--overwrite")
    names = {key: folder / name for key, name in files(folder).items()}
    print(
        "\nThe test set, as it is and with unknown words replaced by the source's; -lc is BLEU without regard to case:"
    )
    for name, words in (("as it is", []), ("replaced", ["--replace-unknown"])):
        output = run.with_suffix(f".{name.split()[0]}.out")
        scores = score(python, run, "--output", output, *words)
        any_case = sacrebleu(python, names["test target"], output)
        print(
            f"  {name:<9} BLEU {scores['bleu']['score']:.2f}  chrF2 {scores['chrf']['score']:.2f}  BLEU -lc {any_case}"
        )
    print(f"  {scores['bleu']['signature']}\n  {scores['chrf']['signature']}")
    print(f"The translations are in {output}; three of them:")
    with names["test source"].open(encoding="utf-8") as sources, output.open(encoding="utf-8") as translations:
        for _, line, translation in zip(range(3), sources, translations):  # noqa: B905 (reads in any Python)
            print(f"  {line.strip()}\n    {translation.strip()}")


def environment(folder):
    """The Python of an environment with torchtext, made if it is not there."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        if sys.version_info[:2] > (3, 12):
            sys.exit("torchtext needs Python 3.12 or older; start this script with one, or name --python.")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if subprocess.run([str(python), "-c", "import torchtext, seq2seq"], capture_output=True).returncode != 0:
        print(f"Installing torchtext and PyTorch 2.3 into {folder}", flush=True)
        subprocess.run([str(python), "-m", "pip", "install", "-e", ".[torchtext]"], cwd=ROOT, check=True)
    return python


def files(folder):
    """The names of the corpus's files."""
    if folder == BUNDLED:
        sides, parts = ("source", "target"), ("train", "validation", "test")
    else:
        sides, parts = ("en", "de"), ("train", "val", "test_2016_flickr")
    keys = ("train", "validation", "test")
    return {
        f"{key} {side}": f"{part}.{language}"
        for key, part in zip(keys, parts)  # noqa: B905
        for side, language in zip(("source", "target"), sides)  # noqa: B905
    }


def settings(folder, arguments):
    """A config for the corpus: words of both languages, each with a vocabulary of its own."""
    names = {key: quoted(folder / name) for key, name in files(folder).items()}
    parts = [
        f"  {key}: {{source: {names[f'{key} source']}, target: {names[f'{key} target']}}}"
        for key in ("train", "validation", "test")
    ]
    rest = (
        """\
model: {embedding_size: 64, hidden_size: 192, dropout: 0.0}
training: {epochs: 4, batch_tokens: 800, learning_rate: 2e-3, warmup_steps: 100, label_smoothing: 0.0, patience: null"""
        if folder == BUNDLED
        else """\
model: {embedding_size: 256, hidden_size: 256, dropout: 0.2}
training: {epochs: 5, batch_tokens: 1000, learning_rate: 2e-3, warmup_steps: 200"""
    )
    return "\n".join(
        [
            "data:",
            "  source_language: en",
            f"  target_language: {'en' if folder == BUNDLED else 'de'}",
            *parts,
            "tokenizer:",
            f"  {{kind: torchtext, name: {arguments.name}, shared: false, vocab_size: 10000, min_frequency: 2}}",
            f"{rest}, max_minutes: {arguments.minutes}}}",
            "",
        ]
    )


def quoted(path):
    return json.dumps(str(path))


def seq2seq(python, *words):
    subprocess.run([str(python), "-m", "seq2seq", *map(str, words)], check=True, env=surroundings())


def score(python, run, *words):
    done = subprocess.run(
        [str(python), "-m", "seq2seq", "evaluate", str(run), "--json", *words],
        check=True,
        env=surroundings(),
        stdout=subprocess.PIPE,
    )
    return json.loads(done.stdout.decode("utf-8"))


def sacrebleu(python, reference, output):
    """BLEU without regard to case, which basic_english lowers, as sacreBLEU's own command says it."""
    command = [str(python), "-m", "sacrebleu", str(reference), "-i", str(output), "-lc", "-b", "-w", "2", "--force"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode("utf-8").strip()


def surroundings():
    """This environment with the clone's package to be found, wherever one stands."""
    path = [str(ROOT), os.environ.get("PYTHONPATH")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


if __name__ == "__main__":
    main()
