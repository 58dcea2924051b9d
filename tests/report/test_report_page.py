import html
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesvote.apps.report import (
    Cell,
    Chart,
    Charts,
    Facts,
    Report,
    Section,
    Series,
    TableBlock,
    Text,
    number,
    render,
    write,
)

EVIL = "<script>alert('1')</script> & \"quotes\" </style>"
VOID = {"meta", "br", "hr", "img", "link", "input", "col"}
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page(HTMLParser):
    """Elements of a page with their attributes and the text inside them; fails if they do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for place in self._open:
            self.elements[place][2].append(data)

    def texts(self, tag: str, **wanted: str) -> list[str]:
        return [
            "".join(parts) for name, given, parts in self.elements if name == tag and wanted.items() <= given.items()
        ]

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [given for name, given, _ in self.elements if name == tag]


def sample() -> Report:
    x = np.arange(1, 2001)
    lines = [Series(name, x, 1 / x, 0.9 / x, 1.1 / x) for name in ("ours", EVIL, "a_name_without_any_space" * 3)]
    methods = [f"method {k}" for k in range(10)]
    cells = [Cell("0.1234", k == 2, k == 3, "0.130", "±0.0012") for k in range(10)]
    rows: list[list[str | Cell]] = [[name, "1,234", *cells] for name in ("heart", "breast-cancer", "cod-rna (partial)")]
    return Report(
        f"Title {EVIL}",
        f"Lead {EVIL}",
        [
            Section(
                f"Tables {EVIL}",
                [
                    TableBlock(
                        "Large", ["set", "rows", *methods], rows, "A note.", [("", 2), ("theirs", 8), (EVIL, 2)]
                    ),
                    TableBlock(EVIL, ["name", EVIL], [[EVIL, Cell(EVIL, note=EVIL, spread=EVIL)]], EVIL),
                ],
                lead=EVIL,
            ),
            Section(
                "Charts", [Charts([Chart(EVIL, EVIL, EVIL, lines), Chart("Logarithmic", "x", "y", lines, True, True)])]
            ),
            Section(
                "One chart", [Chart("One", "$x$", "y", lines[:1]), Facts({EVIL: EVIL, "n": 3, "path": "a/b" * 99})]
            ),
            Section("Words", [Text(EVIL)]),
        ],
    )


@pytest.fixture(scope="module")
def page() -> str:
    return render(sample())


def test_structure(page: str) -> None:
    read = Page(page)
    assert page.startswith("<!DOCTYPE html>")
    assert read.attributes("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in read.attributes("meta")
    assert read.texts("title") == read.texts("h1") == [sample().title]
    assert read.texts("h2") == [section.title for section in sample().sections]
    ids = [given["id"] for _, given, _ in read.elements if "id" in given]
    assert len(set(ids)) == len(ids)
    assert [given["href"] for given in read.attributes("a")] == [f"#section-{k}" for k in range(1, 5)]
    named = {given[name] for _, given, _ in read.elements for name in ("href", "aria-labelledby") if name in given}
    assert {str(name).removeprefix("#") for name in named} <= set(ids)


def test_nothing_is_loaded_or_run(page: str) -> None:
    read = Page(page)
    names = {name for name, _, _ in read.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "foreignobject", "image"}
    for _, attributes, _ in read.elements:
        assert not {"src", "srcset", "data", "action"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page
    assert "@import" not in page


def test_tables(page: str) -> None:
    read = Page(page)
    assert read.texts("caption") == ["Large", EVIL]
    assert read.texts("th", scope="row") == ["heart", "breast-cancer", "cod-rna (partial)", EVIL]
    assert read.texts("th", scope="col") == ["set", "rows", *(f"method {k}" for k in range(10)), "name", EVIL]
    assert read.texts("th", scope="colgroup", colspan="8") == ["theirs"]
    assert read.texts("th", **{"class": "right"}) == ["rows", *(f"method {k}" for k in range(10))]
    assert read.texts("strong") == ["0.1234"] * 3
    assert read.texts("span", **{"class": "tied"}) == ["0.1234"] * 3
    assert read.texts("span", **{"class": "unseen"}) == [" (best)", " (tied)"] * 3
    cell = read.texts("td", **{"class": "right"})[3]
    assert cell.split() == ["0.1234", "(best)", "±0.0012", "0.130"]
    notes = read.texts("p", **{"class": "note"})
    assert notes == ["Bold: the best. Underlined: not significantly different from the best. A note.", EVIL]


def test_charts_have_words_for_those_who_do_not_see_them(page: str) -> None:
    read = Page(page)
    assert len(read.texts("figure")) == len(read.texts("figcaption")) == 3
    pictures = [given for given in read.attributes("svg") if given.get("role") == "img"]
    assert [str(given["aria-label"]).split(". ")[0] for given in pictures] == [EVIL, "Logarithmic", "One"]
    assert "ours: from 1 at $x$ 1 to 0.0005 at $x$ 2,000." in str(pictures[2]["aria-label"])
    assert [text.strip() for text in read.texts("li")[4:7]] == [series.name for series in lines_of(sample())]


def lines_of(report: Report) -> list[Series]:
    block = report.sections[1].blocks[0]
    assert isinstance(block, Charts)
    return list(block.charts[0].series)


def test_same_report_same_bytes(page: str, tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"lines.markeredgewidth": 9, "font.size": 30, "path.simplify": False}):
        write(sample(), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == page.encode()


@given(st.text())
def test_any_text_comes_out_as_it_went_in(text: str) -> None:
    read = Page(render(Report(text, "", [Section(text, [Text(text), Facts({text: text})])])))
    for tag in ("title", "h1", "h2", "p", "dt", "dd"):
        assert read.texts(tag) == [text]


def test_names_that_are_not_text(tmp_path: Path) -> None:
    write(Report("file \udcff", "", []), tmp_path / "page.html")
    assert "<h1>file ?</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_empty_report() -> None:
    read = Page(render(Report("Empty", "", [])))
    assert read.texts("h1") == ["Empty"]
    assert not read.texts("nav")
    read = Page(
        render(Report("", "", [Section("", [TableBlock("", [], []), Charts([]), Facts({}), Chart("", "", "", [])])]))
    )
    assert read.texts("p") == ["No values to draw."]


def test_numbers() -> None:
    shown = [number(value) for value in (0.5, -0.25, 12345.0, np.nan, np.inf, -np.inf)]
    assert shown == ["0.5000", "\N{MINUS SIGN}0.2500", "12,345.0000", "\N{EN DASH}", "∞", "\N{MINUS SIGN}∞"]
    rows = [[str(k), text, "word"] for k, text in enumerate(shown)]
    read = Page(render(Report("", "", [Section("", [TableBlock("", ["k", "number", "text"], rows)])])))
    assert read.texts("td", **{"class": "right"}) == shown


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TableBlock("", ["a", "b"], [["1", "2"], ["1"]]),
            "TableBlock: a row must have one cell per column, 2 of them, got 1",
        ),
        (
            lambda: TableBlock("", ["a", "b"], [], groups=[("x", 3)]),
            r"TableBlock: groups must cover the 2 columns, got \[\('x', 3\)\]",
        ),
        (lambda: Series("", [1, 2], [1]), r"Series: .* must have the same length, got shapes \[\(1,\), \(2,\)\]"),
        (lambda: Series("", [[1]], [[1]]), "Series: .* must have the same length"),
        (lambda: Series("", [1], [1], lower=[0]), "Series: lower and upper must be given together"),
    ],
)
def test_bad_blocks(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def browse(*options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    always = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command = [BROWSER, *always, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def measured(page: str, width: int, folder: Path) -> tuple[int, list[int]]:
    """How wide the page gets on a screen of this width, and how high its charts are."""
    frame = folder / "frame.html"
    frame.write_text(
        f'<iframe style="border: 0; width: {width}px; height: 800px" srcdoc="{html.escape(page)}"></iframe>'
        "<script>onload = () => {"
        "const page = document.querySelector('iframe').contentDocument;"
        "const heights = [...page.querySelectorAll('.picture')].map(picture => Math.round(picture.offsetHeight));"
        "document.body.innerHTML = `measured ${page.documentElement.scrollWidth} ${heights.join(' ')};`;"
        "}</script>",
        encoding="utf-8",
    )
    found = re.search(r"measured ([\d ]+);", browse("--dump-dom", frame.as_uri()).stdout)
    assert found
    wide, *heights = map(int, found[1].split())
    return wide, heights


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")
@pytest.mark.parametrize("width", [360, 1200])
def test_page_fits_the_screen(page: str, width: int, tmp_path: Path) -> None:
    wide, heights = measured(page, width, tmp_path)
    assert wide == width
    assert len(heights) == 3
    assert min(heights) > 150
    assert measured("<!DOCTYPE html><p style='width: 1300px'>wide", width, tmp_path)[0] > 1200


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")
def test_browser_has_nothing_to_complain_about(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    (tmp_path / "bad.html").write_text(page.replace("<h1>", "<script>1</script><h1>"), encoding="utf-8")
    picture = tmp_path / "page.png"
    done = browse(f"--screenshot={picture}", "--window-size=1200,2000", (tmp_path / "page.html").as_uri())
    assert "CONSOLE" not in done.stderr
    assert picture.stat().st_size > 50_000
    # The page itself forbids scripts, and the browser says so.
    assert "CONSOLE" in browse("--dump-dom", (tmp_path / "bad.html").as_uri()).stderr
