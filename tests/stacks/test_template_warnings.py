"""Warnings about templates: content that no layout shows, CSS that is read as code, links, empty parts."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mailroom.content.templates import engine_of
from mailroom_stacks.templates.checks import check
from mailroom_stacks.templates.folder import Folder
from mailroom_stacks.templates.warnings import GMAIL_BYTES, in_source
from tests.support import ROOT
from tests.support.unit.shelf import Shelf

Findings = Callable[..., list[str]]
LAYOUT = "<body>{% block body %}{% endblock %}<i>{% block foot %}Bye{% endblock %}</i></body>"
BEGIN = "{% extends '_layout/body.html' %}"
FILLED = BEGIN + "{% block body %}Hi{% endblock %}"
HTML = "templates/mail/a/body.html"
NOTHING = "is empty when rendered; write content that is always shown, or remove the file"
NOWHERE = "does not work in a mail; begin it with https://, mailto: or tel:"
BLOCKS = "one of the layout's blocks (body, foot)"


def sentences(folder: Folder) -> list[str]:
    """Return the sentences of all findings."""
    return [finding.sentence for finding in check(folder.root)]


@pytest.fixture
def shelf_with_layout(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path / "templates" / "mail")
    shelf.put("_layout", html=LAYOUT)
    return shelf


@pytest.fixture
def findings(shelf_with_layout: Shelf) -> Findings:
    """Write the template `a` with an example, and return the findings in the folder."""

    def write(variables: dict[str, object] | None = None, **parts: str) -> list[str]:
        shelf_with_layout.put("a", **{"subject": "Hello", "text": "Hi", **parts})
        (shelf_with_layout.root / "a" / "examples").mkdir(exist_ok=True)
        (shelf_with_layout.root / "a" / "examples" / "ada.json").write_text(json.dumps(variables or {}))
        return sentences(Folder(shelf_with_layout.root.parent))

    return write


@pytest.mark.parametrize(
    ("html", "line"),
    [
        ("\n\n  Dear Ada", 3),
        ("\n{{ 1 + 1 }}", 2),
        ("{% if true %}Dear{% endif %}", 1),
        ("{% for x in [1] %}\n{{ x }}{% endfor %}", 2),
        ("{% filter upper %}\nDear{% endfilter %}", 2),
        ("{% macro m() %}{% endmacro %}\n{{ m() }}", 2),
        ("{% raw %}Dear{% endraw %}", 1),
        ("{% set x %}no{% endset %}{{ x }}", 1),
        ("{% set x = 1 %}Dear", 1),
        ("{% set x | replace('a', '=') %}no{% endset %}\nDear", 2),
        ("\n{% include '_text/body.html' %}", 2),
        ("Dear Ada,\n{{ 1 }}\nBye", 1),
    ],
)
def test_content_outside_of_a_layouts_blocks_is_reported_with_the_number_of_its_first_line(
    findings: Findings, shelf_with_layout: Shelf, html: str, line: int
) -> None:
    shelf_with_layout.put("_text", html="Dear")
    assert findings(html=FILLED + html) == [
        f"{HTML}:{line}: this is not shown, because the file extends a layout; put it into {BLOCKS}"
    ]


@pytest.mark.parametrize(
    "html",
    [
        FILLED + "\n\n  {# a comment #}\n{%- set x = {'a': {'b': 1}} -%}\n{% set y %}no{% endset %}",
        FILLED + "{% macro m() %}no{{ 1 }}{% endmacro %}{% import '_parts/body.html' as parts %}",
        FILLED + "{% from '_parts/body.html' import b %}",
        FILLED + "{% if true %}{% set x = 1 %}{% else %} {% endif %}{% do range(3) %}",
        "<!doctype html>" + FILLED,
        "{# for all #}" + FILLED + "{#- Dear #}",
        "{% if false %}" + BEGIN + "{% endif %}Dear Ada{% block own %}{% endblock %}",
        BEGIN + "{% set x | upper %}{% block foot %}Dear{% endblock %}{% endset %}",
        BEGIN + "{% block body %}{% set x = '{% endblock %}' %}Dear{% endblock %}",
    ],
)
def test_a_template_does_not_cause_a_warning_if_its_layout_shows_all_of_its_content(
    findings: Findings, shelf_with_layout: Shelf, html: str
) -> None:
    shelf_with_layout.put("_parts", html="{% macro b() %}no{% endmacro %}\n{% set z = '%}' %}")
    assert findings(html=html) == []


@pytest.mark.parametrize(
    ("html", "line", "name"),
    [
        ("{% block body %}Hi{% endblock %}\n{%- block bdy -%}Hi{% endblock %}", 2, "bdy"),
        ("{% block bdy %}{% block body %}Hi{% endblock %}{% endblock bdy %}", 1, "bdy"),
        ("{% if true %}\n{% block Foot scoped %}Hi{% endblock %}{% endif %}", 2, "Foot"),
    ],
)
def test_a_block_that_the_layout_lacks_is_reported_with_its_line_number(
    findings: Findings, html: str, line: int, name: str
) -> None:
    assert findings(html=BEGIN + html) == [
        f"{HTML}:{line}: the layout does not show the block {name!r}; rename it to {BLOCKS}"
    ]


def test_a_block_of_an_included_part_is_not_a_block_of_the_layout(
    findings: Findings, shelf_with_layout: Shelf
) -> None:
    shelf_with_layout.put("_layout", html="{% include '_part/body.html' %}")
    shelf_with_layout.put("_part", html="{% block body %}Hi{% endblock %}")
    assert findings(html=BEGIN + "{% block body %}Dear{% endblock %}") == [
        f"{HTML}:1: the layout does not show the block 'body'; "
        "rename it to one of the layout's blocks (it has none)"
    ]


@pytest.mark.parametrize(
    "html",
    [
        "{% extends '_layout/body.html' if vip is defined else '_other/body.html' %}"
        "{% block body %}Hi{% endblock %}{% block head %}Hi{% endblock %}",
        BEGIN + "{% block foot %}{{ self.sign() }}{% endblock %}{% block sign %}Ada{% endblock %}",
        BEGIN + "{% block foot %}{% block sign %}Ada{% endblock %}{% endblock %}",
    ],
)
def test_a_block_causes_no_warning_if_a_possible_layout_or_another_block_shows_it(
    findings: Findings, shelf_with_layout: Shelf, html: str
) -> None:
    shelf_with_layout.put("_other", html="{% block head %}{% endblock %}Hi")
    assert findings(html=html) == []


def test_a_layout_that_is_missing_is_a_fault_without_a_warning_about_its_blocks(findings: Findings) -> None:
    (fault,) = findings(html="{% extends '_nosuch/body.html' %}{% block body %}Hi{% endblock %}")
    assert fault.startswith(f"{HTML}:1 failed: ")


def test_a_template_that_extends_itself_is_a_fault(findings: Findings) -> None:
    (fault,) = findings(html="{% extends 'a/body.html' %}{% block body %}Hi{% endblock %}")
    assert "a/body.html" in fault


def tree(
    draw: random.Random, names: list[str], mark: str, below: frozenset[str], depth: int = 0
) -> Iterator[str]:
    """Yield blocks with these names, some of them in others, each with a mark of its file and name. Blocks
    that a layout has (`below`) may show the layout's block, too."""
    while names:
        name = names.pop(0)
        # Only later names are in a block, because blocks that contain each other would be endless.
        inner = [each for each in names if each > name and depth < 3 and draw.random() < 0.3]
        names = [each for each in names if each not in inner]
        above = "{{ super() }}" if name in below and draw.random() < 0.3 else ""
        content = "".join(tree(draw, inner, mark, below, depth + 1))
        yield f"{{% block {name} %}}<{mark}{name}>{above}{content}{{% endblock %}}"


