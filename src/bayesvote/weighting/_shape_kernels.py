r"""Integrals of the posteriors (21) and (24) over the shape, all members at once.

With Binet's remainder R, logGamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + R(x), both posteriors have in u = log(shape)
the log-density, up to a constant,

    l(u) = x D - e (x log x - x) + kappa u - r R(x) + R(x s),    x = exp(u).

(21) has D = log a + sum log g + (c + t) log theta, e = r = b + t, kappa = r/2 + 1, s = inf; (24), its rate integrated
out, D = log p + sum log g - s log((q + sum g)/s), e = r - s, kappa = (r + 3)/2, with r and s grown by t. The large
terms of (24) that cancel are gone from this form. Narrow posteriors are taken by the Taylor series of l at the mode, so
that the differences of log-densities are exact too, and integrated by Gauss-Hermite quadrature; for wide ones the
trapezoidal rule in u converges exponentially.

A posterior is a row of ``p``: D, e, kappa, r, s, log s. A ``frame`` is what was found out about it: the mode, l there
(unless l is taken by its Taylor series), the lower and the upper end of all mass that counts, relative to the mode, and
the logarithm of the integral.
"""

import math

import numpy as np
from numba import njit

from bayesvote._checks import Array

BERNOULLI = np.array([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510])
ORDERS = np.arange(1, 9)
OF_BINET = BERNOULLI / (2 * ORDERS * (2 * ORDERS - 1))
OF_SLOPE = -BERNOULLI / (2 * ORDERS)
STIRLING = 9.0  # from here on the eight terms above are exact to 1e-16
N_COEFFICIENTS = 18  # Taylor terms v**2 to v**17: exact to 1e-13 where they are used, as they converge up to |v| = pi
NARROW = 0.12  # standard deviation of log(shape) below which the Taylor series is used
NEGLIGIBLE = -33.0  # log-density, relative to the mode, below which mass does not count
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _zeta_terms() -> Array:
    """Euler-Maclaurin factors B_2j / (2j)! k (k + 1) ... (k + 2j - 2), a row per k, a column per j."""
    out = np.zeros((N_COEFFICIENTS, 8))
    for k in range(2, N_COEFFICIENTS):
        for j in range(8):
            rising = math.prod(range(k, k + 2 * j + 1))
            out[k, j] = BERNOULLI[j] * rising / math.factorial(2 * j + 2)
    return out


def _from_powers() -> Array:
    """Matrix [j, k] from coefficients of (exp(v) - 1)**j to those of v**k: j!/k! times Stirling numbers."""
    stirling = np.zeros((N_COEFFICIENTS, N_COEFFICIENTS))
    stirling[0, 0] = 1.0
    for k in range(1, N_COEFFICIENTS):
        for j in range(1, k + 1):
            stirling[k, j] = j * stirling[k - 1, j] + stirling[k - 1, j - 1]
    factorials = np.array([float(math.factorial(k)) for k in range(N_COEFFICIENTS)])
    return np.ascontiguousarray((stirling * factorials / factorials[:, None]).T)


ZETA_TERMS = _zeta_terms()
FROM_POWERS = _from_powers()
EXPM1 = np.array([1 / math.factorial(k) for k in range(1, 19)])  # exact to 1e-16 up to |v| = 1
HERMITE_NODES, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
HERMITE_LOGS = np.log(HERMITE_WEIGHTS) + HERMITE_NODES**2 / 2


@njit(cache=True, nogil=True, error_model="numpy")
def series(coefficients: Array, y: float) -> float:
    """Sum of coefficients[j] y**(2j + 1)."""
    s, y2 = 0.0, y * y
    for j in range(7, -1, -1):
        s = s * y2 + coefficients[j]
    return s * y


@njit(cache=True, nogil=True, error_model="numpy")
def binet(x: float, u: float) -> float:
    """R(x), u = log x."""
    if x >= STIRLING:
        return series(OF_BINET, 1.0 / x)
    top, product = x, 1.0
    while top < STIRLING:
        product *= top
        top += 1.0
    log_gamma = (top - 0.5) * math.log(top) - top + series(OF_BINET, 1.0 / top) - math.log(product)
    return log_gamma - (x - 0.5) * u + x


