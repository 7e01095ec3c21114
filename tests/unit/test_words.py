"""The names in the glossary exist in the code, and replaced words do not come back."""

from tests.support.references import REFERENCE, ROOT, complaints
from tests.support.words import EVERYWHERE, TEXTS, documents, findings, names_of_tests, source

GLOSSARY = ROOT / "docs" / "glossary.md"


def test_every_name_in_the_glossary_exists() -> None:
    text = GLOSSARY.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) > 50
    unheld = [row for row in rows if not REFERENCE.search(row)]
    assert not unheld
    assert not complaints(text)


def test_a_term_is_defined_once() -> None:
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| **")]
    terms = [row.split("**")[1] for row in rows]
    assert len(terms) == len(set(terms))


def test_the_source_uses_no_banned_word() -> None:
    assert not list(findings(source(), EVERYWHERE))
    assert not list(findings(source(), TEXTS, only_texts=True))


def test_the_documents_use_no_banned_word() -> None:
    assert not list(findings(documents(), EVERYWHERE | TEXTS))


def test_no_test_has_a_banned_word_in_its_name() -> None:
    assert not list(names_of_tests(EVERYWHERE))
    assert list(names_of_tests({"banned": "not allowed"})), "this very test"


def test_a_banned_word_is_noticed_and_a_name_is_not() -> None:
    pages = [ROOT / "docs" / "glossary.md"]
    assert list(findings(pages, {"glossary": "word list"}))
    assert not list(findings(pages, {"gloss": "word list"}))


def test_a_name_in_the_source_is_no_text() -> None:
    module = [ROOT / "simulator" / "barnabas_simulator" / "delivery.py"]
    assert list(findings(module, {"verdict": "outcome"}))
    assert not list(findings(module, {"verdict": "outcome"}, only_texts=True))
    assert list(findings(module, {"judges": "compares"}, only_texts=True))
