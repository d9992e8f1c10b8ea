"""What models make of the format asked for: every reply here says the same three things, in a shape of its own."""

ENTITY = "entity<|>Ann Lee<|>Person<|>Ann Lee founded Acme in 1990."
SECOND = "entity<|>Acme<|>Organization<|>Acme is a company in Leeds."
RELATION = "relation<|>Ann Lee<|>Acme<|>founder, leader<|>Ann Lee founded Acme.<|>9"
PLAIN = f"{ENTITY}\n{SECOND}\n{RELATION}\n<|done|>"
QUOTED = """("entity"<|>"Ann Lee"<|>"Person"<|>"Ann Lee founded Acme in 1990.")##
("entity"<|>"Acme"<|>"Organization"<|>"Acme is a company in Leeds.")##
("relationship"<|>"Ann Lee"<|>"Acme"<|>"Ann Lee founded Acme."<|>9)<|COMPLETE|>"""
OBJECT = """{"entities": [
  {"name": "Ann Lee", "type": "Person", "description": "Ann Lee founded Acme in 1990."},
  {"name": "Acme", "type": "Organization", "description": "Acme is a company in Leeds."}],
 "relationships": [
  {"source": "Ann Lee", "target": "Acme", "keywords": "founder, leader", "description": "Ann Lee founded Acme.",
   "strength": 9}]}"""


def _with(separator: str) -> str:
    return PLAIN.replace("<|>", separator).replace("<|done|>", "")


