"""The names of `numpy.typing`, for :mod:`numpy_names`."""

from numpy import __getattr__ as __getattr__
