"""The command line: one small file per verb, and the only room that prints to a person and exits."""