def chain(seed: int) -> dict[str, str]:
    """Draw a template and its layouts. The first is the layout of the second, and so on."""
    draw = random.Random(seed)
    sources, below = dict[str, str](), frozenset[str]()
    for level in range(draw.randrange(2, 5)):
        names = draw.sample("abcdefg", draw.randrange(1, 7))
        begin = f"{{% extends '{level - 1}.txt' %}}" if level else ""
        sources[f"{level}.txt"] = begin + "\n".join(tree(draw, [*names], f"{level}", below))
        below |= {*names}
    return sources


def test_a_warning_names_exactly_the_blocks_that_a_rendering_lacks() -> None:
    counts = [0, 0]
    for seed in range(500):
        sources = chain(seed)
        last = max(sources)
        rendered = engine_of(sources).render(last, {})
        warned = {sentence.split("'")[1] for _, sentence in in_source(last, sources)}
        for name in "abcdefg":
            if f"block {name} " in sources[last]:
                shown = f"<{last[0]}{name}>" in rendered
                counts[shown] += 1
                assert (name in warned) != shown, (seed, name)
    assert min(counts) > 300


def test_the_checks_follow_layouts_through_several_files_and_report_the_warning_of_a_layout_once(
    findings: Findings, shelf_with_layout: Shelf
) -> None:
    middle = BEGIN + "{% block body %}{% block main %}{% endblock %}{% endblock %}\nstray"
    shelf_with_layout.put("_middle", html=middle)
    shelf_with_layout.put(
        "b", subject="Hello", html="{% extends '_middle/body.html' %}{% block main %}Hi{% endblock %}"
    )
    html = "{% extends '_middle/body.html' %}{% block main %}Hi{% endblock %}{% block side %}{% endblock %}"
    assert findings(html=html) == [
        "templates/mail/_middle/body.html:2: this is not shown, because the file extends a layout; "
        "put it into one of the layout's blocks (body, foot, main)",
        f"{HTML}:1: the layout does not show the block 'side'; "
        "rename it to one of the layout's blocks (body, foot, main)",
    ]


