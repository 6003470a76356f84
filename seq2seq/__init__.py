"""Translation models for a small parallel corpus: GRU encoder, GRU decoder, attention between them."""

__version__ = "0.1.0"
