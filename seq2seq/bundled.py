"""Where the bundled corpus and its config lie: in the repository of a clone, or inside an installed package."""

from __future__ import annotations

from pathlib import Path

from seq2seq.errors import ConfigError

_CONFIG = Path("configs") / "english_chinese.yaml"


def bundled_config() -> Path:
    """The config that `seq2seq train` uses when none is named; its data paths are relative to its own folder.

    Raises ConfigError, naming both places, where neither holds it.
    """
    package = Path(__file__).resolve().parent
    # The clone first: whoever edits its config wants the edited one. A wheel's neighbour is site-packages, where a
    # folder `configs` could be anybody's, hence the look at pyproject.toml.
    clone = package.parent
    places = [package / "_bundled" / _CONFIG]
    if (clone / "pyproject.toml").is_file():
        places.insert(0, clone / _CONFIG)
    for place in places:
        if place.is_file():
            return place
    raise ConfigError(
        f"The bundled config is missing: looked for {' and '.join(map(str, places))}. Name a config of your own, "
        "or install the package again."
    )