def read_as_code(line: int, sign: str) -> str:
    return (
        f"{HTML}:{line}: `{{{sign}` begins code of the template in CSS and scripts, too; "
        f"write `{{ {sign}` for CSS or a script, or a blank behind `{{{sign}`"
    )


@pytest.mark.parametrize("element", ["style", "script type='x'", "STYLE media='{{ 1 }}'"])
@pytest.mark.parametrize(
    ("css", "warnings"),
    [
        ("@media print{#id{color:red}}", [(2, "#")]),
        ("@media print{#id{color:#fff}} {# end #}", [(2, "#")]),
        ("b{}\na{{b}}", [(3, "{")]),
        ("@media print{%a{}%}", [(2, "%")]),
        ("a:not(b){{c:d}}\n*{{e}}", [(2, "{"), (3, "{")]),
        ("{% raw %}@media print{#id{}}a{{b}}{% endraw %}", []),
        ("@media print{ #id{} }a{ {b} }", []),
        ("a{color:{{ b }};width:{{b}}px} .c-{{b}}{% if b %}{x:y}{%endif%}{#- c -#}{# d #}", []),
        ("var a={{b}};f({{b}});{{b}}\n'{{b}}'", []),
        ("{# a{{b}} {#c #}", []),
    ],
)
def test_css_or_a_script_that_the_template_engine_reads_as_code_is_reported_with_its_line_number(
    findings: Findings, css: str, warnings: list[tuple[int, str]], element: str
) -> None:
    html = f"<{element}>\n{css}\n</{element.split()[0]}>Hi a{{{{b}}}}"
    sentences = [each for each in findings({"b": 1, "e": 1}, html=html) if "begins code" in each]
    assert sentences == [read_as_code(*warning) for warning in warnings]


