"""Translation models for a small parallel corpus: GRU encoder, GRU decoder, attention between them.

`from seq2seq import MyAttention`: the attention modules can be used on their own. They are imported when first asked
for, because PyTorch takes a second to load and most of the command line does not need it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seq2seq.model.attention import (
        AdditiveAttention,
        DotAttention,
        GeneralAttention,
        MultiHeadAttention,
        MyAttention,
        NoAttention,
        QKVAttention,
        TanhAttention,
    )

__version__ = "0.1.0"

__all__ = [
    "AdditiveAttention",
    "DotAttention",
    "GeneralAttention",
    "MultiHeadAttention",
    "MyAttention",
    "NoAttention",
    "QKVAttention",
    "TanhAttention",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seq2seq.model import attention

    return getattr(attention, name)
