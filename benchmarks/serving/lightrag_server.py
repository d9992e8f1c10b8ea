"""LightRAG's server with the workload's count of tokens, by the Python of its own environment.

    python -m benchmarks.serving.lightrag_server [ARGUMENTS OF lightrag-server]

Its own count needs a file from the network. Nothing else is changed.
"""

import importlib
import logging

from benchmarks.speed.lightrag_driver import WordTokens


def main() -> None:
    """Serve until the process is ended."""
    lightrag, utils = importlib.import_module("lightrag.lightrag"), importlib.import_module("lightrag.utils")
    vars(lightrag)["TiktokenTokenizer"] = lambda *_: utils.Tokenizer("words", WordTokens())
    logging.disable(logging.WARNING)
    importlib.import_module("lightrag.api.lightrag_server").main()


if __name__ == "__main__":
    main()