@pytest.mark.parametrize("variables", [{}, {"name": "Ada", "note": "two\nlines"}])
@pytest.mark.parametrize("subject", ["Hello\n{{ name | default('Ada') }}", "{{ 'a\nb' }}"])
def test_a_subject_of_several_lines_is_the_fault_of_its_file(
    findings: Findings, subject: str, variables: dict[str, object]
) -> None:
    assert findings(variables, subject=subject) == [
        "templates/mail/a/subject.txt: has several lines; a subject is one line, so join them"
    ]


@pytest.mark.parametrize("name", ["two\nlines", ["two\u2028lines"], {"x": ["two\r\nlines"]}])
def test_a_line_break_in_a_variable_of_the_subject_is_the_fault_of_the_variable(
    findings: Findings, name: object
) -> None:
    subject = "{{ name if name is string else name.x[0] if name is mapping else name[0] }}"
    (sentence,) = findings({"name": name}, subject=subject)
    assert sentence.startswith(
        "templates/mail/a/subject.txt: holds a line break when rendered; its variables"
    )


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"subject": "A &amp; B"}, "subject.txt:1: &amp;"),
        ({"subject": "{{ name }}"}, "subject.txt: &nbsp;"),
        ({"text": "one\ntwo&#8203;"}, "body.txt:2: &#8203;"),
        ({"text": "one\n{% include '_text/body.txt' %}", "html": "&euro;"}, "_text/body.txt:2: &euro;"),
    ],
)
def test_an_html_entity_in_a_part_that_is_not_html_is_reported(
    findings: Findings, shelf_with_layout: Shelf, parts: dict[str, str], place: str
) -> None:
    shelf_with_layout.put("_text", text="\n2 &euro;", html="&nbsp;Hi")
    place = f"templates/mail/{place if '/' in place else f'a/{place}'}"
    assert findings({"name": "a&nbsp;b"}, **parts) == [
        f"{place} is shown as it is written, because this is not HTML; write its character"
    ]


def test_an_ampersand_that_begins_no_entity_causes_no_warning(findings: Findings) -> None:
    assert findings(subject="Q&A; R&D &", text="https://a.example/?a=1&copy=2&reg=3&x;") == []


@pytest.mark.parametrize(
    ("link", "place"),
    [
        ('<p>\n<a href="www.a.example">', "2: the link 'www.a.example'"),
        ("<a href='/start?a=1&amp;b'>", "1: the link '/start?a=1&b'"),
        ('<a href="{{ url }}">', " the link 'a.example'"),
        ('\n\n<area href="javascript:x()">', "3: the link 'javascript:x()'"),
        ('<a href="">', "1: the link ''"),
        ("<A HREF=//a.example/>", " the link '//a.example/'"),
        ("<a href='https:a.example'>", "1: the link 'https:a.example'"),
    ],
)
def test_a_link_that_does_not_work_in_a_mail_is_reported_with_its_url(
    findings: Findings, link: str, place: str
) -> None:
    assert findings({"url": "a.example"}, html=f"{link}Hi") == [f"{HTML}:{place} {NOWHERE}"]


@pytest.mark.parametrize(
    "html",
    [
        "",
        " \n",
        "<p>&nbsp;</p>",
        "<title>Hello</title>\n<style>a{}</style>",
        "<!-- a -->&#8203;",
        "{# a #}",
    ],
)
def test_html_that_shows_nothing_is_a_fault(findings: Findings, html: str) -> None:
    assert findings(html=html) == [f"{HTML}: {NOTHING}"]
    assert findings(html=f"{html}<img src='https://a.example/b.png' alt=''>") == []


@pytest.mark.parametrize("text", ["", "\n", "{% if false %}Hi{% endif %}", "\u200b\u00a0"])
def test_a_plain_text_part_that_shows_nothing_is_a_fault(
    findings: Findings, shelf_with_layout: Shelf, text: str
) -> None:
    assert findings(text=text) == [f"templates/mail/a/body.txt: {NOTHING}"]
    assert findings(text=text, html="Hi") == [f"templates/mail/a/body.txt: {NOTHING}"]


