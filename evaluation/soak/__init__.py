"""A long run of one artifact: does anything grow, drift, or depend on how the text was fed?"""
