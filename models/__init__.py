"""What EdgeInfinite adds to a transformers model.

`memory/` has the paper's compressive memory and memory gate. `recall/` has policy `carry`: the
retention scorer, the recall slots and the moving window. The other modules load a backbone, collect
facts about its architecture, attach the new parts, run attention on a state, and choose defaults.
This file imports nothing, because the command line reads some option modules without torch.
"""
