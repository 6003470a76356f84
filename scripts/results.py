"""The tables of docs/results.md, row by row: `python scripts/results.py run ROW ...` trains, scores and records.

    run ROW [ROW ...]      train each row's seeds, translate its test set once, and write docs/results/ROW-SEED.json
    run --group attention  all rows of a group: recipes, small, techniques, attention
    list                   the rows, and which of them are recorded
    table                  docs/results.md from what is recorded

    --jobs 2 --threads 1   trainings side by side, and the cores of each: with as many jobs as cores none is ever idle
    --seeds 1,2,3          other seeds than the row's own
    --corpora DIR          multi30k/ and tatoeba/ are in it (default: $SEQ2SEQ_CORPORA, else data/)

Epochs alone end a training here, so that a busy machine changes no figure. Settings are chosen on the validation set;
the test set is read once for each training. What is recorded is not made again (delete its file to do so), and a
training that was broken off goes on if its settings are the same. BLEU is cased and detokenised, beam 5; "lower-cased"
is the same output and reference scored by sacreBLEU with `-lc`, which is close to the lower-cased tokenised BLEU of
older papers and not equal to it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

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
    plain: bool = False  # nothing of the config but its data: what the defaults make of them
    pairs: int | None = None  # only so many of the training pairs, the first ones
    members: tuple[str, ...] = ()  # no training: an ensemble of all seeds of these rows


EN_DE, DE_EN, QUICK = "multi30k_en_de.yaml", "multi30k_de_en.yaml", "multi30k_en_de_quick.yaml"
EN_ZH, ZH_EN = "tatoeba_en_zh.yaml", "tatoeba_zh_en.yaml"
WITHOUT = ("model.lexical_model=false",)
WITHOUT_RISK = ("training.risk_epochs=0",)
KINDS = ("multi_head", "qkv", "general", "my", "dot", "additive", "tanh", "none")
SEEDS = (1, 2, 3)
ROWS: dict[str, Row] = {
    "multi30k-en-de": Row("recipes", "Multi30k en→de", EN_DE, seeds=SEEDS),
    "multi30k-en-de-likelihood": Row("recipes", "the same without minimum risk training", EN_DE, WITHOUT_RISK, SEEDS),
    "multi30k-en-de-quick": Row("recipes", "Multi30k en→de, quick", QUICK, seeds=SEEDS),
    "multi30k-de-en": Row("recipes", "Multi30k de→en", DE_EN, seeds=SEEDS),
    "tatoeba-en-zh": Row("recipes", "Tatoeba en→zh", EN_ZH),
    "tatoeba-en-zh-likelihood": Row("recipes", "the same without minimum risk training", EN_ZH, WITHOUT_RISK),
    "tatoeba-zh-en": Row("recipes", "Tatoeba zh→en", ZH_EN),
    "tatoeba-zh-en-likelihood": Row("recipes", "the same without minimum risk training", ZH_EN, WITHOUT_RISK),
    "multi30k-en-de-ensemble": Row("recipes", "Multi30k en→de, the three together", EN_DE, members=("multi30k-en-de",)),
    "multi30k-de-en-ensemble": Row("recipes", "Multi30k de→en, the three together", DE_EN, members=("multi30k-de-en",)),
    "multi30k-en-de-quick-ensemble": Row(
        "recipes", "Multi30k en→de, quick, the three together", QUICK, members=("multi30k-en-de-quick",)
    ),
    "low-resource": Row("small", "5,000 pairs of Multi30k en→de", "low_resource.yaml", pairs=5000),
    "low-resource-plain": Row("small", "5,000 pairs of Multi30k en→de, the defaults", EN_DE, pairs=5000, plain=True),
    "tatoeba-en-zh-plain": Row("small", "Tatoeba en→zh, the defaults", EN_ZH, plain=True),
    "tatoeba-zh-en-plain": Row("small", "Tatoeba zh→en, the defaults", ZH_EN, plain=True),
    "quick-without-lexical": Row("attention", "`multi_head`: the quick recipe less its lexical model", QUICK, WITHOUT),
    **{
        f"attention-{kind}": Row("attention", f"`{kind}`", QUICK, (*WITHOUT, f"model.attention.kind={kind}"))
        for kind in KINDS[1:]
    },
    "attention-ensemble": Row(
        "attention",
        "`multi_head`, `additive` and `my` together",
        QUICK,
        members=("quick-without-lexical", "attention-additive", "attention-my"),
    ),
    "attention-my-unscaled": Row(
        "attention",
        "`my`, not scaled",
        QUICK,
        (*WITHOUT, "model.attention.kind=my", "model.attention.scaled=false"),
    ),
    "attention-step": Row("attention", "`multi_head`, decoder `step`", QUICK, (*WITHOUT, "model.decoder.kind=step")),
    "attention-between": Row("attention", "`multi_head`, `between`", QUICK, (*WITHOUT, "model.decoder.attend=between")),
    "attention-one-layer": Row("attention", "`multi_head`, one layer", QUICK, (*WITHOUT, "model.decoder.layers=1")),
    "technique-word-dropout": Row(
        "techniques", "source word dropout 0.1", QUICK, ("training.source_word_dropout=0.1",)
    ),
    "technique-variational": Row("techniques", "variational dropout", QUICK, ("model.variational_dropout=true",)),
    "technique-ema": Row("techniques", "moving average of the weights", QUICK, ("training.average=ema",)),
    "technique-r-drop": Row("techniques", "R-Drop, strength 3", QUICK, ("training.r_drop=3",)),
    "technique-risk": Row("techniques", "minimum risk training, one epoch more", QUICK, ("training.risk_epochs=1",)),
    "technique-bpe-dropout": Row("techniques", "BPE-dropout 0.1", QUICK, ("training.subword_sampling=0.1",)),
    "technique-layer-norm": Row("techniques", "layer normalisation", QUICK, ("model.layer_norm=true",)),
    "technique-encoder-2": Row(
        "techniques", "two encoder layers, residual", QUICK, ("model.encoder.layers=2", "model.residual=true")
    ),
    "technique-no-smoothing": Row("techniques", "without label smoothing", QUICK, ("training.label_smoothing=0",)),
}
# Rows that stand in another table as well: what the others there are compared with.
BASES = {"techniques": ("multi30k-en-de-quick", "quick-without-lexical")}
HEADINGS = {
    "recipes": "Recipes",
    "small": "Beside the defaults",
    "techniques": "Techniques, each alone beside the quick recipe",
    "attention": "Attention, everything else equal to the quick recipe without its lexical model",
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
            print(f"{name:<32}{row.group:<12}seeds {row.seeds}, recorded {done}")
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
    for together in (False, True):  # ensembles when all their members are there
        tasks = [
            (name, seed)
            for name in names
            if bool(ROWS[name].members) == together
            for seed in (ROWS[name].seeds if args.seeds is None else map(int, args.seeds.split(",")))
            if not record_of(name, seed).exists()
        ]
        with ThreadPoolExecutor(args.jobs) as pool:
            for line in pool.map(lambda task: train_and_record(task[0], task[1], args), tasks):
                print(line, flush=True)


def train_and_record(name: str, seed: int, args: argparse.Namespace) -> str:
    """Train a row with a seed (or put its members together), translate the test set, and write the record."""
    row, folder, began = ROWS[name], RUNS / f"{name}-{seed}", time.time()
    if row.members:
        members = [(member, number) for member in row.members for number in ROWS[member].seeds]
        folders = [RUNS / f"{member}-{number}" for member, number in members]
        for (member, number), run in zip(members, folders, strict=True):
            if not (record_of(member, number).exists() and run.exists()):
                raise SystemExit(f"{name}: {run} is not there or not trained to its end; run {member} first")
    else:
        train(row, seed, folder, args)
        folders = [folder]
    output = RUNS / f"{name}-{seed}.out"
    found = json.loads(seq2seq("evaluate", *map(str, folders), "--json", "--output", str(output)))
    ends = [json.loads(run.joinpath("metrics.jsonl").read_text("utf-8").splitlines()[-1]) for run in folders]
    best = json.loads((folders[0] / "best" / "checkpoint.json").read_text(encoding="utf-8"))
    record = {
        "row": name,
        "seed": seed,
        "command": f"python scripts/results.py run {name} --seeds {seed} --threads {args.threads}",
        "set": [*row.settings, *args.set],
        "bleu": found["bleu"]["score"],
        "bleu_signature": found["bleu"]["signature"],
        "chrf": found["chrf"]["score"],
        "chrf_signature": found["chrf"]["signature"],
        "bleu_lower": lower_cased(folders[0], output, found["bleu"]["signature"]),
        "validation": None if row.members else best.get("scores"),
        "training_minutes": round(sum(end["elapsed_seconds"] for end in ends) / 60, 1),
        "threads": args.threads,
        "precision": precision_of(folders[0]),
        "jobs": args.jobs,
        "load": round(os.getloadavg()[0], 1),
        "parameters": sum(map(parameters, folders)),
        "megabytes": round(sum(size(run) for run in folders) / 2**20, 1),
        "date": time.strftime("%Y-%m-%d", time.localtime(began)),
    }
    RECORDS.mkdir(parents=True, exist_ok=True)
    record_of(name, seed).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return f"{name} seed {seed}: BLEU {record['bleu']:.2f}, {record['training_minutes']} minutes"


def train(row: Row, seed: int, folder: Path, args: argparse.Namespace) -> None:
    config = ROOT / "configs" / row.config
    if row.plain:
        config = RUNS / f"plain-{row.config}"
        config.parent.mkdir(parents=True, exist_ok=True)
        told = yaml.safe_load((ROOT / "configs" / row.config).read_text(encoding="utf-8"))
        config.write_text(yaml.safe_dump({"data": told["data"]}), encoding="utf-8")
    settings = [*paths(row, Path(args.corpora)), *row.settings, *args.set]
    settings += [f"seed={seed}", f"training.threads={args.threads}", "training.max_minutes=null"]
    wanted, begun = json.dumps([config.read_text(encoding="utf-8"), settings]), folder.with_suffix(".begun")
    goes_on = folder.exists() and begun.exists() and begun.read_text(encoding="utf-8") == wanted
    command = ["train", str(config), "--run", str(folder), "--resume" if goes_on else "--overwrite"]
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.write_text(wanted, encoding="utf-8")
    for setting in settings:
        command += ["--set", setting]
    seq2seq(*command)


def precision_of(run: Path) -> str:
    """What a training computed in, by its log: `auto` depends on the machine."""
    found = re.findall(r" on \w+ in (\w+); run ", (run / "train.log").read_text(encoding="utf-8"))
    return found[-1] if found else "fp32"


def parameters(run: Path) -> int:
    """The numbers that were learnt."""
    from safetensors import safe_open

    with safe_open(run / "best" / "weights.safetensors", "numpy") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118


def size(run: Path) -> int:
    return (run / "best" / "weights.safetensors").stat().st_size


def paths(row: Row, corpora: Path) -> list[str]:
    """Where the corpus of a row lies, or the first pairs of it."""
    if row.config.startswith("tatoeba"):
        return [f"data.train.tsv={corpora / 'tatoeba' / 'cmn-eng.tsv'}"]  # the columns are the config's
    codes = ("de", "en") if "de_en" in row.config else ("en", "de")
    parts = (("train", "train"), ("validation", "val"), ("test", "test_2016_flickr"))
    settings = []
    for part, name in parts:
        for side, code in zip(("source", "target"), codes, strict=True):
            file = corpora / "multi30k" / f"{name}.{code}"
            if row.pairs is not None and part == "train":
                lines = file.read_text(encoding="utf-8").split("\n")[: row.pairs]
                file = RUNS / f"first{row.pairs}.{code}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            settings.append(f"data.{part}.{side}={file}")
    return settings


def lower_cased(folder: Path, output: Path, signature: str) -> float | None:
    """BLEU without regard to case, for comparison with papers; None where the language has no case."""
    if "tok:13a" not in signature:
        return None
    from sacrebleu.metrics.bleu import BLEU

    test = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["data"]["test"]
    test = test[0] if isinstance(test, list) else test
    if "target" not in test:  # a part of the training file; its reference stands nowhere else
        return None
    texts = [path.read_text(encoding="utf-8").splitlines() for path in (output, Path(test["target"]))]
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
        "fills: each row names its command by its name. Test sets chose nothing. They were read once for each row and",
        "seed; that of a seed of Multi30k in either direction more often ([trials.md](trials.md) says why). A row with",
        "minimum risk training and the one without it are the same trainings, after its epoch and before.",
        "",
        "- BLEU: cased, detokenised, beam 5; " + " or ".join(f"`{signature}`" for signature in signatures),
        "- lower-cased: the same output and reference scored with sacreBLEU's `-lc`",
        "- minutes: of a training, validations included, with the threads and the precision that stand beside them;",
        "  the machines differ, and those without bf16 are much slower; none where one had other work beside it",
        *luck(records),
    ]
    for group, heading in HEADINGS.items():
        rows = list(table_lines(group, records))
        if rows:
            lines += ["", f"## {heading}", "", *rows]
    return "\n".join(lines) + "\n"


def luck(records: dict[str, list[dict[str, Any]]]) -> list[str]:
    """How far apart trainings are that differ in nothing but their seed: what the rows of one training stand on."""
    quick = records.get("multi30k-en-de-quick", [])
    if len(quick) < 2:
        return []
    test, validation = ([record["bleu"] for record in quick], [record["validation"]["bleu"] for record in quick])
    return [
        f"- luck: seeds of the quick recipe are {max(test) - min(test):.2f} BLEU apart on the test set and "
        f"{max(validation) - min(validation):.2f} on the validation set,",
        "  and between rows of one seed a smaller difference may be no more than that",
    ]


def table_lines(group: str, records: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    bases = BASES.get(group, ())
    some = [(name, row) for name, row in ROWS.items() if (row.group == group or name in bases) and name in records]
    if not some:
        return
    yield (
        "| | row | seeds | BLEU | lower-cased | chrF2 | validation (greedy) "
        "| minutes (threads, precision) | parameters | MiB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, row in some:
        found = records[name]
        lower = [record["bleu_lower"] for record in found if record["bleu_lower"] is not None]
        validation = [record["validation"]["bleu"] for record in found if record["validation"]]
        minutes = [record["training_minutes"] for record in found if record["training_minutes"] is not None]
        took = f"{statistics.mean(minutes):.1f}" if minutes else "–"
        cells = (
            row.title,
            f"`{name}`",
            str(len(found)),
            spread([record["bleu"] for record in found]),
            spread(lower),
            spread([record["chrf"] for record in found]),
            spread(validation),
            f"{took} ({found[0]['threads']}, {found[0]['precision']})",
            f"{found[0]['parameters'] / 1e6:.1f} M",
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