SHAPES = {
    "as asked": PLAIN,
    "without an end": PLAIN.removesuffix("\n<|done|>"),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "old carriage returns": PLAIN.replace("\n", "\r"),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "chatter around": f"Sure! Here are the records:\n\n{PLAIN}\n\nLet me know if you need more | or less.",
    "a fence": f"```\n{PLAIN}\n```",
    "a fence with a name": f"Here you are:\n```text\n{PLAIN}\n```\nDone.",
    "a fence left open": f"```csv\n{PLAIN}",
    "thinking": f"<think>\nentity<|>Draft<|>Person<|>A draft.\n</think>\n{PLAIN}",
    "thinking never opened": f"Let me see.\nentity<|>Draft<|>Person<|>A draft.\n</think>\n\n{PLAIN}",
    "thinking never opened, on one line": f"So, Ann Lee it is.</think>{PLAIN}",
    "thinking never closed": f"<think>\n{PLAIN}",
    "thinking in capitals": f"<THINKING>entity<|>Draft<|>Person<|>A draft.</THINKING>\n{PLAIN}",
    "thinking between square brackets": f"[THINK]entity<|>Draft<|>Person<|>A.[/THINK]{PLAIN}",
    "thinking in channels": "<|channel|>analysis<|message|>entity<|>Draft<|>Person<|>A.<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{PLAIN}",
    "a closing tag after everything": f"{PLAIN}\n</think>",
    "doubled bars": _with("<||>"),
    "half a separator": _with("<|"),
    "the other half": _with("|>"),
    "a number sign inside": _with("<|#|>"),
    "number signs inside": _with("<|##|>"),
    "a number sign alone": _with("<#>"),
    "a slash inside": _with("</|>"),
    "the name of the separator": _with("<SEP>"),
    "the template of the separator": _with("{tuple_delimiter}"),
    "bars": _with("|"),
    "bars with spaces": _with(" | "),
    "tabs": _with("\t"),
    "colons": _with(" :: "),
    "full-width bars": _with("<｜>"),
    "full-width throughout": _with("＜｜＞"),
    "HTML entities": _with("&lt;|&gt;").replace("Acme is", "Acme&nbsp;is"),
    "mixed separators": PLAIN.replace("Person<|>", "Person|").replace("Acme<|>Organization", "Acme|Organization"),
    "a type inside the separator": PLAIN.replace("<|>Person<|>", "<|Person|>"),
    "spaces around": _with("  <|>  "),
    "quotes": '"entity"<|>"Ann Lee"<|>"Person"<|>"Ann Lee founded Acme in 1990."\n'
    '"entity"<|>"Acme"<|>"Organization"<|>"Acme is a company in Leeds."\n'
    '"relation"<|>"Ann Lee"<|>"Acme"<|>"founder, leader"<|>"Ann Lee founded Acme."<|>"9"',
    "smart quotes": "“entity”<|>“Ann Lee”<|>“Person”<|>“Ann Lee founded Acme in 1990.”\n"
    "“entity”<|>“Acme”<|>“Organization”<|>“Acme is a company in Leeds.”\n"
    "“relation”<|>“Ann Lee”<|>“Acme”<|>“founder, leader”<|>“Ann Lee founded Acme.”<|>9",
    "parentheses": QUOTED,
    "parentheses on one line": QUOTED.replace("\n", ""),
    "parentheses never closed": QUOTED.replace(")##", "").replace("9)<|COMPLETE|>", "9"),
    "parentheses and numbers": "**Entities:**\n\n1. " + QUOTED.replace(")##\n", ")\n2. "),
    "parentheses over lines": QUOTED.replace("is a company", "is a\ncompany").replace("Acme in", "\nAcme in"),
    "commas between quotes": QUOTED.replace("<|>", ", ").replace(")##", ")").replace("<|COMPLETE|>", ""),
    "a call": QUOTED.replace('("entity"<|>', 'entity("')
    .replace('("relationship"<|>', 'relationship("')
    .replace('(""', '("')
    .replace("<|>", ", ")
    .replace("##", "")
    .replace("<|COMPLETE|>", ""),
    "all on one line": PLAIN.replace("\n", " "),
    "number signs between records": PLAIN.replace("\n", "##"),
    "bullets": "\n".join(f"- {line}" for line in PLAIN.splitlines()),
    "numbers": "\n".join(f"{number}. {line}" for number, line in enumerate(PLAIN.splitlines(), 1)),
    "bold": PLAIN.replace("entity<", "**entity**<").replace("<|>Ann Lee<", "<|>**Ann Lee**<"),
    "code": "\n".join(f"`{line}`" for line in PLAIN.splitlines()),
    "quotations": "\n".join(f"> {line}" for line in PLAIN.splitlines()),
    "capitals": PLAIN.replace("entity<", "ENTITY<").replace("relation<", "RELATIONSHIP<"),
    "a colon after the kind": PLAIN.replace("entity<|>", "Entity: ").replace("relation<|>", "Relation: "),
    "numbered kinds": PLAIN.replace("entity<", "entity 1<").replace("relation<", "relation_2<"),
    "a table": "| kind | a | b | c | d | e |\n|---|---|---|---|---|---|\n"
    "| entity | Ann Lee | Person | Ann Lee founded Acme in 1990. |\n"
    "| entity | Acme | Organization | Acme is a company in Leeds. |\n"
    "| relation | Ann Lee | Acme | founder, leader | Ann Lee founded Acme. | 9 |",
    "tables under headings": "## Entities\n\n| Name | Type | Description |\n|:--|:--|:--|\n"
    "| Ann Lee | Person | Ann Lee founded Acme in 1990. |\n| Acme | Organization | Acme is a company in Leeds. |\n\n"
    "## Relationships\n\n| Source | Target | Keywords | Description | Strength |\n|---|---|---|---|---|\n"
    "| Ann Lee | Acme | founder, leader | Ann Lee founded Acme. | 9 |",
    "rows under headings": "Entities:\nAnn Lee<|>Person<|>Ann Lee founded Acme in 1990.\n"
    "Acme<|>Organization<|>Acme is a company in Leeds.\n\n**Relations:**\n"
    "Ann Lee<|>Acme<|>founder, leader<|>Ann Lee founded Acme.<|>9",
    "no word for the kind": PLAIN.replace("entity<|>", "").replace("relation<|>", ""),
    "Chinese kinds": PLAIN.replace("entity<", "实体<").replace("relation<", "关系<"),
    "Russian kinds": PLAIN.replace("entity<", "сущность<").replace("relation<", "связь<"),
    "strength before the description": PLAIN.replace("Ann Lee founded Acme.<|>9", "9<|>Ann Lee founded Acme."),
    "strength out of ten": PLAIN.replace("<|>9", "<|>9/10"),
    "strength with its name": PLAIN.replace("<|>9", "<|>strength: 9"),
    "strength as a fraction": PLAIN.replace("<|>9", "<|>0.9"),
    "description before the keywords": PLAIN.replace(
        "founder, leader<|>Ann Lee founded Acme.", "Ann Lee founded Acme.<|>founder, leader"
    ),
    "name and type swapped": PLAIN.replace("Ann Lee<|>Person", "Person<|>Ann Lee"),
    "type and description swapped": PLAIN.replace(
        "Person<|>Ann Lee founded Acme in 1990.", "Ann Lee founded Acme in 1990.<|>Person"
    ),
    "type missing": PLAIN.replace("<|>Person", ""),
    "a relation called an entity": PLAIN.replace("relation<|>", "entity<|>"),
    "a description in two lines": PLAIN.replace("Person<|>", "Person<|>\n"),
    "separators at both ends": "\n".join(f"<|>{line}<|>" for line in PLAIN.splitlines()[:3]),
    "the format first": "entity<|>name<|>type<|>description\n"
    "relation<|>source<|>target<|>keywords<|>description<|>strength\n" + PLAIN,
    "the template first": "entity<|><entity_name><|><entity_type><|><entity_description>\n" + PLAIN,
    "everything twice": f"{PLAIN}\n{PLAIN}",
    "the end in the middle": f"{ENTITY}\n{SECOND}\n<|done|>\n{RELATION}\n<|done|>",
    "another word for the end": PLAIN.replace("<|done|>", "<|COMPLETE|>"),
    "the end on the last line": PLAIN.replace("\n<|done|>", "<|done|>"),
    "JSON": OBJECT,
    "JSON in a fence": f"Here:\n```json\n{OBJECT}\n```",
    "JSON after thinking": f"<think>{{}}</think>{OBJECT}",
    "JSON with trailing commas and comments": OBJECT.replace("}]", "},] // all").replace("9},", "9,},"),
    "JSON in single quotes": OBJECT.replace('"', "'"),
    "JSON never closed": OBJECT.removesuffix("]}"),
    "JSON under other keys": OBJECT.replace('"entities"', '"nodes"')
    .replace('"relationships"', '"edges"')
    .replace('"name"', '"entity_name"')
    .replace('"source"', '"src_id"'),
    "JSON below another key": f'{{"result": {OBJECT}}}',
    "JSON lines": '{"kind": "entity", "name": "Ann Lee", "type": "Person", "description": "Ann Lee founded Acme '
    'in 1990."}\n'
    '{"kind": "entity", "name": "Acme", "type": "Organization", "description": "Acme is a company in Leeds."}\n'
    '{"kind": "relation", "source": "Ann Lee", "target": "Acme", "keywords": ["founder", "leader"], '
    '"description": "Ann Lee founded Acme.", "strength": 9}',
    "a list of mixed records": '[{"record": "entity", "name": "Ann Lee", "type": "Person", "description": '
    '"Ann Lee founded Acme in 1990."}, '
    '{"entity": "Acme", "type": "Organization", "description": "Acme is a company in Leeds."}, '
    '{"source": "Ann Lee", "target": "Acme", "keywords": "founder, leader", "description": "Ann Lee founded Acme.", '
    '"weight": "9"}]',
    "lists of strings": '[["entity", "Ann Lee", "Person", "Ann Lee founded Acme in 1990."],\n'
    ' ["entity", "Acme", "Organization", "Acme is a company in Leeds."],\n'
    ' ["relation", "Ann Lee", "Acme", "founder, leader", "Ann Lee founded Acme.", 9]]',
}  # fmt: skip

