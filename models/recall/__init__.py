"""Our part, policy `carry`: retention scorer, ranking, recall slots, moving the window."""
