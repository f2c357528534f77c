"""What the library computes, by definition: loops in float64 or fractions, slow and plain."""

from fractions import Fraction


def fractions(rows):
    return [[Fraction(element) for element in row] for row in rows.tolist()]


def weights_of(rows, weights):
    return [Fraction(1)] * len(rows) if weights is None else list(map(Fraction, weights.tolist()))


def mean(rows, weights=None):
    """Weighted mean of rows."""
    rows, weights = fractions(rows), weights_of(rows, weights)
    total = [Fraction(0)] * len(rows[0])
    for row, weight in zip(rows, weights, strict=True):
        for at, element in enumerate(row):
            total[at] += weight * element
    return [float(element / sum(weights)) for element in total]


def second_moment(rows, weights=None):
    """Sum of weights, and weighted sum of outer products."""
    rows, weights = fractions(rows), weights_of(rows, weights)
    width = len(rows[0]) if rows else 0
    outer = [[Fraction(0)] * width for _ in range(width)]
    for row, weight in zip(rows, weights, strict=True):
        for i in range(width):
            for j in range(width):
                outer[i][j] += weight * row[i] * row[j]
    return float(sum(weights)), [[float(element) for element in line] for line in outer]


def split_mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def group(index, n_groups, seed):
    """Random group of one row number."""
    start = (index + seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64
    return split_mix(split_mix(start)) % n_groups


def top_rows(scores, index, n_top):
    """Row numbers of the largest scores, the smaller number first where they tie."""
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], index[at]))
    return [int(index[at]) for at in order[:n_top]]


def kernel_sum(kernel, x, y, x_weights=None, y_weights=None):
    """Sum of products of weights, and weighted sum of the kernel over all pairs."""
    weight = total = Fraction(0)
    for row, a in zip(fractions(x), weights_of(x, x_weights), strict=True):
        for other, b in zip(fractions(y), weights_of(y, y_weights), strict=True):
            weight += a * b
            total += a * b * kernel(row, other)
    return float(weight), float(total)
