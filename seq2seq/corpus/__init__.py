"""The corpus room: text files become aligned pairs, pairs become pieces, pieces become ids, ids become batches.

In the order of the pipeline: lines, pairs, splits, tokenizer, encoded, batches. A large corpus is encoded once, by
several processes (encoders) into files (mapped) that a cache keeps (cache, with store and digests).
"""
