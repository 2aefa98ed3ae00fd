"""The three graphs as small modules that own their example inputs and their signature.

This is what all back ends share. A back end supplies the operators: a `GraphState`, the
`AttentionState` that the backbone meets while its graph is traced.
"""
