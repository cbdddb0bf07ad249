import numpy as np
from loss import distances, mean_squared_error, predict

FEATURES, WEIGHTS = np.eye(3), np.array([[1.0], [2.0], [3.0]])


def test_a_perfect_prediction_has_no_error():
    """Fails: the loss pairs every prediction with every target, and is 1.33."""
    assert mean_squared_error(predict(FEATURES, WEIGHTS), np.array([1.0, 2.0, 3.0])) == 0


def test_a_loss_falls():
    """Passes without the plugin, though it measures nonsense."""
    target = np.array([1.0, 2.0, 3.0])
    near = mean_squared_error(predict(FEATURES, WEIGHTS), target)
    assert near < mean_squared_error(predict(FEATURES, 10 * WEIGHTS), target)


def test_all_pairs():
    assert distances(np.arange(3.0), np.arange(4.0)).shape == (3, 4)
