"""Whether two texts are in different languages."""

from itertools import product

import pytest

from quipu.text.languages import languages_differ

TEXTS = {
    "English": "Alice Kober was a teacher of classics at Brooklyn College while she worked on the tablets of Linear B.",
    "German": "Alice Kober war Lehrerin für klassische Sprachen am Brooklyn College und befasste sich mit Linear B.",
    "French": "Alice Kober enseignait les langues classiques à New York et étudiait pour elle seule le linéaire B.",
    "Spanish": "Alice Kober fue profesora de lenguas clásicas en el Brooklyn College y estudiaba el lineal B.",
    "Italian": "Alice Kober insegnava lettere classiche al Brooklyn College e studiava per sé la lineare B di Creta.",
    "Portuguese": "Alice Kober foi professora de línguas clássicas em Nova York e estudava o linear B com uma bolsa.",
    "Dutch": "Alice Kober was docente klassieke talen aan het Brooklyn College en ze bestudeerde Lineair B met ijver.",
    "Polish": "Alice Kober była w Nowym Jorku nauczycielką i zajmowała się pismem linearnym B, jako że nikt inny.",
    "Turkish": "Alice Kober bir üniversitede klasik diller öğretti ve Linear B ile çok uğraştı.",
    "Russian": "Алиса Кобер преподавала классические языки и изучала линейное письмо Б.",
    "Chinese": "艾丽斯·科伯在布鲁克林学院教古典学，同时研究线形文字B。",
    "Japanese": "アリス・コーバーは古典学を教えながら線文字Bを研究した。",
    "Greek": "Η Άλις Κόμπερ δίδασκε κλασικές γλώσσες και μελετούσε τη Γραμμική Β.",
    "Arabic": "كانت أليس كوبر تدرس اللغات الكلاسيكية في كلية بروكلين.",
}


@pytest.mark.parametrize(("first", "second"), list(product(TEXTS, TEXTS)))
def test_two_texts_are_different_where_their_languages_are(first: str, second: str) -> None:
    assert languages_differ(TEXTS[first], TEXTS[second]) == (first != second)


@pytest.mark.parametrize("text", ["", "1906", "Alice Kober, Linear B", "Glaciers retreated, exposing bedrock."])
def test_what_cannot_be_told_is_not_different(text: str) -> None:
    assert not languages_differ(text, TEXTS["English"])
    assert not languages_differ(TEXTS["English"], text)


def test_names_in_another_script_do_not_make_another_language() -> None:
    assert not languages_differ(TEXTS["English"], f"{TEXTS['English']} In Russian she is Алиса Кобер.")
