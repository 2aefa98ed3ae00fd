"""For every test: no network."""

import os

# Before any test imports transformers: what isn't on this machine is an error, not a download.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
