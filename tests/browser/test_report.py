"""The demo's report, opened from the disk by a browser that has no network."""

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Tab, Unavailable, chromium, install

from dpvision import plan
from dpvision.plan.reading import read_yaml

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "results/demo/report.html"
PAGES = sorted((ROOT / "results/demo/report").rglob("*.html"))
LAPTOP = 1280, 800
PICTURES = ROOT / "results/screenshots"
PLAN = plan.load(read_yaml(ROOT, "config/config.yaml").content | {"scale": "demo"})
RUNS = [name for stage, name in PLAN.kept() if stage == "train"]
SHOW = """(async () => {
  app.setView({navbarMode: 'menu'});
  app.showCategory(%s);
  const path = Object.keys(results).find(path => path.endsWith(%s));
  const kind = results[path].mime_type.startsWith('image') ? 'img' : 'html';
  app.setView({content: kind, contentPath: results[path].data_uri, resultPath: path});
  await new Promise(done => setTimeout(done, 1000));
  return atob(results[path].data_uri.split(',')[1]).length;
})()"""
FRAME = "document.querySelector('iframe').clientWidth"
SCROLLS = """(() => {
  document.querySelectorAll('details').forEach(folded => folded.open = true);
  const root = document.scrollingElement;
  const scrolls = one => one === root || ['auto', 'scroll'].includes(getComputedStyle(one).overflowX);
  const own = one => one.matches('.wide, figure');  // tables and figures scroll in boxes of their own
  const tooWide = one => scrolls(one) && !own(one) && one.scrollWidth > one.clientWidth;
  const wide = [...document.querySelectorAll('*')].filter(tooWide);
  return wide.map(one => `${one.tagName} ${one.className}: ${one.scrollWidth} in ${one.clientWidth}`);
})()"""
MENU = """(async category => {
  app.showCategory(category);
  await new Promise(done => setTimeout(done, 500));
  return document.querySelector('nav').getBoundingClientRect().width;
})"""
HOME = """(async () => {
  app.setView({navbarMode: 'menu', content: 'rulegraph'});
  await new Promise(done => setTimeout(done, 500));
  const home = document.querySelector('.outcome'), content = document.querySelector('div.grow.h-screen');
  return {
    text: home.innerText,
    stages: [...home.querySelectorAll('svg.graph text.name')].map(one => one.textContent),
    outside: [...home.querySelectorAll('svg.graph text')].filter(text => {
      const inside = text.getBoundingClientRect();
      return ![...home.querySelectorAll('svg.graph rect')].some(box => {
        const around = box.getBoundingClientRect();
        return around.left <= inside.left && inside.right <= around.right && around.top <= inside.top;
      });
    }).map(one => one.textContent),
    rules: document.querySelector('#rulegraph').clientHeight,
    sideways: content.scrollWidth - content.clientWidth,
  };
})()"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    try:
        program = install()
    except Unavailable as why:
        pytest.skip(f"no browser can be had here: {why}")
    with chromium(program) as there:
        there.resize(*LAPTOP)
        there.open(REPORT)
        there.run("new Promise(done => setTimeout(done, 1500))")
        yield there


def results(tab: Tab) -> dict[str, Any]:
    return tab.run("results")


def colours(picture: Path) -> int:
    """Count the different bytes of the picture's pixels. A blank page has few."""
    content, data, at = picture.read_bytes(), b"", 8
    while at < len(content):
        length = int.from_bytes(content[at : at + 4])
        data += content[at + 8 : at + 8 + length] if content[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + length
    return len(set(zlib.decompress(data)))


def test_it_opens_with_a_menu_of_what_is_in_it_and_the_scale_in_bold(tab):
    tab.picture(PICTURES / "opened.png")
    said = tab.run("document.body.innerText")
    for category in ("Overview", "Tables", "Figures", "Claims", "Runs", "Cost and environment"):
        assert category in said
    assert "Scale demo: these are not the paper's data" in tab.run("document.querySelector('strong').innerText")
    assert colours(PICTURES / "opened.png") > 100


def test_its_first_page_says_what_came_out_and_has_each_stage_once(tab):
    home = tab.run(HOME)
    table = (ROOT / "results/demo/tables/table1.md").read_text(encoding="utf-8")
    accuracy = re.search(r"\d+\.\d+ ± \d+\.\d+", table)[0]
    assert accuracy in home["text"].replace("\u00a0", " ")
    assert "points at ε" in home["text"] and "stand-ins" in home["text"] and "What is missing" in home["text"]
    assert {"train", "tables", "figures"} <= set(home["stages"]) and len(set(home["stages"])) == len(home["stages"])
    assert home["outside"] == [] and home["rules"] == 0 and home["sideways"] == 0


@pytest.mark.parametrize("category", ["Tables", "Figures", "Claims"])
def test_the_menu_leaves_most_of_a_laptop_to_the_page(tab, category):
    assert tab.run(f"{MENU}({json.dumps(category)})") <= 0.3 * LAPTOP[0]
    tab.picture(PICTURES / f"menu_{category.lower()}.png")


def test_it_makes_no_request_to_the_network(tab):
    assert {address.split(":")[0] for address in tab.asked} <= {"file", "data", "blob"}


def test_all_artifacts_and_runs_of_the_plan_are_in_it_by_what_they_are_called(tab):
    there = results(tab)
    shown = {Path(path).stem for path in there}
    assert shown >= {*PLAN.artifacts, *RUNS, "overview", "cost", "environment"}
    assert all(entry["labels"] and entry["caption"] for entry in there.values())


@pytest.mark.parametrize(
    ("category", "page"),
    [
        ("Overview", "overview.html"),
        ("Tables", "table1.html"),
        ("Figures", "figure2.svg"),
        ("Claims", "claims.html"),
        ("Runs", f"{RUNS[0]}.html"),
        ("Cost and environment", "cost.html"),
        ("Cost and environment", "environment.html"),
    ],
)
def test_a_page_is_shown(tab, category, page):
    assert tab.run(SHOW % (json.dumps(category), json.dumps(page))) > 1000
    picture = PICTURES / f"{Path(page).stem}.png"
    tab.picture(picture)
    assert colours(picture) > 100
    assert {address.split(":")[0] for address in tab.asked} <= {"file", "data", "blob"}


def test_nothing_scrolls_sideways_on_a_laptop(tab):
    """Open each page in a window as wide as the frame that the report shows it in, beside its menu."""
    assert PAGES and tab.run(SHOW % (json.dumps("Tables"), json.dumps("table1.html"))) > 1000
    assert tab.run(SCROLLS) == []
    tab.resize(tab.run(FRAME), LAPTOP[1])
    found = {}
    for page in PAGES:
        tab.open(page)
        found[page.stem] = tab.run(SCROLLS)
    assert {page: wide for page, wide in found.items() if wide} == {}


def test_it_is_small_enough_to_be_mailed():
    assert REPORT.stat().st_size < 10e6
