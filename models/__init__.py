"""A transformers model with what EdgeInfinite adds to it.

`memory/` is the paper's: compressive memory and memory gate. `recall/` is ours, policy `carry`:
retention scorer, recall slots, a window that moves. Around them stand loading, facts about the
architecture, attaching, attention and its state, and defaults. Nothing is imported here: some
modules hold options alone, which the command line reads without torch.
"""
