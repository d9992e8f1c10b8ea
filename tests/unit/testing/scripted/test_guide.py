"""What a scripted model says of how documents should be read."""

import json

from quipu.model.chat import ChatRequest, Role
from quipu.prompts import tuning
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import Script


async def _guide(*texts: str) -> object:
    messages = tuning.render(
        [tuning.SampleText(text=text) for text in texts], ["Person", "Creature: alive", "Place", "Other"]
    )
    request = ChatRequest(messages=messages, role=Role.EXTRACT, max_output_tokens=2_000, schema=tuning.SCHEMA)
    return json.loads((await ScriptedLLM(Script()).complete(request)).text)


async def test_a_guide_is_a_function_of_the_passages() -> None:
    guide = await _guide("Marco Polo met merchants.", "Kublai Khan ruled.")
    assert guide == {
        "domain": "The texts speak of Marco Polo, Kublai Khan. What they did matters.",
        "types": [
            {"name": "Person", "description": "told of Person"},
            {"name": "Creature", "description": "told of Creature"},
            {"name": "Place", "description": "told of Place"},
            {"name": "Merchants", "description": "told of Merchants"},
        ],
        "relations": [
            {"name": "told of", "description": "spoken of by", "from": ["Person"], "to": ["Creature", "Place"]}
        ],
    }
    assert await _guide("Marco Polo met merchants.", "Kublai Khan ruled.") == guide
    assert await _guide("Marco Polo met sailors of the coastlines.") != guide
