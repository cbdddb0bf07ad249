"""Gradients of fused functions compared with torch.autograd in float64."""
