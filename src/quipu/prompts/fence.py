"""Fence: what keeps text of documents and users apart from what we tell a model."""

import re

from quipu.model.ids import digest

BOUNDARY_LENGTH = 12

# Marks with which chat templates tell messages apart: some servers read them wherever they stand in a text.
_CONTROL = re.compile(
    r"<[|｜][^<>\n]{1,40}[|｜]>"
    r"|</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|think|thinking)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK)\]"
    r"|<</?SYS>>",
    re.IGNORECASE,
)


def boundary_of(*texts: str) -> str:
    """Return a mark that none of `texts` can hold: it is a digest of them all, so none can be written around it."""
    return f"#{digest('boundary', *texts)[:BOUNDARY_LENGTH]}#"


def disarmed(text: str) -> str:
    """Return a text that tells no server where a message ends: a space breaks each mark of a chat template."""
    return _CONTROL.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)
