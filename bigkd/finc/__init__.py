"""FINC: modes that one collection has more of than another.

`modes` compares two collections in one call. `summarize` makes a stored summary of one, of which
`modes_from` compares any two, `compare_many` all pairs, and `add_rows` brings one up to date.

The method is that of J. Zhang, M. Jalali, C. T. Li and F. Farnia, "Identification of Novel Modes in
Generative Models via Fourier-based Differential Clustering": the eigenvalues of
``C_test - rho C_reference``, the second moments of random Fourier features, are the excess
frequencies of modes, and its eigenvectors score rows.
"""

from bigkd.finc.comparison import compare_many, entropies, modes_from
from bigkd.finc.features import ScaledRule
from bigkd.finc.find import modes
from bigkd.finc.results import load_modes, save_modes
from bigkd.finc.scores import score
from bigkd.finc.sheets import contact_sheet, top_pictures
from bigkd.finc.stored import add_rows, load_summary, summarize

__all__ = [
    "ScaledRule",
    "add_rows",
    "compare_many",
    "contact_sheet",
    "entropies",
    "load_modes",
    "load_summary",
    "modes",
    "modes_from",
    "save_modes",
    "score",
    "summarize",
    "top_pictures",
]
