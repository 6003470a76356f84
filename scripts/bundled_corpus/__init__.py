"""The grammar behind data/english-chinese: word lists with their kinds, and productions that write a sentence twice.

A production is a function that draws words and returns one English sentence and its Chinese translation. Words carry
their kind (what can be eaten, worn, driven), so that a draw makes sense, and their grammar (plural, measure word), so
that it is correct. Standard library only, and no set or hash order anywhere: the same seed writes the same bytes.
"""
