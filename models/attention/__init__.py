"""Attention through transformers' interface: what a layer passes, masks, who reads the result."""
