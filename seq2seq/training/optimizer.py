"""The optimizer, and the learning rate as a function of the update."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2seq.errors import CheckpointError

if TYPE_CHECKING:
    from seq2seq.config.schema import TrainingConfig

# What no weight survives, and yet a number in fp32 when Adam has divided it: one that is not stops PyTorch 2.3 with an
# error of its own, where the loss should tell.
HIGHEST_RATE = 1e30
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def build_optimizer(model: nn.Module, settings: TrainingConfig) -> torch.optim.Adam:
    """Adam (Kingma & Ba 2015) or AdamW (Loshchilov & Hutter 2019). Biases are never decayed."""
    named = list(model.named_parameters())
    groups = [
        {"params": [p for _, p in named if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    rate, betas = settings.learning_rate, (settings.beta1, settings.beta2)
    return kind(groups, lr=rate, betas=betas, fused=_is_fused(kind, named[0][1].device))


def _is_fused(kind: type[torch.optim.Adam], device: torch.device) -> bool:
    """Whether there is a fused kernel here: PyTorch 2.3 has none for the CPU, and says so at the first step only."""
    trial = nn.Parameter(torch.zeros(1, device=device))
    trial.grad = torch.zeros_like(trial)
    try:
        kind([trial], fused=True).step()
    except RuntimeError:
        return False
    return True


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory as named tensors, such as `exp_avg.output_layer.bias`."""
    tensors = {}
    for name, parameter in model.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{moment}.{name}"] = torch.as_tensor(value)
    return tensors


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave. A parameter that had no memory yet (before update 1) stays without.

    CheckpointError where it is not what this model's optimizer remembers.
    """
    for name, parameter in model.named_parameters():
        kept = {m: tensors[f"{m}.{name}"] for m in _MOMENTS if f"{m}.{name}" in tensors}
        shapes = [tuple(value.shape) for value in kept.values()]
        usable = all(value.dtype == torch.float32 and bool(value.isfinite().all()) for value in kept.values())
        if kept and (not usable or shapes != [tuple(parameter.shape), tuple(parameter.shape), ()]):
            raise CheckpointError(f"The checkpoint's optimizer state does not fit the model ({name}); restore a copy.")
        if kept:
            optimizer.state[parameter] = {m: value.clone().to(parameter.device) for m, value in kept.items()}


@dataclass
class Schedule:
    """The learning rate of each update. Only `plateau` remembers anything: its scale and how long it has waited.

    `risk_updates` are those of minimum risk training, which come after the `total_updates`.
    """

    settings: TrainingConfig
    total_updates: int
    risk_updates: int = 0
    scale: float = 1.0
    waited: int = 0

    def rate(self, step: int) -> float:
        """The rate of update `step`, counted from 1: a linear warm-up, then the course that `schedule` names."""
        settings = self.settings
        warmup = settings.warmup_steps
        if step <= warmup:
            return settings.learning_rate * step / warmup
        match settings.schedule:
            case "cosine":  # Loshchilov & Hutter 2017, one cycle, ending with the last epoch
                share = min(1.0, (step - warmup) / max(1, self.total_updates - warmup))
                factor = 0.5 * (1.0 + math.cos(math.pi * share))
            case "inverse_sqrt":  # Vaswani et al. 2017, section 5.3
                factor = math.sqrt(max(1, warmup) / step)
            case _:
                factor = self.scale
        return max(settings.min_learning_rate, settings.learning_rate * factor)

    def risk_rate(self, step: int) -> float:
        """The rate of update `step` of minimum risk training: a twentieth of it to warm up, then a cosine to zero."""
        share = min(1.0, step / max(1, self.risk_updates))
        return self.settings.risk_learning_rate * min(1.0, 20 * share) * 0.5 * (1.0 + math.cos(math.pi * share))

    def planned(self) -> tuple[int, int]:
        """How many updates there will be, and of minimum risk training after them, unless something else ends it."""
        most = self.settings.max_steps
        updates = self.total_updates if most is None else min(most, self.total_updates)
        return updates, self.risk_updates if most is None else min(most - updates, self.risk_updates)

    def after_validation(self, better: bool) -> None:
        """Lower the rate on a plateau: `plateau_patience` validations without a better one, then one more."""
        if self.settings.schedule != "plateau":
            return
        self.waited = 0 if better else self.waited + 1
        if self.waited > self.settings.plateau_patience:
            self.scale *= self.settings.plateau_factor
            self.waited = 0
