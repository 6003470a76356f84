"""Events of a training as plain lines, for train.log and for any output that is no terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line_of(event: Mapping[str, Any]) -> str:
    """One line that people read and programs can split: `step 250  loss 4.312  rate 8.3e-04  9,120 tokens/s`."""
    match event["event"]:
        case "train":
            loss = "not finite" if event["loss"] is None else f"{event['loss']:.3f}"
            return (
                f"step {event['step']}  epoch {event['epoch']}  loss {loss}  rate {event['learning_rate']:.2e}  "
                f"{event['target_tokens_per_second']:,.0f} tokens/s  {clock(event['elapsed_seconds'])}"
            )
        case "validation":
            return f"step {event['step']}  validation  " + scores_in_words(event)
        case "end":
            best = f"best at step {event['best_step']}" if event["best_step"] else "no best yet"
            return f"step {event['step']}  end: {event['reason']}, {best}"
    return f"step {event['step']}  {event['event']}"


def scores_in_words(scores: Mapping[str, Any]) -> str:
    """`loss 2.104  perplexity 8.20  BLEU 31.42  chrF2 55.10`; what is not finite is a dash."""
    names = {"loss": "loss {:.3f}", "perplexity": "perplexity {:.2f}", "bleu": "BLEU {:.2f}", "chrf": "chrF2 {:.2f}"}
    return "  ".join(
        shown.format(scores[name]) if scores.get(name) is not None else shown.split()[0] + " -"
        for name, shown in names.items()
    )


def clock(seconds: float) -> str:
    """Seconds as 0:07, 12:30 or 1:02:03."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
