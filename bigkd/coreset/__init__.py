"""Few weighted rows that stand for a whole collection.

`thin` chooses them so that a kernel hardly tells them from all rows, `sample` draws them at random,
`sorted_1d` takes quantiles of numbers; `size_for` says how many an error needs. Each is one pass
over rows of any number, and returns row numbers, weights with the same sum and what is promised.
"""

from bigkd.coreset.quantiles import sorted_1d
from bigkd.coreset.sampling import sample
from bigkd.coreset.sizes import size_for
from bigkd.coreset.thinning import thin

__all__ = ["sample", "size_for", "sorted_1d", "thin"]
