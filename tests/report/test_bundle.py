import base64
import hashlib
import re

import pytest

from gyroformer.report import bundle
from gyroformer.report.bundle import ASSETS, policy, script, style

SCRIPTS = sorted(ASSETS.glob("*.js"))


def test_every_file_is_inside_once_and_after_what_it_needs():
    whole = script()
    places = {path.name: whole.index(f"// {path.name}\n") for path in SCRIPTS}
    assert len(re.findall(r"^// [\w]+\.js$", whole, flags=re.M)) == len(SCRIPTS)
    for path in SCRIPTS:
        for needed in re.findall(r'from "\./([\w-]+\.js)"', path.read_text(encoding="utf-8")):
            assert places[needed] < places[path.name]
    assert "import {" not in whole
    assert not re.search(r"^export ", whole, flags=re.M)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_small_and_never_read_markup(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 330
    for danger in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "</script",
    ):
        assert danger not in text
    names = [
        name for names in re.findall(r"^import \{([^}]*)\}", text, flags=re.M) for name in names.split(",")
    ]
    body = re.sub(r"^import .*$", "", text, flags=re.M)
    assert [name.strip() for name in names if not re.search(rf"\b{name.strip()}\b", body)] == []


def test_what_is_taken_is_offered():
    offered = {
        path.name: set(
            re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", path.read_text(), flags=re.M)
        )
        for path in SCRIPTS
    }
    for path in SCRIPTS:
        for names, source in re.findall(
            r'^import \{([^}]*)\} from "\./([\w-]+\.js)"', path.read_text(), flags=re.M
        ):
            assert {name.strip() for name in names.split(",")} <= offered[source], path.name


def test_the_style_asks_for_nothing():
    assert "url(" not in style()
    assert "@import" not in style()


def test_the_policy_lets_our_own_script_and_style_through_and_nothing_else():
    def source(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy() == (
        f"default-src 'none'; script-src {source(script())}; style-src {source(style())}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_nothing_the_page_needs_is_left_out_of_the_package():
    # the scripts are package data: beside the module that reads them
    assert bundle.ASSETS.parent == bundle.Path(bundle.__file__).parent
    assert {"main.js", "page.css"} <= {path.name for path in ASSETS.iterdir()}
