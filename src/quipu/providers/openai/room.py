"""Room: what is left of a context window for the reply, and what to do where it is too small."""

import re

from quipu.providers.openai.said import Said

_MIN_ROOM = 256  # tokens; a reply cut to less is of no use

_WIDER = {
    "ollama": "Start Ollama with OLLAMA_CONTEXT_LENGTH=16384: it cuts longer prompts without a word.",
    "llamacpp": "Start llama-server with -c 16384 for each call at once (--parallel).",
    "vllm": "Start vLLM with --max-model-len 16384.",
    "lmstudio": "Load the model in LM Studio with a context length of 16,384.",
}

_WINDOW = re.compile(
    r"(?:maximum context length (?:is|of)|context (?:length|window|size)(?: is)?(?: only)?|n_ctx:|> ?)"
    r"\D{0,12}(\d[\d,]*)"
)
_INPUT = re.compile(
    r"(?:request has|messages resulted in|passed|prompt contains(?: at least)?|n_prompt_tokens:|too long:)"
    r"\s*(\d[\d,]*)|"
    r"(\d[\d,]*) (?:tokens )?(?:in|from) (?:the|your) (?:messages|prompt|input)"
)


def states_window(said: Said) -> bool:
    """Return whether the server names its context window as the reason."""
    return _WINDOW.search(said.words) is not None and "context" in said.words


def room_for_reply(said: Said) -> int | None:
    """Return the most output tokens that fit beside the request; None where that is unknown or too little."""
    window, given = _WINDOW.search(said.words), _INPUT.search(said.words)
    if not window or not given or "context" not in said.words:
        return None
    room = _whole(window[1]) - _whole(given[1] or given[2])
    return room if room >= _MIN_ROOM else None


def window_remedy(provider: str) -> str:
    """Say what to do about a context window that is too small for extraction."""
    return _WIDER.get(provider, "Use a model with a larger one, or smaller chunks (chunk_tokens).")


def _whole(digits: str) -> int:
    return int(digits.replace(",", ""))
