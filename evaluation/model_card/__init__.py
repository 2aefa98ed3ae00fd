"""What the model card says was measured: which parts, and the sections made from rows."""
