"""From an attached model to an artifact: graphs, quantization recipes, back ends, parity check."""
