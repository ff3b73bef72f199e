"""Addons from their files: what cannot be loaded is told with file and line, what stands beside it belongs to it."""

import sys
from pathlib import Path

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.hooks.loading import load
from mcpsniff.hooks.shipped import READY
from tests.hooks.loaded import Loaded, written
from tests.rules.staging import request

PASSES = "def mcp_edit(message):\n    return message\n"


def refusal(path: Path, *settings: str) -> str:
    with pytest.raises(UsageError) as caught:
        load([str(path)], settings, print)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x = 1\ndef f(:\n    pass\n", 2, "SyntaxError: invalid syntax"),
        ("\n\nimport nowhere_at_all\n", 3, "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f():\n    return 1 / 0\n\nf()\n", 2, "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("def f():\n    f()\nf()\n", 2, "RecursionError: maximum recursion depth exceeded"),
        (
            "class A:\n    def __init__(self):\n        raise OSError(5, 'no')\naddons = [A]\n",
            3,
            "OSError: [Errno 5] no",
        ),
        ("def load(loader):\n    loader.add_option('x', dict, {}, '')\n", 2, "TypeError: an option is bool, int"),
        ("def load(loader):\n    loader.add_option('x', int, 'y', '')\n", 2, "TypeError: the default 'y' of"),
        ("x = '\x1b[2J'\nraise ValueError(x)\n", 2, "ValueError: \\x1b[2J"),
        ("x = 1\n\n  y = 2\n", 3, "IndentationError: unexpected indent"),
    ],
)
def test_what_cannot_be_loaded_is_told_with_its_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = written(tmp_path / "broken.py", text)
    before = set(sys.modules)
    said = refusal(path)
    assert said.startswith(f"cannot load the addon {path}, line {line}: {what}")
    assert "\n" not in said
    assert not [name for name in set(sys.modules) - before if "broken" in name]


def test_a_fault_in_a_file_beside_it_is_told_with_that_file(tmp_path: Path) -> None:
    written(tmp_path / "helper_of_a_test.py", "x = 1\ny = z\n")
    path = written(tmp_path / "addon.py", "import helper_of_a_test\n")
    assert refusal(path).startswith(f"cannot load the addon {tmp_path / 'helper_of_a_test.py'}, line 2: NameError")
    assert "helper_of_a_test" not in sys.modules


@pytest.mark.parametrize("name", ["nowhere.py", "."])
def test_what_is_no_file_is_told(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path / name).startswith(f"cannot load the addon {(tmp_path / name).resolve()}: ")


def test_two_folders_may_have_modules_of_one_name(tmp_path: Path) -> None:
    names = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "twin_helper.py", f"name = {folder!r}\n")
        text = """
            import twin_helper
            def mcp_edit(message):
                message.body["by"] = twin_helper.name
                return message
        """
        names.append(written(tmp_path / folder / "addon.py", text))
    for path in names:
        stage = Loaded(path)
        stage.client(request(1, "ping"))
        assert stage.at_server()["by"] == path.parent.name


def test_a_module_beside_it_is_found_later_too(tmp_path: Path) -> None:
    written(tmp_path / "late_helper.py", "count = []\n")
    text = """
        import late_helper
        def mcp_edit(message):
            import late_helper as again
            assert again is late_helper
            return message
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    stage.client(request(1, "ping"))
    assert stage.to_server()
    assert stage.said == []


def test_a_module_beside_it_takes_no_name_of_the_standard_library(tmp_path: Path) -> None:
    written(tmp_path / "wave.py", "raise AssertionError('loaded')\n")
    Loaded(written(tmp_path / "addon.py", f"import wave\n{PASSES}"))
    assert sys.modules["wave"].__file__ != str(tmp_path / "wave.py")


def test_hooks_of_the_module_of_objects_and_of_classes_are_called_in_order(tmp_path: Path) -> None:
    text = """
        import mcpsniff
        class Mark:
            def __init__(self, name="class"):
                self.name = name
            def mcp_edit(self, message):
                message.body.setdefault("by", []).append(self.name)
                return message
        class Nest:
            addons = [Mark("inner")]
        addons = [Mark("object"), Mark, Nest()]
        def mcp_edit(message):
            message.body["by"] = ["module"]
            return message
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    stage.client(request(1, "ping"))
    assert stage.at_server()["by"] == ["module", "object", "class", "inner"]
    assert stage.whys == ["addon"]


