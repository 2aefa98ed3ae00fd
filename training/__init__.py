"""Training what EdgeInfinite adds to a frozen backbone.

`scorer/` trains the retention scorer, which fills the recall slots of policy `carry`. `gate/`
trains the paper's memory gate, through which the memory is read. Both use `texts.py`.
"""
