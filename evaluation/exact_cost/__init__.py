"""`edgeinfinite bench --methods`: what exact attention costs, method by method.

`case` describes one measurement, `methods` reads with each method, `worker` measures one case in a
process of its own, `run` plans and runs them, `budget` finds the longest context that fits a
budget, `report` makes tables and the plot.
"""
