"""The live page in a real browser: it shows what it should, live, in the dark, on a phone, and runs nothing foreign."""

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from bayesvote import BayesianEnsembleClassifier, save
from service_client import Forked, free_port, stream, tensor

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    found = Forked(tmp_path_factory.mktemp("served") / "folder", free_port())
    found.wait()
    yield found
    found.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def test_the_page(server: Forked, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.wait_for_selector("#none:not([hidden])", timeout=60_000)

    classes = ["<img src=x onerror=alert(1)>", "yes"]
    server.json("PUT", "/v2/models/first", {"columns": 4, "classes": classes, "members": "perceptron"})
    server.json("PUT", "/v2/models/second", {"columns": 4, "classes": classes, "model": "osboost"})
    X, y = stream(600, 4)
    labels = [classes[code] for code in y]
    server.json("POST", "/v2/models/first/learn", {"inputs": [tensor(X)], "labels": labels})
    server.json("POST", "/v2/models/first/infer", {"inputs": [tensor(X[:7])], "ids": [f"<b>{k}</b>" for k in range(7)]})
    page.wait_for_selector("#bands svg circle >> nth=11", timeout=60_000)
    assert page.inner_text("#title") == "first"
    assert page.inner_text("#state") == "live"
    figures = page.inner_text("#figures")
    assert "600" in figures
    assert "pending rows\n7" in figures
    assert page.locator("#error svg path").count() == 2
    long = "brief({kind: '2 x Tree of 2048 rows', member: 15})"
    assert page.evaluate(long) == "2 x Tree of 2048… 15"  # the number is not cut off
    assert page.locator("#calibration svg circle").count() > 1
    assert "is the best member with probability" in page.inner_text("#best")
    assert re.fullmatch(
        r"Effective number of learned rows: \d+ of 600\.", page.inner_text("#past")
    )  # the weights drift

    page.click("summary")
    assert page.locator("#members tr").count() == 12
    wrong = {"ids": ["<script>alert(1)</script>"], "labels": ["yes"]}
    with pytest.raises(Exception, match="404"):
        server.json("POST", "/v2/models/first/label", wrong)
    page.wait_for_selector("#rejected li", timeout=60_000)
    assert "<script>alert(1)</script>" in page.inner_text("#rejected")  # as text

    page.click("text=second")
    page.wait_for_selector("#title:text-is('second')", timeout=60_000)
    assert "No labels yet." in page.inner_text("#error")
    assert page.is_hidden("#weights")
    assert page.evaluate("document.documentElement.scrollWidth") == 390  # nothing sticks out on a phone
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert said == []
    assert {url.split("/")[2] for url in asked} == {f"127.0.0.1:{server.port}"}

    page.click('text="API"')
    assert "POST /v2/models/{name}/label" in page.inner_text("main")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert said == []
    context.close()


def test_rows_learned_before_are_told(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("before") / "folder"
    folder.mkdir()
    X, y = stream(300, 4)
    save(BayesianEnsembleClassifier("perceptron", n_members=5, random_state=0).fit(X, y), folder / "old.safetensors")
    server = Forked(folder, free_port())
    server.wait()
    server.json("POST", "/v2/models/old/learn", {"inputs": [tensor(X[:50])], "labels": y[:50].tolist()})
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.wait_for_selector("text=rows learned before serving", timeout=60_000)
    figures = page.inner_text("#figures")
    assert "rows learned\n50" in figures
    assert "rows learned before serving\n300" in figures
    assert "Effective number of learned rows" in page.inner_text("#past")
    server.kill()
    page.close()


def test_the_page_says_when_the_service_is_gone(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Forked(tmp_path_factory.mktemp("gone") / "folder", free_port())
    server.wait()
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.wait_for_selector(".state.live", timeout=60_000)
    server.kill()
    page.wait_for_selector(".state.reconnecting", timeout=60_000)
    page.close()