@njit(cache=True, nogil=True, error_model="numpy")
def binet_slopes(x: float, u: float) -> tuple[float, float]:
    """Scaled slopes, x R'(x) and x**2 R''(x), u = log x."""
    if x >= STIRLING:
        y = 1.0 / x
        return series(OF_SLOPE, y), series(BERNOULLI, y)
    top, digamma, trigamma = x, 0.0, 0.0
    while top < STIRLING:
        y = 1.0 / top
        digamma -= y
        trigamma += y * y
        top += 1.0
    y = 1.0 / top
    digamma += math.log(top) - u + y * (series(OF_SLOPE, y) - 0.5)  # less log x
    trigamma += y + y * y * (series(BERNOULLI, y) + 0.5)
    return x * digamma + 0.5, x * x * trigamma - x - 0.5


@njit(cache=True, nogil=True, error_model="numpy")
def log_density(p: Array, x: float, u: float) -> float:
    """l(u), x = exp(u)."""
    of_s = binet(x * p[4], u + p[5]) if p[4] < math.inf else 0.0
    return float(x * (p[0] + p[1] * (1.0 - u)) + p[2] * u - p[3] * binet(x, u) + of_s)


@njit(cache=True, nogil=True, error_model="numpy")
def slopes(p: Array, u: float) -> tuple[float, float]:
    """First and second derivative of l in u."""
    x = math.exp(u)
    first_r, second_r = binet_slopes(x, u)
    first_s, second_s = 0.0, 0.0
    if p[4] < math.inf:
        first_s, second_s = binet_slopes(x * p[4], u + p[5])
    linear = x * (p[0] - p[1] * u)
    first = linear + p[2] - p[3] * first_r + first_s
    second = linear - p[1] * x - p[3] * (first_r + second_r) + first_s + second_s
    return first, second


@njit(cache=True, nogil=True, error_model="numpy")
def rough_mode(p: Array) -> float:
    """Mode to within some per cent when the samples outweigh the prior (Minka 2002): of (21) by inverting digamma."""
    if p[4] == math.inf:
        q = p[0] / p[3]
        return math.log(math.exp(q) + 0.5) if q >= -2.22 else -math.log(-q - 0.5772156649015329)
    gap = max(-p[0] / p[4], 1e-12)  # log of the mean loss less the mean log loss
    return math.log((3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap))


@njit(cache=True, nogil=True, error_model="numpy")
def find_mode(p: Array) -> tuple[float, float]:
    """Mode of l and minus its second derivative there: Newton's method, kept inside a bracket."""
    low, high, u, second = -745.0, 709.0, rough_mode(p), 0.0
    for _ in range(200):
        first, second = slopes(p, u)
        if first > 0.0:
            low = u
        else:
            high = u
        step = -first / second if second < 0.0 else math.copysign(2.0, first)
        # Newton's error after a step is about the square of the step.
        if abs(step) <= 3e-7:
            u += step
            break
        step = min(max(step, -2.0), 2.0)
        u = u + step if low < u + step < high else 0.5 * (low + high)
    return u, -second


@njit(cache=True, nogil=True, error_model="numpy")
def scaled_zetas(x: float, scratch: Array, out: Array) -> None:
    """Derivatives of R, scaled: x**k zeta(k, x) - x/(k - 1) - 1/2 for k = 2, 3, ..., by Euler-Maclaurin."""
    n = max(0, math.ceil(14.0 - x))
    ratios, powers = scratch[: n + 1], scratch[n + 1 : 2 * n + 2]
    for j in range(n + 1):
        ratios[j] = x / (x + j)
        powers[j] = ratios[j]
    top = x + n
    y = 1.0 / top
    for k in range(2, out.size):
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


@njit(cache=True, nogil=True, error_model="numpy")
def taylor(p: Array, mode: float, sd: float, scratch: Array, out: Array) -> int:
    """Coefficients of l in powers of v = u - mode; the first two are zero. Returns how many are needed.

    In powers of exp(v) - 1 they are sums of zeta functions in which nothing cancels.
    """
    # Terms fall as (v/pi)**k; six standard deviations out, where the density is exp(-18), they must be below 1e-13.
    n = min(3 + math.ceil((2.0 * math.log(sd) - 12.0) / math.log(6.0 * sd / math.pi)), out.size)
    x, in_z, rest = math.exp(mode), scratch[:n], scratch[n:]
    scaled_zetas(x, rest, out[:n])
    in_z[:] = 0.0
    if p[4] < math.inf:
        scaled_zetas(x * p[4], rest, in_z)
    sign = -1.0
    for k in range(2, n):
        in_z[k] = sign / k * (p[2] + p[1] * x / (k - 1) + p[3] * out[k] - in_z[k])
        sign = -sign
    out[:] = 0.0
    for j in range(2, n):
        factor = in_z[j]
        for k in range(j, n):
            out[k] += FROM_POWERS[j, k] * factor
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def relative_density(p: Array, mode: float, at_mode: float, coefficients: Array, v: float) -> float:
    """l(mode + v) - l(mode)."""
    if coefficients[2] == 0.0:
        return log_density(p, math.exp(mode + v), mode + v) - at_mode
    s = 0.0
    for k in range(coefficients.size - 1, 1, -1):
        s = s * v + coefficients[k]
    return s * v * v


