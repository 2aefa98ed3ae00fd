"""Exports an attached model as an artifact: graphs, recipes, back ends and the parity check."""
