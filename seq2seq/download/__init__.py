"""The download room: public corpora are fetched, checked, unpacked and laid down with a config that trains on them.

table.py says what there is; transfer.py and part.py bring one file over a network that may fail; unpack.py makes plain
text of it; fetching.py puts a whole corpus into a folder.
"""
