"""The paper's parts: feature map, compressive memory, memory gate (arXiv 2503.22196)."""
