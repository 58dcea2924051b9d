"""Posterior mode of log-odds with a Gaussian prior under the logistic loss."""

from libc.math cimport exp, fabs

cdef extern from *:
    """
    #define PI_EIGHTH 0.39269908169872414
    """
    const double PI_EIGHTH  # mean probability of log-odds N(a, v): about sigmoid(a/sqrt(1 + v pi/8)) (MacKay 1992)


cdef inline double sigmoid(double z) noexcept nogil:
    return 1.0 / (1.0 + exp(-z)) if z >= 0.0 else exp(z) / (1.0 + exp(z))


cdef inline double settled(double odds, double reach) noexcept nogil:
    """Return a label's log-odds at the posterior mode, from the prior log-odds and their variance ``reach``.

    They solve z = odds + reach sigmoid(-z), between odds and odds + reach. Newton's method can cycle where the loss is
    straight. So bisect when a step leaves the interval, or is more than half of the step before.
    """
    cdef double low = odds
    cdef double high = odds + reach
    cdef double z = odds
    cdef double before = reach
    cdef double miss, excess, step
    cdef int turn
    for turn in range(100):
        miss = sigmoid(-z)
        excess = z - odds - reach * miss
        if excess > 0.0:
            high = z
        else:
            low = z
        step = -excess / (1.0 + reach * miss * (1.0 - miss))
        if not (low <= z + step <= high) or 2.0 * fabs(step) > fabs(before):
            step = 0.5 * (low + high) - z
        z += step
        if fabs(step) <= 1e-12 * (1.0 + fabs(z)):
            return z
        before = step
    return z
