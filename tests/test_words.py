"""Texts that people read use the field's words: pages, docstrings, comments, and every sentence
that the code prints.

In `AVOIDED` each word that we do not write has the one that we do.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tests/simulator/README.md")
TEXTS = (
    "conf/**/*.toml",
    "conf/**/*.yml",
    "lib/**/*.html",
    "lib/**/*.js",
    "docker/**/*.yml",
    "docker/**/*.yaml",
)
CODE = ("lib", "jobs", "conf", "docker", "docs/build", "tests", "bench")
AVOIDED = {
    r"judg(ed?|es|ing|e?ments?)": "evaluated, evaluation",
    r"(fore)?told|foretell(s|ing)?": "reported, recorded, forecast",
    r"put(s|ting)? (\w+ ){0,3}out": "evicted, fenced",
    r"anew": "again, recreated",
    r"work(s|ed|ing)? (it |them )?off": "drains, drain time",
    r"(lag|backlog) is gone": "has drained",
    r"(im)?material|worth the name": "significant, above the floor",
    r"rhythms?": "commit interval",
    r"(stand|stands|stood|standing) still": "stalled",
    r"noted down": "recorded",
    r"(came|comes?|coming) back": "restarted, rejoined",
    r"begun anew|logs? begins?": "log start",
    r"stor(y|ies)|troupe|theatre": "scenario, workload, driver, fixture",
    r"plays?|played|cast(?!\()": "runs, scenario, fixture",
    r"on (a|the) stage": "in a fixture",  # alone it is a step of a batch, as in the metric's label
    r"(nobody|no one) knows": "unknown",
    r"in no record": "not recorded",
    r"places? (is|are|was|were) (left|taken)|at that place": "member, member identity",
    r"(never )?at this pace": "does not drain at the current rate",
    r"(absent|null|none|nan|empty|unknown|0) where": "if",
}
SAMPLES = (
    "The window was judged.", "In our judgement it is slow.", "The lag is told apart.",
    "A drain is foretold.",
    "The member was put out.", "The topic is made anew.", "It works off its lag.",
    "The lag is gone.",
    "The lag is not material.", "Lag worth the name.", "The rhythm of commits.",
    "The partition stands still.",
    "It was noted down.", "The member came back.", "The log begins at 7.", "One story per fault.",
    "The troupe is ready.", "In the theatre.", "It plays a drill.", "The cast of a test.",
    "On a stage.",
    "Nobody knows the time.", "It stands in no record.",
    "It put two members out.", "One place is left.", "Infinity: never at this pace.",
    "Absent where it is unknown.",
)  # fmt: skip
HEADLESS = re.compile(r"(What|Whether|Which|Where|Who|When|How|In which|Until|Why)\b")


# the first of these words, as parts of names: a name that people read in a key, a column or a
# traceback
# fields in tables that exist: a job that goes on with them would stop at other names
STORED = {"is_told", "told_ms"}
NAME = re.compile(r"(?:^|_)(?i:judg\w*|(?:fore)?told|anew)(?:$|_|(?=[A-Z]))")

ANY = re.compile(rf"(?i)\b(?:{'|'.join(AVOIDED)})\b")


def found(text: str) -> list[str]:
    """Words of a text that we do not write; code between backticks does not count."""
    prose = re.sub(r"`[^`]*`", "``", text)
    if not ANY.search(prose):
        return []
    return [
        f"{match[0]}: {instead}"
        for word, instead in AVOIDED.items()
        for match in re.finditer(rf"(?i)\b({word})\b", prose)
    ]


def pages() -> Iterator[tuple[str, str]]:
    """Lines of the pages, and of what is shipped beside the code, with their places."""
    texts = [path for pattern in TEXTS for path in sorted(ROOT.glob(pattern))]
    for path in (*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").rglob("*.md")), *texts):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def sources() -> Iterator[tuple[str, str]]:
    """Python files with their places."""
    for folder in CODE:
        for path in sorted({*(ROOT / folder).rglob("*.py")} - {Path(__file__)}):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Strings of several words, docstrings among them; a single word is a name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def names(source: str) -> Iterator[tuple[int, str]]:
    """Names that Python code defines or uses, those of imported modules and keyword arguments among
    them.
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def test_pages_use_the_words_of_the_field() -> None:
    assert [(place, word) for place, line in pages() for word in found(line)] == []


