"""Training what EdgeInfinite adds to a frozen backbone: the retention scorer."""
