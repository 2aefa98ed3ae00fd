"""`edgeinfinite bench`: speed and memory against context length, compared with other runtimes.

`case` describes one measurement, `worker` runs it in its own process, `systems/` has one file for
each system, `machine` measures the hardware's limits, `plan` lists and runs all cases, `report`
makes the table and the plot.
"""
