"""The diagnosis room: what a corpus holds that it should not, found before a training is spent on it.

`examination.py` is the way in. A corpus is read once (`scan.py`); a table says what each character is
(`characters.py`), and what is wrong with a line becomes a bit of it (`signs.py`). The findings follow from the bits,
from lengths and from hashes: `line_findings.py`, `lengths.py` (with `alignment.py`), `duplicates.py`,
`rare_characters.py`. `vocabulary.py` tries vocabularies, and `cleaning.py` writes a clean copy.
"""
