"""`train-scorer`: what is worth keeping, learnt from the attention that later text pays."""
