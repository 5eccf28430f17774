"""Chat templates: what they render, and that none reaches out of its sandbox, or takes time or memory without end."""

from __future__ import annotations

import pytest
from plugins.lm.tests.makers import field

from oplet.errors import LimitError, ModelError, OpletError
from oplet_lm import template
from oplet_lm.metadata import read_metadata
from oplet_lm.template import render

MESSAGES = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% for m in messages %}<{{ m['role'] + '>' + m['content'] }}\n{% endfor %}", "<system>be kind\n<user>hello\n"),
        ("{% for m in messages %}{% for c in m.content %}{{ c['text'] }}.{% endfor %}{% endfor %}", "be kind.hello."),
        ("{% for m in messages %}{% for c in m.content %}{% if c.type == 'text' %}{{ c.text }}|{% endif %}{% endfor %}{% endfor %}", "be kind|hello|"),
        ("{{ bos }}{% for m in messages %}{% if loop.last %}{% break %}{% endif %}{{ m.content|trim }}{% endfor %}", "<s>be kind"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }} {{ messages[1].content }} {{ messages[0].content }}", "2 hello be kind"),
    ],
)  # fmt: skip
def test_a_template_gets_texts_or_where_it_wants_them_parts(source: str, text: str) -> None:
    assert render(source, MESSAGES, {"bos": "<s>"}) == text


def test_roles_without_a_template_have_prefixes_and_suffixes() -> None:
    around = "<u 'ü\"\n {{ 1 }} %}🐈>"
    affixes = field(3, field(1, field(1, around) + field(2, "</u>")) + field(2, field(1, "<m>") + field(2, "</m>")))
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": [{"type": "text", "text": "c"}]},
    ]
    assert render(read_metadata(affixes).template, messages, {}) == f"{around}a</u><m>b</m>{around}c</u><m>"


HOSTILE = {
    "reaches for classes": "{{ ().__class__.__mro__[1].__subclasses__() }}",
    "reaches for globals": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "reaches by a filter": "{{ messages|attr('__class__') }}{{ ''|attr('__class__')|attr('__mro__') }}{{ ().__class__ }}",
    "reads a file": "{% include '/etc/passwd' %}",
    "changes what it is given": "{{ messages.append(1) }}",
    "formats attributes": "{{ '{0.__class__.__init__}'.format(messages[0]) }}",
    "is no template": "{% for %}",
    "fails": "{{ 1 / 0 }}",
    "refuses": "{{ raise_exception('only one message') }}",
    "calls itself": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "multiplies a text": "{{ 'a' * 10 ** 10 }}",
    "doubles a text": "{% set n = namespace(x='a' * 999) %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubles a list": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x|string }}",
    "counts without end": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "raises a number to a power": "{{ 9 ** (9 ** 9) }}",
    "fills a field": "{{ '%0999999999d'|format(1) }}",
    "is long": " " * (2 << 20),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_template_ends_in_a_sentence(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_SECONDS", 2)
    with pytest.raises((ModelError, LimitError), match="The chat template ") as caught:
        render(HOSTILE[case], MESSAGES, {})
    assert isinstance(caught.value, OpletError)
    assert len(str(caught.value).splitlines()) == 1
