"""Graphs of fixed shape in plain operators, compiled for Snapdragon's HTP (`docs/npu.md`)."""
