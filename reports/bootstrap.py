"""How sure a number is: 95 % intervals by resampling its items (segments or recordings) with replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

DRAWS = 1000


def bootstrap_interval(
    statistic: Callable[[np.ndarray], float], n_items: int, rng: np.random.Generator, draws: int = DRAWS
) -> tuple[float, float] | None:
    """The 2.5th and 97.5th percentile of `statistic` over `draws` resamples; None below two items.

    `statistic` gets the indices of the items drawn, `(n_items,)`, and may return NaN for a draw it is not defined
    on. Percentile bootstrap (Efron 1979; Koehn 2004 for BLEU).
    """
    if n_items < 2:
        return None
    import numpy as np

    values = np.array([statistic(rng.integers(n_items, size=n_items)) for _ in range(draws)])
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
