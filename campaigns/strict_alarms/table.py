"""The drivers by the name of the distribution: the module here, and its function."""

from __future__ import annotations

#: The driver of torchdiffeq also calls torchsde, auraloss and entmax.
DRIVERS: dict[str, tuple[str, str]] = {
    "einops": ("drivers", "einops"),
    "x-transformers": ("drivers", "x_transformers"),
    "torchmetrics": ("drivers", "torchmetrics"),
    "kornia": ("drivers", "kornia"),
    "transformers": ("drivers", "transformers"),
    "diffusers": ("training", "diffusers"),
    "gpytorch": ("probability", "gpytorch"),
    "linear-operator": ("probability", "linear_operator"),
    "botorch": ("probability", "botorch"),
    "pyro-ppl": ("probability", "pyro_ppl"),
    "torch_geometric": ("training", "torch_geometric"),
    "captum": ("training", "captum"),
    "pytorch-lightning": ("training", "pytorch_lightning"),
    "pytorch-metric-learning": ("training", "pytorch_metric_learning"),
    "zuko": ("probability", "zuko"),
    "monai": ("training", "monai"),
    "stable-baselines3": ("training", "stable_baselines3"),
    "vector-quantize-pytorch": ("training", "vector_quantize_pytorch"),
    "pytorch-msssim": ("training", "image_quality"),
    "torchdiffeq": ("training", "small_packages"),
    "e3nn": ("training", "e3nn"),
}

__all__ = ["DRIVERS"]
