"""A job file in, a result store out."""
