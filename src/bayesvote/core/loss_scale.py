"""Meaning of the losses of labels."""

from enum import Enum


class LossScale(Enum):
    """Meaning of the losses of labels, from which :mod:`bayesvote.model` computes probabilities."""

    SHARE = "share of the vote against a label"
    LOG_LIKELIHOOD = "minus the log-likelihood of a label, summed over the members"
    LOG_PROBABILITY = "minus the log-probability of a label"
    LOG_ODDS = "minus the log-odds of a label against the others"
    MARGIN = "minus the mean vote for a label, in [-1, 1]"
