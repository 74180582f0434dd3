"""Arguments that bench/compare and bench/compare_net share."""

import argparse

WORKERS = [1, 2, 4, 8]  # The default.


def worker_list(text):
    counts = [int(item) for item in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("each number of workers must be at least 1")
    return counts
