"""Parity: the artifact itself computes what the checkpoint computes, call by call."""