@njit(cache=True, nogil=True, error_model="numpy")
def edge(p: Array, mode: float, at_mode: float, step: float) -> float:
    """Where, on the side of step, the density has become negligible."""
    v = step
    while log_density(p, math.exp(mode + v), mode + v) - at_mode > NEGLIGIBLE:
        v *= 1.25
    return v


@njit(cache=True, nogil=True, error_model="numpy")
def horner(polynomial: Array, v: Array, coefficient: float) -> None:
    """One step of Horner's rule at every v."""
    for j in range(v.size):
        polynomial[j] = polynomial[j] * v[j] + coefficient


@njit(cache=True, nogil=True, error_model="numpy")
def narrow_rule(coefficients: Array, sd: float, v: Array, z: Array, log_p: Array) -> int:
    """Gauss-Hermite points exp(v) - 1, and logarithms of density times weight, of a narrow posterior."""
    n = HERMITE_NODES.size
    for j in range(n):
        v[j] = sd * HERMITE_NODES[j]
        log_p[j] = 0.0
        z[j] = 0.0
    for k in range(coefficients.size - 1, 1, -1):
        horner(log_p, v, coefficients[k])
    for k in range((EXPM1.size if sd > 0.04 else 12) - 1, -1, -1):
        horner(z, v, EXPM1[k])
    for j in range(n):
        log_p[j] = log_p[j] * v[j] * v[j] + HERMITE_LOGS[j]
        z[j] *= v[j]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def wide_rule(p: Array, mode: float, at_mode: float, low: float, high: float, h: float, z: Array, log_p: Array) -> int:
    """Trapezoidal points exp(v) - 1, and logarithms of the density, of a wide posterior."""
    n = min(math.ceil((high - low) / h), z.size - 1)
    x0, x, growth = math.exp(mode), math.exp(mode + low), math.exp((high - low) / n)
    for j in range(n + 1):
        z[j] = x / x0 - 1.0
        log_p[j] = log_density(p, x, mode + low + j * (high - low) / n) - at_mode
        x *= growth
    return n + 1


@njit(cache=True, nogil=True, error_model="numpy")
def integrate(p: Array, frames: Array, coefficients: Array, mean: Array, variance: Array) -> None:
    """Posterior mean and variance of every shape, with its frame."""
    scratch, z, log_p, v = np.empty(64), np.empty(256), np.empty(256), np.empty(HERMITE_NODES.size)
    for i in range(p.shape[0]):
        c = coefficients[i]
        mode, curvature = find_mode(p[i])
        x0, sd, at_mode = math.exp(mode), 1.0 / math.sqrt(curvature), 0.0
        if sd < NARROW:
            n_coefficients = taylor(p[i], mode, sd, scratch, c)
            n = narrow_rule(c[:n_coefficients], sd, v, z, log_p)
            low, high, spacing = -12.0 * sd, 9.0 * sd, sd
        else:
            c[:] = 0.0
            at_mode = log_density(p[i], x0, mode)
            low, high = edge(p[i], mode, at_mode, -8.0 * sd), edge(p[i], mode, at_mode, 5.0 * sd)
            # The rule's error is about exp(-2 pi a / h) for a density analytic within a of the real line.
            spacing = min(0.17, 0.48 * sd)
            n = wide_rule(p[i], mode, at_mode, low, high, spacing, z, log_p)
            spacing = (high - low) / (n - 1)
        mass, first, second = 0.0, 0.0, 0.0
        for j in range(n):
            weight = math.exp(log_p[j])
            mass += weight
            first += weight * z[j]
            second += weight * z[j] * z[j]
        first /= mass
        mean[i] = x0 * (1.0 + first)
        variance[i] = x0 * x0 * (second / mass - first * first)
        frames[i, 0], frames[i, 1], frames[i, 2] = mode, at_mode, low
        frames[i, 3], frames[i, 4] = high, math.log(mass * spacing)


@njit(cache=True, nogil=True, error_model="numpy")
def densities(p: Array, frames: Array, coefficients: Array, v: Array, out: Array) -> None:
    """Normalised density of u at mode + v, for every posterior at its own points v."""
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            log_p = relative_density(p[i], frames[i, 0], frames[i, 1], coefficients[i], v[i, j])
            out[i, j] = math.exp(log_p - frames[i, 4])
