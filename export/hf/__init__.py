"""EdgeInfinite among transformers' own exporters: `register_exporter`, then `AutoHfExporter`."""
