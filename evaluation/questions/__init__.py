"""Questions about long texts: systems, prompts, measuring and tables, for any benchmark."""
