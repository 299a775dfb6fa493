"""The documentation leads somewhere: its links hold, every page is named in the README, and the README stays short."""

import re
from pathlib import Path

import pytest

from dpvision import plan

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "config/README.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    """Return the names by which a page's headings are linked."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading_of_it(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        file, _, heading = link.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), link
        assert not heading or heading in anchors(there), link


def test_a_run_that_a_page_shows_is_one_of_the_demo_and_no_other():
    runs = plan.load({"papers": ["scalenorm"], "scale": "demo"}).runs
    shown = {name for page in PAGES for name in re.findall(r"dpvision show ([a-z]\S+)", page.read_text(encoding="utf-8"))}
    assert shown
    assert {name: sum(name in run for run in runs) for name in shown} == dict.fromkeys(shown, 1)


def test_the_readme_names_every_page():
    linked = set(re.findall(r"\]\((docs/[^)#]+)\)", README))
    assert {page.relative_to(ROOT).as_posix() for page in PAGES if page.parent.name == "docs"} <= linked


def test_the_readme_is_read_in_four_minutes():
    assert len(README.split()) <= 900


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/privacy.md"])
def test_the_files_that_a_page_about_the_code_names_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    places = (ROOT, ROOT / "workflow/scripts", ROOT / "workflow/scripts/dpvision", ROOT / "config")
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|yaml|smk))`", text)
    assert named
    assert [file for file in named if not any((place / file).exists() for place in places)] == []
