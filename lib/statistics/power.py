"""How many problems decide, and the smallest effect that so many can show."""

from math import ceil, inf, isnan, nan, sqrt
from statistics import NormalDist

Z_ALPHA = NormalDist().inv_cdf(0.975)  # of a two-sided test at 5 %
Z_POWER = NormalDist().inv_cdf(0.8)  # of a power of 80 %


def n_deciding(distance: float, deviation: float) -> float:
    """Return how many problems put the interval on one side of an end, with power 0.8.

    The end is `distance` away; NaN at 0, and of a deviation that one problem alone
    leaves unknown. For one part (Guenther 1981, Am. Stat. 35:243), the last term for
    Student's distribution instead of the normal one.
    """
    if distance == 0 or isnan(deviation):
        return nan
    normal = ((Z_ALPHA + Z_POWER) * deviation / distance) ** 2
    return ceil(normal + Z_ALPHA**2 / 2)


def smallest_effect(n: int, deviation: float) -> float:
    """Return the distance for which `n_deciding` asks for n problems.

    It is infinite where no distance asks for so few.
    """
    if n <= Z_ALPHA**2 / 2:
        return inf
    return (Z_ALPHA + Z_POWER) * deviation / sqrt(n - Z_ALPHA**2 / 2)