def test_a_later_hook_of_a_file_has_what_an_earlier_one_lets_pass(tmp_path: Path) -> None:
    text = """
        import mcpsniff
        class First:
            def mcp_edit(self, message):
                if message.method == "drop":
                    return None
                return [mcpsniff.notification("before"), mcpsniff.Told(message, "first")]
        class Second:
            def mcp_edit(self, message):
                assert message.method != "drop"
                message.body["seen"] = True
                return message
        addons = [First(), Second()]
    """
    stage = Loaded(written(tmp_path / "addon.py", text))
    stage.client(request(1, "ping"))
    assert [b"seen" in text for text in stage.to_server()] == [True, True]
    assert [out.why for out in stage.outs] == ["", "first"]
    stage.client(request(2, "drop"))
    assert stage.to_server() == []
    assert stage.said == []


def test_life_goes_load_configure_running_done(tmp_path: Path) -> None:
    text = """
        from mcpsniff import ctx
        def load(loader):
            loader.add_option("life_list", list[str], [], "what happened")
            loader.add_option("life_flag", bool, False, "")
        def configure(updated):
            ctx.log.info(f"configured {sorted(updated)} {ctx.options.life_flag}")
        async def running():
            ctx.log.info("running")
        def done():
            ctx.log.warn("done")
        def mcp_edit(message):
            return message
    """
    path = written(tmp_path / "addon.py", text)
    stage = Loaded(path, settings=["life_flag"])
    assert stage.said == ["configured ['life_flag', 'life_list'] True", "running"]
    stage.end()
    assert stage.said[2:] == ["warning: done"]


def test_who_observes_is_told_of_with_all_settings(tmp_path: Path) -> None:
    text = "def load(loader):\n    loader.add_option('who', int, 0, '')\ndef mcp_finding(finding):\n    1 / 0\n"
    observer = written(tmp_path / "observer.py", text)
    editor = written(tmp_path / "editor.py", PASSES)
    loaded = load([str(editor), str(observer)], ["who=3"], print)
    assert [one.name for one in loaded.editing] == ["editor"]
    assert loaded.observers == ["--addon", str(observer), "--set", "who=3"]
    assert load([str(editor)], [], print).observers == []


def test_a_file_without_a_hook_is_told_of(tmp_path: Path) -> None:
    path = written(tmp_path / "addon.py", "def request(flow):\n    pass\n")
    assert Loaded(path).said == [f"{path} has no hook that would be called (mcpsniff addons --hooks lists them)"]


def test_a_setting_needs_an_addon_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--set x=1 sets an option of an addon, and there is no --addon"):
        load([], ["x=1"], print)
    path = written(tmp_path / "addon.py", PASSES)
    assert refusal(path, "x=1") == "--set x: the addons have no options"
    text = "def load(loader):\n    loader.add_option('colour', str, 'red', '', ['red', 'blue'])\n" + PASSES
    path = written(tmp_path / "addon.py", text)
    assert refusal(path, "color=red").endswith("did you mean colour?; there is colour")
    assert refusal(path, "colour=green") == "--set colour is one of red, blue, not 'green'"


def test_two_addons_may_share_an_option_of_one_type(tmp_path: Path) -> None:
    one = written(tmp_path / "one.py", "def load(loader):\n    loader.add_option('shared', int, 1, '')\n" + PASSES)
    same = written(tmp_path / "same.py", one.read_text())
    other = written(tmp_path / "other.py", one.read_text().replace("int, 1", "str, '1'"))
    assert len(load([str(one), str(same)], ["shared=2"], print).editing) == 2
    with pytest.raises(UsageError, match=r"other\.py: the option shared is declared twice, as integer and text"):
        load([str(one), str(other)], [], print)


def test_a_ready_addon_is_found_by_its_name_unless_there_is_such_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in READY:
        for word in (name, f"{name}.py"):
            loaded = load([word], [], print)
            assert loaded.editing or loaded.observers
    (edits,) = load(["block_tool"], ["block_tool=x"], print).editing
    assert edits.name == "block_tool"
    written(tmp_path / "block_tool.py", "1 / 0\n")
    assert "line 1: ZeroDivisionError" in refusal(Path("block_tool.py"))
    assert refusal(Path("mcp_view")).endswith("mcp_view: No such file or directory")
