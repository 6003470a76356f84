"""The page of `seq2seq attend` in a real browser: it draws, switches, and answers pointer and keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import in_process

pytestmark = pytest.mark.long
CELL = "#s1 .map tbody tr:nth-child(2) td:nth-child(4)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium with its chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,1400",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def opened(browser: Any, trained: Path, tmp_path: Path) -> Any:
    """The browser with a page of three sentences, one of them blank; at the end nothing has been complained of."""
    page = tmp_path / "page.html"
    lines = b"The dog sees 3 red boats.\n\nThe fox hears 11 new books.\n"
    assert in_process("attend", trained, "--output", page, stdin=lines).status == 0
    browser.get(page.as_uri())
    wait(browser, lambda: finds(browser, CELL))
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def wait(browser: Any, until: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(lambda _: until())


def finds(browser: Any, selector: str) -> list[Any]:
    return browser.find_elements("css selector", selector)


def texts(browser: Any, selector: str) -> list[str]:
    return [element.get_attribute("textContent") for element in finds(browser, selector)]


def test_every_sentence_has_its_map_and_its_links(opened: Any) -> None:
    assert texts(opened, "#s1 .map thead th") == ["The", "dog", "sees", "3", "red", "boats.", "end"]
    assert texts(opened, "#s1 .strip.source b") == texts(opened, "#s1 .map thead th")
    assert len(finds(opened, "#s1 .strips path")) == len(finds(opened, "#s1 .map tbody tr"))
    assert len(finds(opened, "#s2 .map")) == 0
    assert len(finds(opened, "#s3 .map tbody tr")) > 1
    for row in finds(opened, "#s1 .map tbody tr"):
        weights = [int(cell.get_attribute("textContent")) for cell in row.find_elements("css selector", "td")]
        assert abs(sum(weights) - 100) <= len(weights)


def test_the_switch_shows_pieces_and_words_again(opened: Any) -> None:
    words = texts(opened, "#s1 .map thead th")
    for value, shown in (
        ("pieces", lambda found: found[0].startswith("▁") and found != words),
        ("words", words.__eq__),
    ):
        opened.execute_script(f"document.querySelector('input[value={value}]').click()")
        wait(opened, lambda shown=shown: shown(texts(opened, "#s1 .map thead th")))


def test_heads_are_shown_one_by_one_and_as_their_mean(opened: Any) -> None:
    assert texts(opened, "#s1 .heads button") == ["mean", "head 1", "head 2", "head 3", "head 4"]
    mean = [int(text) for text in texts(opened, "#s1 .map tbody td")]
    sums = [0] * len(mean)
    for head in range(4):
        finds(opened, "#s1 .heads button")[head + 1].click()
        assert finds(opened, f"input[name=head][value='{head}']")[0].is_selected()
        sums = [total + int(text) for total, text in zip(sums, texts(opened, "#s1 .map tbody td"), strict=True)]
    assert all(abs(total / 4 - weight) <= 1 for total, weight in zip(sums, mean, strict=True))


def test_pointing_at_a_cell_tells_the_weight_and_lights_the_words(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    cell = finds(opened, CELL)[0]
    ActionChains(opened).move_to_element(cell).perform()
    tip = finds(opened, "#tip")[0]
    assert tip.is_displayed()
    weight, rest = tip.text.split(" ", 1)
    assert round(float(weight) * 100) == pytest.approx(int(cell.get_attribute("textContent")), abs=1)
    assert "looked at" in rest
    assert texts(opened, "#s1 .source b.on") == texts(opened, "#s1 .map thead th:nth-child(4)")
    assert len(finds(opened, "#s1 .target b.on")) == 1
    # From a word of the translation go links to where it looked.
    ActionChains(opened).move_to_element(finds(opened, "#s1 .target b")[2]).perform()
    assert len(finds(opened, "#s1 .strips path")) >= 1
    assert "looked at" in tip.text


def test_the_keyboard_goes_through_the_map(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    def current() -> Any:
        return opened.switch_to.active_element

    start = finds(opened, "#s1 [tabindex='0']")
    assert len(start) == 1  # one stop for the Tab key, whatever the size
    opened.execute_script("arguments[0].focus()", start[0])
    current().send_keys(Keys.ARROW_DOWN)
    current().send_keys(Keys.ARROW_RIGHT)
    current().send_keys(Keys.ARROW_RIGHT)
    assert current() == finds(opened, "#s1 .map tbody tr:nth-child(2) td:nth-child(4)")[0]
    assert finds(opened, "#tip")[0].is_displayed()
    current().send_keys(Keys.HOME)
    assert current().get_attribute("scope") == "row"
    assert "0." in current().get_attribute("aria-description")
    current().send_keys(Keys.ESCAPE)
    assert not finds(opened, "#tip")[0].is_displayed()


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_can_be_read_on_every_cell_and_nothing_is_wider_than_the_page(
    opened: Any, scheme: str, width: int
) -> None:
    opened.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    opened.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    # Contrast of WCAG 2 between a cell's number and its colour, as painted.
    worst = opened.execute_script(
        """
        const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        const light = (color) => {
          canvas.fillStyle = color;
          canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255)
            .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        };
        let worst = 21;
        const cell = document.querySelector('#s1 .map tbody td');
        for (let weight = 95; weight <= 1000; weight += 5) {
          cell.className = weight >= 620 ? 'deep' : '';
          cell.style.setProperty('--w', weight / 1000);
          const style = getComputedStyle(cell);
          const [a, b] = [light(style.color), light(style.backgroundColor)];
          worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        }
        return worst;
        """
    )
    assert worst >= 4.5
