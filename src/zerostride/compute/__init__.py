"""Floor 4: computing over plans; `reference` is NumPy over zero-stride views, the oracle."""
