"""A loss with an accident in it, as met in the wild: predictions are (N, 1), targets (N,)."""

import numpy as np


def predict(features, weights):
    return features @ weights  # (N, 1), because the weights are a column


def mean_squared_error(predicted, target):
    return float(((predicted - target) ** 2).mean())


def distances(a, b):
    """All pairs, on purpose: both operands are written at one rank."""
    return np.abs(a[:, None] - b[None, :])
