"""Entry points: `python -m scripts.NAME --help`."""
