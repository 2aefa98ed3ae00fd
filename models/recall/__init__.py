"""Policy `carry`: retention scorer, ranking, recall slots, moving the window."""
