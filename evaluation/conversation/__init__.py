"""`evaluate conversation`: what a long chat with tools leaves of the facts told in it."""
