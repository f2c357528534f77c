"""The few constants that shape a plan; none of them changes what an answer means."""

MEGABYTE = 1024**2

BLOCK_BYTES = 32 * MEGABYTE
"""Raw bytes that one read aims at, where the store leaves the choice open."""

BLOCK_ROWS = 65_536
"""Most rows of one read, where the store leaves the choice open: narrow rows cost work, too."""

STRIPE_WORK = 150_000_000_000
"""Multiply-adds that one task aims at: a few seconds of one core."""

STRIPE_BYTES = 1024 * MEGABYTE
"""Most raw bytes that one task reads, unless a single block is larger."""

HELD_BYTES = 256 * MEGABYTE
"""Most raw bytes of Dask blocks, or of cached tiles of pairs, that one task holds at once."""

MAX_STRIPES = 4_096
"""Most tasks of one pass; beyond it stripes grow instead, so that graphs stay small."""

COMPUTED_BLOCKS = 256
"""Blocks whose results are fetched at once, where all results are wanted in memory."""

TASK_BYTES = 24 * MEGABYTE
"""What a task needs besides its arrays: work areas of BLAS and of codecs, graph, messages."""

CONNECT_SECONDS = 10.0
"""How long an address may take to answer."""

STALL_SECONDS = 300.0
"""A cluster that finishes nothing for this long is given up, with what it did kept."""
