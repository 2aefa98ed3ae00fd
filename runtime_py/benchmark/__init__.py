"""`edgeinfinite bench`: speed and memory against context length, beside what users have today.

`case` one measurement, `worker` runs it in a process of its own, `systems/` one file for each
system that is measured, `machine` the hardware's limits, `plan` all cases of a run, `report` the
table and the plot.
"""
