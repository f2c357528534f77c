"""DID: dissimilarity of images, series and fields up to smooth deformation.

`dissimilarity` of one pair, `match` of what was found where, `nearest` of a collection, and the
`matrix` of all pairs; `warp` makes smooth deformations to try them on.
"""

from bigkd.did.choice import DidOptions, Representation
from bigkd.did.dissimilarity import dissimilarity, match
from bigkd.did.matrix import matrix
from bigkd.did.nearest import nearest
from bigkd.did.pictures import match_sheet
from bigkd.did.warp import displacement, jacobian, warp

__all__ = [
    "DidOptions",
    "Representation",
    "displacement",
    "dissimilarity",
    "jacobian",
    "match",
    "match_sheet",
    "matrix",
    "nearest",
    "warp",
]
