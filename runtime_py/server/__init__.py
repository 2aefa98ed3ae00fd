"""An HTTP server for one artifact: OpenAI's routes, and texts that are read once (docs/server.md).

Threads read and answer (`jobs`, `answers`); the event loop only moves bytes (`routes`, `guard`).
All requests share one engine and take turns at it (`shared_engine`). What a request has read
is kept as a saved state (`states`, `state_files`), and the next request that begins with the same
tokens continues there.
"""
