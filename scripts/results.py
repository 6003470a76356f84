"""The tables of docs/results.md, row by row: `python scripts/results.py run ROW ...` trains, scores and records.

    run ROW [ROW ...]      train each row's seeds, translate its test set once, and write docs/results/ROW-SEED.json
    run --group attention  all rows of a group: recipes, techniques, attention
    list                   the rows, and which of them are recorded
    table                  docs/results.md from what is recorded

    --jobs 2 --threads 1   trainings side by side, and the cores of each: with as many jobs as cores none is ever idle
    --seeds 1,2,3          other seeds than the row's own
    --corpora DIR          multi30k/ and tatoeba/ are in it (default: $SEQ2SEQ_CORPORA, else data/)

Settings are chosen on the validation set; the test set is read once for each training, and what is recorded is not made
again (delete its file to do so). BLEU is cased and detokenised, beam 5; "lower-cased" is the same output and reference
scored by sacreBLEU with `-lc`, which is close to the lower-cased tokenised BLEU of older papers and not equal to it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "results"
RUNS = ROOT / "runs" / "results"


@dataclass(frozen=True)
class Row:
    """A line of a table: a config, what is set beside it, and the seeds."""

    group: str
    title: str
    config: str
    settings: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1,)


EN_DE = "multi30k_en_de.yaml"
KINDS = ("multi_head", "qkv", "general", "my", "dot", "additive", "tanh", "none")
ROWS: dict[str, Row] = {
    "multi30k-en-de": Row("recipes", "Multi30k en→de", EN_DE, (), (1, 2, 3)),
    "multi30k-de-en": Row("recipes", "Multi30k de→en", "multi30k_de_en.yaml", (), (1, 2, 3)),
    "tatoeba-en-zh": Row("recipes", "Tatoeba en→zh", "tatoeba_en_zh.yaml"),
    "tatoeba-zh-en": Row("recipes", "Tatoeba zh→en", "tatoeba_zh_en.yaml"),
    **{
        f"attention-{kind}": Row(
            "attention", f"`{kind}`", EN_DE, (f"model.attention.kind={kind}",), (1, 2, 3) if kind == KINDS[0] else (1,)
        )
        for kind in KINDS
    },
    "attention-step": Row("attention", "`multi_head`, decoder `step`", EN_DE, ("model.decoder.kind=step",)),
    "attention-after-2": Row("attention", "`multi_head`, two layers, `after`", EN_DE, ("model.decoder.layers=2",)),
    "attention-between-2": Row(
        "attention",
        "`multi_head`, two layers, `between`",
        EN_DE,
        ("model.decoder.layers=2", "model.decoder.attend=between"),
    ),
    "technique-word-dropout": Row(
        "techniques", "source word dropout 0.1", EN_DE, ("training.source_word_dropout=0.1",)
    ),
    "technique-variational": Row("techniques", "variational dropout", EN_DE, ("model.variational_dropout=true",)),
    "technique-ema": Row("techniques", "moving average of the weights", EN_DE, ("training.average=ema",)),
    "technique-r-drop": Row("techniques", "R-Drop, strength 3", EN_DE, ("training.r_drop=3",)),
    "technique-bpe-dropout": Row("techniques", "BPE-dropout 0.1", EN_DE, ("training.subword_sampling=0.1",)),
    "technique-layer-norm": Row("techniques", "layer normalisation", EN_DE, ("model.layer_norm=true",)),
}
HEADINGS = {
    "recipes": "Recipes",
    "techniques": "Techniques, each alone beside the recipe en→de",
    "attention": "Attention, everything else equal",
}


def main() -> int:
    """Runs, lists or prints tables."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "list", "table"))
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--group", choices=tuple(HEADINGS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", metavar="N,...")
    parser.add_argument("--corpora", default=os.environ.get("SEQ2SEQ_CORPORA", str(ROOT / "data")), metavar="DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for a trial; it is recorded")
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row is called {unknown[0]}; `list` names them")
    if args.what == "list":
        for name, row in ROWS.items():
            done = [seed for seed in row.seeds if record_of(name, seed).exists()]
            print(f"{name:<24}{row.group:<12}seeds {row.seeds}, recorded {done}")
    elif args.what == "table":
        (ROOT / "docs" / "results.md").write_text(page(), encoding="utf-8")
    else:
        names = [*args.rows, *(name for name, row in ROWS.items() if row.group == args.group and name not in args.rows)]
        run(names, args)
    return 0


def record_of(name: str, seed: int) -> Path:
    return RECORDS / f"{name}-{seed}.json"


# -- training and scoring --------------------------------------------------------------------------------------------


def run(names: Sequence[str], args: argparse.Namespace) -> None:
    tasks = []
    for name in names:
        seeds = ROWS[name].seeds if args.seeds is None else [int(seed) for seed in args.seeds.split(",")]
        tasks += [(name, seed) for seed in seeds if not record_of(name, seed).exists()]
    with ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(lambda task: train_and_record(*task, args), tasks):
            print(line, flush=True)


