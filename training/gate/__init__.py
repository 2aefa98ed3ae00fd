"""`train-gate`: the paper's memory gate on a frozen backbone."""
