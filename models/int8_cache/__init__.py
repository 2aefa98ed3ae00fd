"""K and V as signed bytes, with one scale for each channel."""
