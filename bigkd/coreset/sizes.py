"""How many rows an error needs."""

from typing import Literal, get_args

from bigkd.errors import InputError
from bigkd.kernels.sample_promises import (
    size_by_discrepancy,
    size_by_features,
    size_by_ranges,
    size_for_sample,
)

Rule = Literal["random", "ranges", "low_discrepancy", "lemma_a1"]


def size_for(
    eps: float,
    *,
    delta: float = 0.01,
    width: int | None = None,
    n: int | None = None,
    rule: Rule = "random",
) -> int:
    """Number of rows that an error needs, by one of four rules.

    Parameters
    ----------
    eps
        The error, as the rule has it; kernels have ``K(x, x) = 1`` and collections weight W.
    delta
        Probability of failure of a random sample.
    width
        Width of the rows; for ``"ranges"`` and ``"low_discrepancy"``.
    n
        Number of rows; for ``"lemma_a1"``.
    rule
        ``"random"``: a random sample, `sample`, has a kernel distance of at most ``eps W``; a
        promise, whatever the rows. ``"ranges"``: its kernel density errs nowhere by more than
        ``eps W``, Theorem 5.2; of the order of ``(d + log 1/delta)/eps**2``. ``"low_discrepancy"``:
        the same for a coreset of low discrepancy, `thin`, in ``eps**(-2 + 2/(d+1))`` and
        logarithms; in width 1 ``1/eps``, `sorted_1d`. Both leave a constant open, taken as 1: rules
        and no promises. ``"lemma_a1"``: ``D**2 <= eps W**2`` by Lemma A.1, with the paper's
        constants.

    Returns
    -------
    int
        At least 1. It does not ask for more rows than there are only because they are few: compare
        with the number of rows.

    Raises
    ------
    InputError
        If an argument is out of range, or the rule's own is missing.

    Notes
    -----
    The best subset of a given size is NP-hard to find (Theorem A.2 [1]_): what `thin` finds is good
    and not the best, so measure it; `distance_to_full` of its result.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011, arXiv:1001.0591.

    Examples
    --------
    >>> size_for(0.05)
    6513
    >>> size_for(0.01, width=1, rule="low_discrepancy")
    100
    """
    if rule == "random":
        return size_for_sample(eps, delta)
    if rule == "lemma_a1":
        return size_by_features(eps, delta, _needed("n", n, rule))
    if rule == "ranges":
        return size_by_ranges(eps, delta, _needed("width", width, rule))
    if rule == "low_discrepancy":
        return size_by_discrepancy(eps, _needed("width", width, rule))
    raise InputError(f"rule must be one of {get_args(Rule)}; got {rule!r}.")


def _needed(name: str, value: int | None, rule: str) -> int:
    if value is None:
        raise InputError(f"rule={rule!r} needs {name}; pass {name}=.")
    return value
