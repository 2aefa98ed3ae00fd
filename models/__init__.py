"""The mathematics: geometry, compressive memory, memory gate, attention, attaching, loading.

Nothing is imported here, because the runtime needs `geometry` where torch isn't installed.
"""
