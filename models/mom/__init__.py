"""MOM (arXiv 2504.12526) and beyond: exact attention in little memory, on transformers' own code.

`attention` attends without masks of T x n, `layer_chunks` runs whole decoder layers over chunks of
the prompt, `disk_cache` keeps keys and values in `spill_file`s, `reader` puts them together.
"""
