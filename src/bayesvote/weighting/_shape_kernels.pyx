r"""Integrals of the posteriors (21) and (24) over the shape, all members at once.

With Binet's remainder R, logGamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + R(x), both posteriors have in u = log(shape)
the log-density, up to a constant,

    l(u) = x D - e (x log x - x) + kappa u - r R(x) + R(x s),    x = exp(u).

(21) has D = log a + sum log g + (c + t) log theta, e = r = b + t, kappa = r/2 + 1, s = inf; (24), its rate integrated
out, D = log p + sum log g - s log((q + sum g)/s), e = r - s, kappa = (r + 3)/2, with r and s grown by t. The large
terms of (24) that cancel do not occur in this form. For narrow posteriors, l is expanded in a Taylor series at the
mode, so that differences of log-densities are exact, too, and integrated by Gauss-Hermite quadrature. For wide ones the
trapezoidal rule in u converges exponentially.

A posterior is a row of ``p``: D, e, kappa, r, s, log s. A ``frame`` holds the mode, l there (unless the Taylor
series is used), the lower and the upper end of the mass relative to the mode, and the logarithm of the integral.
"""

import math

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, ceil, copysign, exp, fabs, log, sqrt

from bayesvote.core.arrays cimport contiguous, dim, doubles, own_doubles

cnp.import_array()

N_COEFFICIENTS = 18  # Taylor terms v**2 to v**17: exact to 1e-13 where they are used, as they converge up to |v| = pi

cdef enum:
    _N = 18  # the same
    _NODES = 20
    _MOST = 256  # points of a rule

cdef double STIRLING = 9.0  # from here on the eight terms below are exact to 1e-16
cdef double NARROW = 0.07  # standard deviation of log(shape) below which the Taylor series is used, to 1e-11
cdef double NEGLIGIBLE = -33.0  # log-density relative to the mode: exp(-33) is 5e-15
cdef double PI = math.pi

cdef double[8] BERNOULLI
cdef double[8] OF_BINET
cdef double[8] OF_SLOPE
cdef double[_N][8] ZETA_TERMS  # Euler-Maclaurin factors B_2j / (2j)! k (k + 1) ... (k + 2j - 2), a row per k
cdef double[_N][_N] FROM_POWERS  # [j, k]: from coefficients of (exp(v) - 1)**j to those of v**k
cdef double[18] EXPM1  # exact to 1e-16 up to |v| = 1
cdef double[_NODES] HERMITE_NODES
cdef double[_NODES] HERMITE_LOGS


