"""Online classifier ensembles with Bayesian weights."""

__version__ = "0.1.0"
