"""The page of the API for a person: every operation and type, from their description, and nothing that runs."""

import base64
import hashlib
import re

import httpx

from quipu.server.app import OPERATIONS
from quipu.server.openapi import openapi_document, reference_page, type_text


async def test_every_operation_and_every_type_is_on_the_page(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    described = (await client.get("/api/v1/openapi.json")).json()
    ids = set(re.findall(r'<details id="([^"]+)">', response.text))
    assert ids == {operation.function.__name__ for operation in OPERATIONS} | described["components"]["schemas"].keys()


async def test_the_browser_takes_the_style_of_the_page_and_nothing_else(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/docs")
    [style] = re.findall("<style>(.*)</style>", response.text)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "<script" not in response.text


def test_words_of_a_description_are_no_markup() -> None:
    document = openapi_document(OPERATIONS, "<b>")
    [path] = [path for path in document["paths"] if path.endswith("/status")]
    document["paths"][path]["get"]["summary"] = "<img src=x>"
    page = reference_page(document)
    assert "<img" not in page
    assert "&lt;img src=x&gt;" in page
    assert "&lt;b&gt;" in page


def test_a_type_is_written_in_a_few_words() -> None:
    assert type_text({"type": "string"}) == "text"
    assert type_text({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}) == (
        "list of text or null"
    )
    assert type_text({"enum": ["id", "title"]}) == "one of id, title"
    assert type_text({"$ref": "#/components/schemas/Answer"}) == "Answer"
