"""Training what EdgeInfinite adds to a frozen backbone.

`scorer/`: the retention scorer, which fills the recall slots of policy `carry`. `gate/`: the memory
gate, through which the memory is read, the paper's. Both read the texts of `texts.py`.
"""