def train_and_record(name: str, seed: int, args: argparse.Namespace) -> str:
    row, folder = ROWS[name], RUNS / f"{name}-{seed}"
    settings = [*paths(row.config, Path(args.corpora)), *row.settings, *args.set]
    settings += [f"seed={seed}", f"training.threads={args.threads}"]
    command = ["train", str(ROOT / "configs" / row.config), "--run", str(folder), "--overwrite"]
    for setting in settings:
        command += ["--set", setting]
    began = time.time()
    seq2seq(*command)
    found = json.loads(seq2seq("evaluate", str(folder), "--json", "--output", str(folder / "test.out")))
    end = json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    best = json.loads((folder / "best" / "checkpoint.json").read_text(encoding="utf-8"))
    record = {
        "row": name,
        "seed": seed,
        "command": f"python scripts/results.py run {name} --seeds {seed} --threads {args.threads}",
        "set": [*row.settings, *args.set],
        "bleu": found["bleu"]["score"],
        "bleu_signature": found["bleu"]["signature"],
        "chrf": found["chrf"]["score"],
        "chrf_signature": found["chrf"]["signature"],
        "bleu_lower": lower_cased(folder, found["bleu"]["signature"]),
        "validation": best.get("scores"),
        "training_minutes": round(end["elapsed_seconds"] / 60, 1),
        "threads": args.threads,
        "jobs": args.jobs,
        "load": round(os.getloadavg()[0], 1),
        "megabytes": round((folder / "best" / "weights.safetensors").stat().st_size / 2**20, 1),
        "date": time.strftime("%Y-%m-%d", time.localtime(began)),
    }
    RECORDS.mkdir(parents=True, exist_ok=True)
    record_of(name, seed).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return f"{name} seed {seed}: BLEU {record['bleu']:.2f}, {record['training_minutes']} minutes"


def paths(config: str, corpora: Path) -> list[str]:
    """Where the corpus of a config lies."""
    if config.startswith("tatoeba"):
        return [f"data.train.tsv={corpora / 'tatoeba' / 'cmn-eng.tsv'}"]  # the columns are the config's
    source, target = config.removesuffix(".yaml").split("_")[1:3]
    parts = (("train", "train"), ("validation", "val"), ("test", "test_2016_flickr"))
    sides = (("source", source), ("target", target))
    folder = corpora / "multi30k"
    return [f"data.{part}.{side}={folder / f'{file}.{code}'}" for part, file in parts for side, code in sides]


def lower_cased(folder: Path, signature: str) -> float | None:
    """BLEU without regard to case, for comparison with papers; None where the language has no case."""
    if "tok:13a" not in signature:
        return None
    from sacrebleu.metrics.bleu import BLEU

    config = (folder / "config.yaml").read_text(encoding="utf-8")
    import yaml

    reference = Path(yaml.safe_load(config)["data"]["test"]["target"])
    texts = [Path(path).read_text(encoding="utf-8").splitlines() for path in (folder / "test.out", reference)]
    return float(BLEU(lowercase=True).corpus_score(texts[0], [texts[1]]).score)


def seq2seq(*arguments: str) -> str:
    """Runs the command and gives what it printed; its messages are shown where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "seq2seq", *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise SystemExit(f"seq2seq {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


# -- the page --------------------------------------------------------------------------------------------------------


def page() -> str:
    """docs/results.md."""
    records: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(RECORDS.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        records.setdefault(record["row"], []).append(record)
    signatures = sorted({record["bleu_signature"] for rows in records.values() for record in rows})
    lines = [
        "# Results",
        "",
        "Written by `python scripts/results.py table` from `docs/results/`, which `python scripts/results.py run ROW`",
        "fills: each row names its command by its name. Test sets chose nothing and were read once for each training.",
        "BLEU is cased and detokenised, beam 5, with the signatures "
        + " and ".join(f"`{signature}`" for signature in signatures)
        + "; the lower-cased figure is the same output scored with sacreBLEU's `-lc`. Minutes are of the threads that",
        "stand beside them.",
    ]
    for group, heading in HEADINGS.items():
        rows = list(table_lines(group, records))
        if rows:
            lines += ["", f"## {heading}", "", *rows]
    return "\n".join(lines) + "\n"


def table_lines(group: str, records: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    some = [(name, row) for name, row in ROWS.items() if row.group == group and name in records]
    if not some:
        return
    yield "| | row | seeds | BLEU | lower-cased | chrF2 | validation (greedy) | minutes (threads) | MiB |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, row in some:
        found = records[name]
        lower = [record["bleu_lower"] for record in found if record["bleu_lower"] is not None]
        validation = [record["validation"]["bleu"] for record in found if record["validation"]]
        minutes = [record["training_minutes"] for record in found]
        cells = (
            row.title,
            f"`{name}`",
            str(len(found)),
            spread([record["bleu"] for record in found]),
            spread(lower),
            spread([record["chrf"] for record in found]),
            spread(validation),
            f"{statistics.mean(minutes):.1f} ({found[0]['threads']})",
            str(found[0]["megabytes"]),
        )
        yield "| " + " | ".join(cells) + " |"


def spread(values: Sequence[float]) -> str:
    """The mean, with the standard deviation where there are several."""
    if not values:
        return "–"
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{deviation}"


if __name__ == "__main__":
    sys.exit(main())
