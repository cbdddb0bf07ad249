"""The example models, one module each; `examples/make_models.py` writes them all."""
