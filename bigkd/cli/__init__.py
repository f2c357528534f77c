"""The command line: parsing only."""
