"""The attention report: where the model looked while it wrote each word, as a page, a picture, links or numbers.

The model first translates as always; then it reads the chosen target once more, every piece given (teacher forcing).
A decoder's state depends only on the pieces before, so these are the weights that the search has seen, whatever the
search was.
"""
