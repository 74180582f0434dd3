"""Arguments that both scripts of the comparison take."""

import argparse

WORKERS = [1, 2, 4, 8]  # Unless others are asked for.


def worker_list(text):
    counts = [int(item) for item in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("there is no fewer than one worker")
    return counts