@pytest.mark.parametrize(
    ("text", "problem"), [(" \n", "is empty"), ("x" * 1600, "takes 11 segments in GSM-7")]
)
def test_an_sms_template_that_is_empty_or_too_long_is_reported_with_its_file(
    shelf_with_layout: Shelf, text: str, problem: str
) -> None:
    root = shelf_with_layout.root.parent
    (root / "sms/code/examples").mkdir(parents=True)
    (root / "sms/code/body.txt").write_text(text)
    (root / "sms/code/examples/ada.json").write_text("{}")
    (sentence,) = sentences(Folder(root))
    assert sentence.startswith(f"templates/sms/code/body.txt: {problem}")


def test_html_that_gmail_would_cut_off_is_reported_once_for_all_examples(
    findings: Findings, shelf_with_layout: Shelf
) -> None:
    html = "x" * GMAIL_BYTES
    findings(html=html)
    (shelf_with_layout.root / "a/examples/bob.json").write_text("{}")
    assert findings(html=html) == []
    assert findings(html=f"{html}x") == [f"{HTML}: Gmail cuts off HTML after 102 KB; shorten it"]


def test_a_template_in_mjml_is_refused_because_it_must_be_compiled_first(findings: Findings) -> None:
    html = "<!doctype html>\n<mjml><mj-body><mj-text>Hi</mj-text></mj-body></mjml>"
    assert findings(html=html) == [
        f"{HTML}:2: mail programs do not read MJML; compile it to HTML, and use that"
    ]


def test_a_finding_names_the_file_of_the_language_in_which_it_was_found(
    findings: Findings, shelf_with_layout: Shelf
) -> None:
    shelf_with_layout.put("a/fr", subject="A", html="<a href='x.example'>A</a>", text="")
    shelf_with_layout.put("a/fr-CA", subject="A", html="<a href='y.example'>A</a>", text="A")
    assert findings({"locale": "fr-CA-x-a"}, html="Hi") == [
        f"templates/mail/a/fr-CA/body.html:1: the link 'y.example' {NOWHERE}",
        f"templates/mail/a/fr/body.txt: {NOTHING}",
        f"templates/mail/a/fr/body.html:1: the link 'x.example' {NOWHERE}",
    ]


def test_the_projects_own_templates_have_no_findings() -> None:
    assert sentences(Folder(ROOT / "templates")) == []


