"""Parity checks: every call of the artifact must compute what the checkpoint computes."""