# Replies that hold no fact at all.
EMPTY = {
    "nothing": "",
    "only the end": "<|done|>",
    "an apology": "I'm sorry, but the text names no entities | relations.",
    "the format": "entity<|>name<|>type<|>description\nrelation<|>source<|>target<|>keywords, comma separated<|>"
    "description<|>strength 1-10\nalias<|>name<|>other name\n"
    "claim<|>subject<|>object<|>type<|>status<|>dates<|>description",
    "the template": "entity<|><entity_name><|><entity_type><|><entity_description>\n<|COMPLETE|>",
    "a schema": '{"type": "object", "properties": {"entities": {"type": "array", "items": {"type": "object", '
    '"properties":'
    ' {"name": {"type": "string"}, "type": {"type": "string"}, "description": {"type": "string"}}}}, "relations": '
    '{"type": "array", "items": {"type": "object"}}}, "required": ["entities", "relations"]}',
    "only thinking": f"<think>\n{ENTITY}\n",
    "a thought cut short": f"<think>\n{ENTITY}\n{SECOND}\n{RELATION}",
    "empty fields": "entity<|><|><|>\nrelation<|><|>Acme<|><|><|>5\nalias<|>Acme<|>",
    "no letters": "entity<|>***<|>Person<|>...\nentity<|>—<|>—<|>—",
    "a table's head": "| Name | Type | Description |\n|---|---|---|",
    "prose with bars": "Entities are things | relations are links | that is all.",
    "an empty object": '{"entities": [], "relations": []}',
    "brackets of prose": "[see note] {nothing here}",
    "a name as long as a page": f"entity<|>{'Ann ' * 60}<|>Person<|>Too long.",
}  # fmt: skip
