"""BABILong (arXiv 2406.10149): bAbI's facts hidden in books, from the user's own copies."""
