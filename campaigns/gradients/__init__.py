"""Gradients of fused functions beside torch.autograd in float64."""
