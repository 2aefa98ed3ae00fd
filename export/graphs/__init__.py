"""The three graphs as small modules that own their example inputs and their signature.

All back ends share these modules. A back end supplies the operators through a `GraphState`, the
`AttentionState` that the backbone calls while its graph is traced.
"""