def test_texts_in_the_code_use_the_words_of_the_field() -> None:
    texts = (
        (f"{path}:{number}", text)
        for path, source in sources()
        if ANY.search(source)
        for number, text in (*strings(source), *comments(source))
    )
    wrong = [(place, word) for place, text in texts for word in found(text)]
    assert wrong == []


def test_names_in_the_package_use_them_too() -> None:
    wrong = [
        (f"{path}:{number}", name)
        for path, source in sources()
        if path.startswith("lib/") and re.search("(?i)judg|told|anew", source)
        for number, name in names(source)
        if NAME.search(name) and name not in STORED
    ]
    assert wrong == []


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    wrong = [
        (f"{path}:{number}", text.splitlines()[0])
        for path, source in sources()
        if not path.startswith(("tests/", "bench/"))
        for number, text in docstrings(source)
        if HEADLESS.match(text)
    ]
    assert wrong == []


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_word_is_found(sample: str) -> None:
    assert len(found(sample)) == 1


def test_every_entry_has_a_sample_and_code_is_left_alone() -> None:
    assert [
        word
        for word in AVOIDED
        if not any(re.search(rf"(?i)\b({word})\b", each) for each in SAMPLES)
    ] == []
    assert (
        found("`judged` is a name, and `stage_seconds_total` a column; the decode stage reads.")
        == []
    )


def test_words_are_found_where_people_read_them() -> None:
    source = '"""Whether it is."""\nx = "It was judged."  # and told\n'
    assert [word for _, text in (*strings(source), *comments(source)) for word in found(text)] == [
        "judged: evaluated, evaluation",
        "told: reported, recorded, forecast",
    ]
    assert [
        name for _, name in names("Told, told_ms = x.judged_to, threshold") if NAME.search(name)
    ] == [
        "Told",
        "told_ms",
        "judged_to",
    ]
    assert [text for _, text in docstrings(source) if HEADLESS.match(text)] == ["Whether it is."]


RIDDLES = (
    (re.compile(r"(What|Whether|Where|Who|That|Which|How)\b"), "begins with a relative clause"),
    (re.compile(r".*, and whether\b"), "hides a question in `, and whether`"),
    (re.compile(r".*\bone of which\b"), "says `one of which`"),
    (re.compile(r".*\bwhat\b[^.]*\bis\b"), "describes a noun by `what … is`"),
)
MOST_WORDS = 20


def riddles(docstring: str) -> list[str]:
    """Faults of the first sentence of a docstring."""
    sentence = re.split(r"(?<=[.:;?])\s", docstring.replace("\n", " "))[0]
    faults = [fault for pattern, fault in RIDDLES if pattern.match(sentence)]
    if len(sentence.split()) > MOST_WORDS:
        faults.append(f"has more than {MOST_WORDS} words")
    return faults


def test_docstrings_of_the_package_begin_with_a_plain_sentence() -> None:
    wrong = {
        f"{path}:{number}": faults
        for path, source in sources()
        if path.startswith("lib/")
        for number, text in docstrings(source)
        if (faults := riddles(text))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("docstring", "count"),
    [
        ("Return the lag of each partition.", 0),
        ("Whether a partition lags.", 1),
        ("Members that left, and whether another one came.", 1),
        ("Rows of the tick; what is known of them.", 0),
        ("Put away what the checkpoint is.", 1),
        ("word " * 21, 1),
    ],
)
def test_a_riddle_is_found(docstring: str, count: int) -> None:
    assert len(riddles(docstring)) == count