def _fill_tables():
    bernoulli = [1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510]
    for j in range(8):
        BERNOULLI[j] = bernoulli[j]
        OF_BINET[j] = bernoulli[j] / (2 * (j + 1) * (2 * (j + 1) - 1))
        OF_SLOPE[j] = -bernoulli[j] / (2 * (j + 1))
        for k in range(2, N_COEFFICIENTS):
            ZETA_TERMS[k][j] = bernoulli[j] * math.prod(range(k, k + 2 * j + 1)) / math.factorial(2 * j + 2)
    # j!/k! times Stirling numbers of the second kind.
    stirling = np.zeros((N_COEFFICIENTS, N_COEFFICIENTS))
    stirling[0, 0] = 1.0
    for k in range(1, N_COEFFICIENTS):
        for j in range(1, k + 1):
            stirling[k, j] = j * stirling[k - 1, j] + stirling[k - 1, j - 1]
    for k in range(N_COEFFICIENTS):
        for j in range(N_COEFFICIENTS):
            FROM_POWERS[j][k] = stirling[k, j] * float(math.factorial(j)) / float(math.factorial(k))
    for k in range(18):
        EXPM1[k] = 1 / math.factorial(k + 1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    for k in range(_NODES):
        HERMITE_NODES[k] = nodes[k]
        HERMITE_LOGS[k] = math.log(weights[k]) + nodes[k] ** 2 / 2


_fill_tables()


cdef inline double series(const double *coefficients, double y) noexcept nogil:
    """Sum of coefficients[j] y**(2j + 1)."""
    cdef double s = 0.0
    cdef double y2 = y * y
    cdef int j
    for j in range(7, -1, -1):
        s = s * y2 + coefficients[j]
    return s * y


cdef double binet(double x, double u) noexcept nogil:
    """R(x), u = log x."""
    cdef double top, product, log_gamma
    if x >= STIRLING:
        return series(OF_BINET, 1.0 / x)
    top, product = x, 1.0
    while top < STIRLING:
        product *= top
        top += 1.0
    log_gamma = (top - 0.5) * log(top) - top + series(OF_BINET, 1.0 / top) - log(product)
    return log_gamma - (x - 0.5) * u + x


cdef void binet_slopes(double x, double u, double *first, double *second) noexcept nogil:
    """Scaled slopes, x R'(x) and x**2 R''(x), u = log x."""
    cdef double y, top, digamma, trigamma
    if x >= STIRLING:
        y = 1.0 / x
        first[0] = series(OF_SLOPE, y)
        second[0] = series(BERNOULLI, y)
        return
    top, digamma, trigamma = x, 0.0, 0.0
    while top < STIRLING:
        y = 1.0 / top
        digamma -= y
        trigamma += y * y
        top += 1.0
    y = 1.0 / top
    digamma += log(top) - u + y * (series(OF_SLOPE, y) - 0.5)  # less log x
    trigamma += y + y * y * (series(BERNOULLI, y) + 0.5)
    first[0] = x * digamma + 0.5
    second[0] = x * x * trigamma - x - 0.5


cdef inline double log_density(const double *p, double x, double u) noexcept nogil:
    """l(u), x = exp(u)."""
    cdef double of_s = binet(x * p[4], u + p[5]) if p[4] < INFINITY else 0.0
    return x * (p[0] + p[1] * (1.0 - u)) + p[2] * u - p[3] * binet(x, u) + of_s


cdef void slopes(const double *p, double u, double *first, double *second) noexcept nogil:
    """First and second derivative of l in u."""
    cdef double x = exp(u)
    cdef double first_r, second_r, linear
    cdef double first_s = 0.0
    cdef double second_s = 0.0
    binet_slopes(x, u, &first_r, &second_r)
    if p[4] < INFINITY:
        binet_slopes(x * p[4], u + p[5], &first_s, &second_s)
    linear = x * (p[0] - p[1] * u)
    first[0] = linear + p[2] - p[3] * first_r + first_s
    second[0] = linear - p[1] * x - p[3] * (first_r + second_r) + first_s + second_s


cdef double rough_mode(const double *p) noexcept nogil:
    """Mode to within some per cent when the samples outweigh the prior (Minka 2002): of (21) by inverting digamma."""
    cdef double q, gap
    if p[4] == INFINITY:
        q = p[0] / p[3]
        return log(exp(q) + 0.5) if q >= -2.22 else -log(-q - 0.5772156649015329)
    gap = max(-p[0] / p[4], 1e-12)  # log of the mean loss less the mean log loss
    return log((3.0 - gap + sqrt((gap - 3.0) * (gap - 3.0) + 24.0 * gap)) / (12.0 * gap))


cdef double find_mode(const double *p, double *curvature) noexcept nogil:
    """Mode of l, and minus its second derivative there: Newton's method, kept inside a bracket."""
    cdef double low = -745.0
    cdef double high = 709.0
    cdef double u = rough_mode(p)
    cdef double second = 0.0
    cdef double first, step
    cdef int k
    for k in range(200):
        slopes(p, u, &first, &second)
        if first > 0.0:
            low = u
        else:
            high = u
        step = -first / second if second < 0.0 else copysign(2.0, first)
        # Newton's error after a step is about the square of the step.
        if fabs(step) <= 3e-7:
            u += step
            break
        step = min(max(step, -2.0), 2.0)
        u = u + step if low < u + step < high else 0.5 * (low + high)
    curvature[0] = -second
    return u


cdef void scaled_zetas(double x, double *scratch, int n_out, double *out) noexcept nogil:
    """Derivatives of R, scaled: x**k zeta(k, x) - x/(k - 1) - 1/2 for k = 2, 3, ..., by Euler-Maclaurin."""
    cdef int n = <int> ceil(14.0 - x) if 0.0 < x < 14.0 else 0
    cdef double *ratios = scratch
    cdef double *powers = scratch + n + 1
    cdef double top, y, rest, total
    cdef int j, k
    for j in range(n + 1):
        ratios[j] = x / (x + j)
        powers[j] = ratios[j]
    top = x + n
    y = 1.0 / top
    for k in range(2, n_out):
        rest = series(ZETA_TERMS[k], y)
        if n == 0:
            out[k] = rest
        else:
            for j in range(n + 1):
                powers[j] *= ratios[j]
            total = powers[n] * (top / (k - 1) + 0.5 + rest) - x / (k - 1) - 0.5
            for j in range(n):
                total += powers[j]
            out[k] = total


cdef int taylor(const double *p, double mode, double sd, double *scratch, double *out) noexcept nogil:
    """Compute the coefficients of l in powers of v = u - mode; the first two are zero. Return the number needed.

    In powers of exp(v) - 1 they are sums of zeta functions in which nothing cancels.
    """
    # Terms fall as (v/pi)**k; six standard deviations out, where the density is exp(-18), they must be below 1e-13.
    cdef double terms = 3.0 + ceil((2.0 * log(sd) - 12.0) / log(6.0 * sd / PI))
    cdef int n = <int> terms if 3.0 <= terms <= _N else _N
    cdef double x = exp(mode)
    cdef double *in_z = scratch
    cdef double *rest = scratch + n
    cdef double sign = -1.0
    cdef int j, k
    scaled_zetas(x, rest, n, out)
    for k in range(n):
        in_z[k] = 0.0
    if p[4] < INFINITY:
        scaled_zetas(x * p[4], rest, n, in_z)
    for k in range(2, n):
        in_z[k] = sign / k * (p[2] + p[1] * x / (k - 1) + p[3] * out[k] - in_z[k])
        sign = -sign
    for k in range(_N):
        out[k] = 0.0
    for j in range(2, n):
        for k in range(j, n):
            out[k] += FROM_POWERS[j][k] * in_z[j]
    return n


cdef inline double relative_density(
    const double *p, double mode, double at_mode, const double *coefficients, double v
) noexcept nogil:
    """l(mode + v) - l(mode)."""
    cdef double s = 0.0
    cdef int k
    if coefficients[2] == 0.0:
        return log_density(p, exp(mode + v), mode + v) - at_mode
    for k in range(_N - 1, 1, -1):
        s = s * v + coefficients[k]
    return s * v * v


cdef double edge(const double *p, double mode, double at_mode, double step) noexcept nogil:
    """Return the point, on the side of step, from which the density is negligible."""
    cdef double v = step
    while log_density(p, exp(mode + v), mode + v) - at_mode > NEGLIGIBLE:
        v *= 1.25
    return v


cdef int narrow_rule(const double *coefficients, int n, double sd, double *z, double *log_p) noexcept nogil:
    """Gauss-Hermite points exp(v) - 1, and logarithms of density times weight, of a narrow posterior."""
    cdef double[_NODES] v
    cdef int j, k
    for j in range(_NODES):
        v[j] = sd * HERMITE_NODES[j]
        log_p[j] = 0.0
        z[j] = 0.0
    for k in range(n - 1, 1, -1):
        for j in range(_NODES):
            log_p[j] = log_p[j] * v[j] + coefficients[k]
    for k in range((18 if sd > 0.04 else 12) - 1, -1, -1):
        for j in range(_NODES):
            z[j] = z[j] * v[j] + EXPM1[k]
    for j in range(_NODES):
        log_p[j] = log_p[j] * v[j] * v[j] + HERMITE_LOGS[j]
        z[j] *= v[j]
    return _NODES


cdef int wide_rule(
    const double *p, double mode, double at_mode, double low, double high, double h, double *z, double *log_p
) noexcept nogil:
    """Trapezoidal points exp(v) - 1, and logarithms of the density, of a wide posterior."""
    cdef double steps = ceil((high - low) / h)
    cdef int n = <int> steps if 1.0 <= steps < _MOST else _MOST - 1
    cdef double x0 = exp(mode)
    cdef double x = exp(mode + low)
    cdef double growth = exp((high - low) / n)
    cdef int j
    for j in range(n + 1):
        z[j] = x / x0 - 1.0
        log_p[j] = log_density(p, x, mode + low + j * (high - low) / n) - at_mode
        x *= growth
    return n + 1


cdef void integrate_one(const double *p, double *frame, double *c, double *mean, double *variance) noexcept nogil:
    """Posterior mean and variance of a shape, with its frame."""
    cdef double[64] scratch
    cdef double[_MOST] z
    cdef double[_MOST] log_p
    cdef double curvature, low, high, spacing, weight
    cdef double mode = find_mode(p, &curvature)
    cdef double x0 = exp(mode)
    cdef double sd = 1.0 / sqrt(curvature)
    cdef double at_mode = 0.0
    cdef double mass = 0.0
    cdef double first = 0.0
    cdef double second = 0.0
    cdef int n, j
    if sd < NARROW:
        n = narrow_rule(c, taylor(p, mode, sd, scratch, c), sd, z, log_p)
        low, high, spacing = -12.0 * sd, 9.0 * sd, sd
    else:
        for j in range(_N):
            c[j] = 0.0
        at_mode = log_density(p, x0, mode)
        low, high = edge(p, mode, at_mode, -8.0 * sd), edge(p, mode, at_mode, 5.0 * sd)
        # The rule's error is about exp(-2 pi a / h) for a density analytic within a of the real line.
        spacing = min(0.17, 0.48 * sd)
        n = wide_rule(p, mode, at_mode, low, high, spacing, z, log_p)
        spacing = (high - low) / (n - 1)
    for j in range(n):
        weight = exp(log_p[j])
        mass += weight
        first += weight * z[j]
        second += weight * z[j] * z[j]
    first /= mass
    mean[0] = x0 * (1.0 + first)
    variance[0] = x0 * x0 * (second / mass - first * first)
    frame[0], frame[1], frame[2], frame[3], frame[4] = mode, at_mode, low, high, log(mass * spacing)


def integrate(p, frames, coefficients, mean, variance):
    """Posterior mean and variance of every shape, with its frame."""
    p = contiguous(p)
    cdef const double *p_ = doubles(p)
    cdef double *frames_ = own_doubles(frames)
    cdef double *coefficients_ = own_doubles(coefficients)
    cdef double *mean_ = own_doubles(mean)
    cdef double *variance_ = own_doubles(variance)
    cdef Py_ssize_t n = dim(p, 0)
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            integrate_one(p_ + 6 * i, frames_ + 5 * i, coefficients_ + _N * i, mean_ + i, variance_ + i)


def densities(p, frames, coefficients, v, out):
    """Normalised density of u at mode + v, for every posterior at its own points v."""
    p, frames, coefficients, v = contiguous(p), contiguous(frames), contiguous(coefficients), contiguous(v)
    cdef const double *p_ = doubles(p)
    cdef const double *frame = doubles(frames)
    cdef const double *c = doubles(coefficients)
    cdef const double *v_ = doubles(v)
    cdef double *result = own_doubles(out)
    cdef Py_ssize_t n = dim(v, 0)
    cdef Py_ssize_t n_points = dim(v, 1)
    cdef Py_ssize_t i, j
    cdef double log_p
    with nogil:
        for i in range(n):
            for j in range(n_points):
                log_p = relative_density(p_ + 6 * i, frame[5 * i], frame[5 * i + 1], c + _N * i, v_[i * n_points + j])
                result[i * n_points + j] = exp(log_p - frame[5 * i + 4])
