"""The suggestion room: a corpus is looked at, and a config that suits its size is written, with reasons.

survey.py counts, rules.py is the table of what suits which size, writing.py makes the YAML.
"""
