"""Which weight gets how many bits, decided by what it costs: measured, then chosen for a size."""