EVERYDAY = {
    "_layout/base.html": """<!doctype html><html lang="{{ locale | default("en") }}">
<head><meta charset="utf-8"><title>{% block title %}Shop{% endblock %}</title>
<link href="https://fonts.example/css?family=Inter:wght@400;700&display=swap" rel="stylesheet">
<style>
  :root { --brand: {{ brand | default("#14513c") }}; }
  a{color:#333}#main{width:100%}
  @media only screen and (max-width:600px) { #main { width: 100% !important; } .col-6 { width: 50%; } }
  @media (prefers-color-scheme: dark) { body { background: #000; } }
  {% if dark is defined %}body { background: #111; }{% endif %}
  {# the button #} .button:hover { color: #fff }
</style>
<!--[if mso]><style>td{font-family:Arial}</style><xml><o:PixelsPerInch>96</o:PixelsPerInch></xml><![endif]-->
</head><body id="main">{% block preheader %}{% endblock %}{% block body %}{% endblock %}
<footer>{% block footer %}{% include "_layout/address.html" %}{% endblock %}</footer></body></html>""",
    "_layout/address.html": """<a href="https://shop.example">us</a>, <a href="tel:+4930123">call</a>,
<a href='mailto:help@shop.example?subject=Help&amp;body=Hi'>write</a>, <a href="#main">up</a>""",
    "_layout/parts.html": """{% macro button(label, url) -%}
<table role="presentation"><tr><td><a class="button" href="{{ url }}">{{ label }}</a></td></tr></table>
{%- endmacro %}
{% macro row() %}<tr>{{ caller() }}</tr>{% endmacro %}""",
    "_narrow/base.html": """{% extends "_layout/base.html" %}
{% block body %}<main style="max-width:{{ width | default(480) }}px">{% block main %}{% endblock %}</main>
{% endblock %}""",
    "welcome/subject.txt": "Welcome, {{ first_name }} & friends!\n",
    "welcome/body.txt": "Dear {{ first_name }},\n\nbegin here: {{ url }}?a=1&b=2\n",
    "welcome/body.html": """{% extends "_layout/base.html" %}
{% from "_layout/parts.html" import button %}
{# The text is checked by the lawyers. #}
{% block title %}Welcome{% endblock %}
{% block body %}<p>Dear {{ first_name }}</p>{{ button("Begin", url) }}{% endblock %}
""",
    "welcome/fr/subject.txt": "Bienvenue, {{ first_name }}",
    "welcome/fr/body.txt": "Bonjour",
    "welcome/fr/body.html": """{% extends "welcome/body.html" %}
{% block body %}{{ super() }}<p>À bientôt</p>{% endblock %}""",
    "order/subject.txt": """{%- set n = lines | length -%}
{% if n == 1 %}Your item{% else %}Your {{ n }} items{% endif %}
""",
    "order/body.txt": """{% for line in lines %}{{ line.n }} x {{ line.name }}
{% else %}Nothing
{% endfor %}""",
    "order/body.html": """{% extends "_narrow/base.html" %}
{% import "_layout/parts.html" as parts %}
{% set total = lines | sum(attribute="n") %}
{% block main %}<table>{% for line in lines %}
{% call parts.row() %}<td>{{ line.n }}</td><td>{{ line.name }}</td>{% endcall %}{% endfor %}</table>
{{ total }}{% endblock %}
{% block footer %}{{ super() }}
<a href="{{ unsubscribe_url | default("https://shop.example/stop") }}">Stop</a>{% endblock %}""",
    "code/subject.txt": "{{ code }} is your code",
    "code/body.txt": "{{ code }}",
    "receipt/subject.txt": "Receipt",
    "receipt/body.html": """<img src="cid:logo" alt=""><script type="application/ld+json">
{"@context": "http://schema.org", "order": {"number": "{{ number }}", "price": {"value": {{ price }}}}}
</script><p style="color:{{colour}}">{{ price }}</p>""",
    "picture/subject.txt": "Sale",
    "picture/body.html": """{% raw %}<style>@media print{#a{b:c}}</style>{% endraw %}
<map><area href="{{ url }}"></map>
<a href=" HTTPS://shop.example "><img src="https://shop.example/a.png"></a>""",
    "reset/subject.txt": "{% block subject %}New password{% endblock %}",
    "reset/body.txt": "{% filter upper %}{{ first_name }}{% endfilter %}{{ {'a': {'b': 1}}['a']['b'] }}",
}
VARIABLES = {
    "first_name": "Ada",
    "url": "https://shop.example/begin",
    "lines": [{"n": 2, "name": "Tea & coffee"}],
    "code": "4711",
    "number": "17",
    "price": 9,
    "colour": "#fff",
    "attachments": [{"ref": "s3://bucket/logo.png", "content_id": "logo"}],
}


def test_the_checks_report_neither_faults_nor_warnings_of_ordinary_templates(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "templates")
    for name, source in EVERYDAY.items():
        file = folder.root / "mail" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    for template in folder.all():
        (folder.root / template.path / "examples").mkdir()
        (folder.root / template.path / "examples" / "ada.json").write_text(json.dumps(VARIABLES))
    assert len(folder.all()) == 6
    assert sentences(folder) == []
