"""Whatever a plugin does, the others work, and one line says what to do about it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from oplet.plugins.plugin import API_VERSION, api_range

BAD = {
    "import": ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "panic": ("class PanicException(BaseException): pass\nraise PanicException('at lib.rs')", "PanicException: at lib.rs"),
    "interrupt of its own": ("class Stop(KeyboardInterrupt): pass\nraise Stop('now')", "Stop: now"),
    "generator": ("raise GeneratorExit", "GeneratorExit"),
    "pytest's exit": ("import pytest\npytest.exit('enough')", "Exit: enough"),
    "memory": ("raise MemoryError", "MemoryError"),
    "no text": (
        "class E(Exception):\n    def __str__(self): raise SystemExit(4)\nraise E",
        "E (which cannot say more: its __str__ raises SystemExit)",
    ),
    "escapes": ("raise ValueError('\\x1b[31m\\u202e')", "ValueError: \\x1b[31m\\u202e"),
    "megabytes": ("raise ValueError('x' * 10_000_000)", "ValueError: xxxx"),
    "syntax": ("def", "SyntaxError: invalid syntax"),
    "many lines": ("raise ValueError('a\\nb')", "ValueError: a b"),
    "hook": (
        """
        from oplet import Registration, hookimpl
        @hookimpl
        def register_ops(resolver):
            resolver.add_custom("Half", Registration(invoke=print))
            raise KeyError("lost")
        """,
        "its hook register_ops raised KeyError: 'lost'",
    ),
    "wrong op": (
        """
        from oplet import Registration, hookimpl
        @hookimpl
        def register_ops(resolver):
            resolver.add_builtin("KONV_2D", Registration(invoke=print))
        """,
        "its hook register_ops raised ResolverError: There is no built-in operator called 'KONV_2D'",
    ),
    "unknown argument": (
        """
        from oplet import hookimpl
        @hookimpl
        def register_ops(registrar):
            pass
        """,
        "Argument(s) {'registrar'} are declared in the hookimpl but can not be found in the hookspec",
    ),
    "future api": ("OPLET_API = '7-8'", "it speaks plugin API 7-8 and this oplet speaks 1, so a newer oplet is needed"),
    "past api": ("OPLET_API = 0", "it speaks plugin API 0 and this oplet speaks 1, so a newer version of the plugin is needed"),
    "api nonsense": ("OPLET_API = 'new'", "OPLET_API is 'new'; write '1'"),
}


@pytest.mark.parametrize(("source", "error"), BAD.values(), ids=BAD)
def test_a_broken_plugin_leaves_the_others_working(site: Any, caplog: Any, source: str, error: str) -> None:
    site.add("oplet-bad", "0.9", source=source, name="bad")
    site.add_op("oplet-good", name="good")
    manager = site.manager()
    assert manager.resolver().find_op("Atan", 1) is not None
    assert manager.resolver().find_op("Half", 1) is None
    [broken] = manager.broken()
    assert (broken.name, broken.state) == ("bad", "broken")
    assert error in broken.error
    [message] = caplog.messages
    assert message.startswith("Plugin 'bad' of oplet-bad 0.9 is left out: ")
    assert error in message
    assert "pip install --upgrade oplet-bad" in message
    assert "pip uninstall oplet-bad" in message
    assert message.isprintable()
    assert len(message) < 1000


def test_an_interruption_by_the_user_ends_the_import_of_a_plugin(site: Any) -> None:
    site.add("oplet-slow", source="raise KeyboardInterrupt", name="slow")
    with pytest.raises(KeyboardInterrupt):
        site.manager().resolver()


def test_no_hook_of_a_plugin_with_another_api_is_called(site: Any) -> None:
    site.add_op("oplet-future", head=f"OPLET_API = {API_VERSION + 1}")
    assert site.manager().resolver().find_op("Atan", 1) is None


def test_a_failing_plugin_is_reported_once(site: Any, caplog: Any) -> None:
    site.add("oplet-bad", source="1 / 0")
    manager = site.manager()
    for _ in range(2):
        manager.resolver()
        manager.registry()
        manager.plugins()
    assert len(caplog.messages) == 1


def test_a_function_that_lacks_the_mark_of_hooks_is_reported(site: Any, caplog: Any) -> None:
    site.add(
        "oplet-x",
        source="from oplet import hookimpl\ndef register_ops(resolver): 1 / 0\nregister_work = hookimpl(lambda table: None)\n",
    )
    site.add("oplet-y", source="from oplet_x import register_ops\n")
    infos = site.manager().plugins()
    assert [note for info in infos for note in info.notes] == [
        "its function 'register_ops' is no hook before @hookimpl stands above it"
    ]
    assert len(caplog.messages) == 1


def test_a_reason_ends_with_one_stop(site: Any) -> None:
    site.add("oplet-x", source="raise ValueError('No.')")
    assert "is broken: ValueError: No." in site.manager().advice("Frobnicate")
    assert ".." not in site.manager().advice("Frobnicate")


def test_a_hook_that_oplet_does_not_have_is_reported_and_the_plugin_works(site: Any, caplog: Any) -> None:
    site.add_op("oplet-x", name="x", head="@hookimpl\n            def register_opps(resolver): 1 / 0\n")
    manager = site.manager()
    assert manager.resolver().find_op("Atan", 1) is not None
    [info] = manager.plugins()
    note = "it implements the hook 'register_opps', which oplet does not have (meant: 'register_ops'?)"
    assert (info.state, info.hooks, info.notes) == ("loaded", ("register_ops",), (note,))
    assert caplog.messages == [f"Plugin 'x' of oplet-x 1.0: {note}."]


def test_an_optional_hook_that_oplet_does_not_have_is_not_reported(site: Any, caplog: Any) -> None:
    site.add_op("oplet-x", head="@hookimpl(optionalhook=True)\n            def register_tools(tools): 1 / 0\n")
    assert site.manager().plugins()[0].notes == ()
    assert caplog.messages == []


def test_a_hook_may_have_another_name_and_leave_out_arguments(site: Any) -> None:
    source = """
        from oplet import hookimpl
        calls = []
        @hookimpl(specname="register_ops")
        def bring_nothing():
            calls.append(1)
        """
    site.add("oplet-x", source=source)
    site.add_op("oplet-y")
    site.manager().plugins()

    assert sys.modules["oplet_x"].calls == [1]


def test_a_failing_delegate_hook_leaves_the_ops_of_the_same_plugin(site: Any) -> None:
    site.add_op("oplet-x", head="@hookimpl\n            def register_delegates(registry): 1 / 0\n")
    manager = site.manager()
    assert list(manager.registry().entries()) == []
    assert manager.resolver().find_op("Atan", 1) is not None
    [broken] = manager.broken()
    assert broken.error == "its hook register_delegates raised ZeroDivisionError: division by zero"
    assert broken.ops == (("Atan", 1, 1),)


def test_an_entry_point_without_a_package_is_a_plugin_too() -> None:
    from importlib_metadata import EntryPoint

    from oplet import PluginManager

    [info] = PluginManager(entry_points=[EntryPoint("lost", "not_there_at_all", "oplet")]).plugins()
    assert (info.state, info.distribution) == ("broken", "")


@pytest.mark.parametrize(
    ("declared", "versions"), [(None, (1, 1)), (2, (2, 2)), ("1", (1, 1)), ("1-3", (1, 3)), ((1, 2), (1, 2))]
)
def test_the_forms_of_an_api_declaration(declared: object, versions: tuple[int, int]) -> None:
    assert api_range(declared) == versions


@pytest.mark.parametrize("declared", ["", "2-1", "1-2-3", "one", (), object(), 1.5])
def test_other_api_declarations_are_refused(declared: object) -> None:
    with pytest.raises(RuntimeError, match="OPLET_API is "):
        api_range(declared)
