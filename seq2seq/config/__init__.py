"""Settings: what may be written in the YAML (schema.py), and how it is read (loading.py)."""

from seq2seq.config.loading import dump_config, json_schema, load_config, parse_config
from seq2seq.config.schema import (
    AttentionConfig,
    Config,
    DataConfig,
    DecoderConfig,
    DecodingConfig,
    EncoderConfig,
    Fraction,
    ModelConfig,
    PairFiles,
    TokenizerConfig,
    TrainingConfig,
    data_files,
)

__all__ = [
    "AttentionConfig",
    "Config",
    "DataConfig",
    "DecoderConfig",
    "DecodingConfig",
    "EncoderConfig",
    "Fraction",
    "ModelConfig",
    "PairFiles",
    "TokenizerConfig",
    "TrainingConfig",
    "data_files",
    "dump_config",
    "json_schema",
    "load_config",
    "parse_config",
]
