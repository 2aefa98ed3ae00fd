"""LongBench (arXiv 2308.14508): real tasks over long contexts, read from the user's own copy."""
