"""xarray."""
