"""Where captures go, how they are created, and that nobody else can read them."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture import store
from mcpsniff.capture.labels import LONGEST, default_label, safe_label, shown
from mcpsniff.capture.store import (
    bare_folder,
    capture_folder,
    config_file,
    is_being_written,
    new_capture_file,
    part_path,
    split_part,
)
from mcpsniff.errors import CaptureError

NAME = re.compile(r"(.+)-\d{8}T\d{6}\.\d{3}Z-\d+(-\d+)?\.mcpcap")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing set in the environment, as a server of an SDK client has it."""
    for name in ("MCPSNIFF_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def umask() -> Iterator[None]:
    """The usual umask, whatever the person's."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def create(directory: str | None = None, output: str | None = None, label: str | None = None) -> tuple[Path, list[str]]:
    warnings: list[str] = []
    descriptor, path = new_capture_file(directory, output, label, ["python", "server.py"], warn=warnings.append)
    os.close(descriptor)
    return Path(path), warnings


def configure(home: Path, text: str) -> Path:
    path = Path(config_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_folder_is_the_first_that_is_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = capture_folder()
    assert default.startswith(str(home))
    assert default.endswith("mcpsniff")
    configure(home, 'dir = "~/from-config"\n')
    assert capture_folder() == bare_folder() == str(home / "from-config")
    monkeypatch.setenv("MCPSNIFF_DIR", str(home / "from-env"))
    assert capture_folder() == str(home / "from-env")
    assert bare_folder() == str(home / "from-config")
    assert capture_folder(str(home / "from-option")) == str(home / "from-option")


def test_a_relative_folder_in_the_config_file_does_not_depend_on_where_one_is(home: Path) -> None:
    path = configure(home, 'dir = "captures"\n')
    assert capture_folder() == str(path.parent / "captures")


def test_recorder_and_reader_agree_when_only_the_reader_sees_xdg(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(home, 'dir = "~/agreed"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "elsewhere"))
    assert capture_folder() == str(home / "agreed")
    configure(home, "")
    other = home / "elsewhere/mcpsniff/config.toml"
    other.parent.mkdir(parents=True)
    other.write_text(f'dir = "{home}/mine"')
    assert capture_folder() == str(home / "mine"), "XDG_CONFIG_HOME counts where it leads to a file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dir = ", "is passed over: Invalid value"),
        ("dir = 7", "`dir` in the config file"),
        ("dir = ''", "it is not a path"),
        ('dir = "a\\u0000b"', "it is not a path"),
        ("dir = " + "[" * 5000, "is passed over"),
        ("\udcff", "is passed over"),
    ],
)
def test_a_broken_config_file_is_said_and_costs_nothing(home: Path, text: str, said: str) -> None:
    default = capture_folder()
    path = configure(home, "")
    path.write_bytes(text.encode(errors="surrogateescape"))
    warnings: list[str] = []
    assert capture_folder(warn=warnings.append) == default
    (warning,) = warnings
    assert said in warning
    assert str(path) in warning
    assert "\n" not in warning


def test_a_new_file_is_named_after_label_time_and_process(home: Path) -> None:
    descriptor, path = new_capture_file(None, None, None, ["npx", "-y", "@a/server-b"], now=1795946400.123)
    os.write(descriptor, b"x")
    assert os.get_inheritable(descriptor) is False
    os.close(descriptor)
    assert path == f"{capture_folder()}/server-b-20261129T100000.123Z-{os.getpid()}.mcpcap"
    second, other = new_capture_file(None, None, None, ["npx", "-y", "@a/server-b"], now=1795946400.123)
    os.close(second)
    assert other == path.replace(".mcpcap", "-2.mcpcap")
    assert Path(path).read_bytes() == b"x"


def test_B109_many_recorders_at_one_name_get_a_file_each(home: Path) -> None:
    def one(number: int) -> str:
        descriptor, path = new_capture_file(None, str(home / "same.mcpcap"), None, ["x"], now=0)
        os.write(descriptor, b"%d" % number)
        os.close(descriptor)
        return path

    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(one, range(40)))
    assert [Path(path).read_bytes() for path in paths] == [b"%d" % number for number in range(40)]


def test_an_existing_output_is_kept_and_the_capture_goes_beside_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine.mcpcap"
    mine.write_text("precious")
    path, warnings = create(output=str(mine))
    assert path == tmp_path / "mine-2.mcpcap"
    assert mine.read_text() == "precious"
    assert warnings == [f"{mine} exists and is kept; this capture goes to {path}"]


def test_an_output_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"it is a folder \(use --dir for folders\)"):
        create(output=str(tmp_path))
    with pytest.raises(CaptureError, match="it is not a regular file"):
        create(output="/dev/null")
    with pytest.raises(CaptureError, match=r"cannot create the capture .*: Not a directory"):
        create(output=__file__ + "/x.mcpcap")
    with pytest.raises(CaptureError, match=r"cannot create the capture .*null"):
        create(output="a\0b")
    with pytest.raises(CaptureError, match="File name too long"):
        create(output=str(tmp_path / ("x" * 300)))


LAUNCHERS = ["npx", "uv", "run", "-m", "-c", "sh", "env", "python", "docker", "--", "-", "-y", "node"]
HOSTILE = ["../../outside", "/abs", "a/b", "..", "", "nul\0x", "CON", "a:b", "x" * 300, ".hidden", "-rf", "a\nb"]


@pytest.mark.parametrize("name", HOSTILE)
def test_B142_any_name_stays_one_safe_file_in_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "captures"
    before = sorted(tmp_path.rglob("*"))
    assert before == []
    path, _ = create(directory=str(folder), label=name)
    assert path.parent == folder
    assert sorted(tmp_path.rglob("*")) == [folder, path]
    found = NAME.fullmatch(path.name)
    assert found
    assert re.fullmatch(r"[\w.-]+", path.name)
    assert len(found[1]) <= LONGEST


def test_B142_a_link_in_the_folder_is_not_followed_for_writing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700)
    name = f"x-19700101T000000.000Z-{os.getpid()}.mcpcap"
    (folder / name).symlink_to(outside)
    dangling = folder / "dangling.mcpcap"
    dangling.symlink_to(tmp_path / "not-there")
    descriptor, path = new_capture_file(str(folder), None, "x", [], now=0)
    os.write(descriptor, b"data")
    os.close(descriptor)
    assert path == str(folder / name).replace(".mcpcap", "-2.mcpcap")
    got, warnings = create(output=str(dangling))
    assert got == folder / "dangling-2.mcpcap"
    assert warnings
    (folder / "a.0002.mcpcap").symlink_to(tmp_path / "not-there")
    with pytest.raises(CaptureError, match="File exists"):
        store.new_part_file(str(folder / "a.mcpcap"), 2)
    assert outside.read_text() == "precious"
    assert not (tmp_path / "not-there").exists()


def test_B150_files_and_new_folders_are_private_from_the_beginning(home: Path, umask: None) -> None:
    path, warnings = create(directory=str(home / "new" / "deep"))
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
    assert warnings == []
    descriptor, part = store.new_part_file(str(path), 2)
    os.close(descriptor)
    assert mode(part) == 0o600
    path, _ = create(output=str(home / "other" / "o.mcpcap"))
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_B150_an_existing_open_folder_gives_a_warning(tmp_path: Path, umask: None) -> None:
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o755)
    path, warnings = create(directory=str(folder))
    assert warnings == [f"the capture folder {folder} is open to others (mode 0755): chmod 700 it"]
    assert mode(path) == 0o600
    folder.chmod(0o700)
    assert create(directory=str(folder))[1] == []
    folder.chmod(0o755)
    assert create(output=str(folder / "o.mcpcap"))[1] == [], "the file itself is private"
    folder.chmod(0o777)
    assert create(output=str(folder / "p.mcpcap"))[1] == [
        f"others can replace files in {folder} (mode 0777), the capture too"
    ]
    folder.chmod(0o1777)
    assert create(output=str(folder / "q.mcpcap"))[1] == []


def test_an_unwritable_folder_is_a_capture_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CaptureError, match=r"cannot create the capture .*: Not a directory"):
        create(directory=str(blocked / "captures"))


@given(st.text() | st.sampled_from(HOSTILE) | st.text(alphabet="..--/\\CONconaux123¹é \0", max_size=80))
@settings(deadline=None)
def test_a_safe_label_is_one_component_everywhere_and_stays_as_it_is(name: str) -> None:
    label = safe_label(name)
    assert 0 < len(label.encode()) <= LONGEST
    assert re.fullmatch(r"[\w.-]+", label)
    assert label[0] not in ".-"
    assert label[-1] not in ".-"
    assert ".." not in label
    assert label.partition(".")[0].upper() not in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9"}
    assert safe_label(label) == label


@given(
    st.lists(
        st.text(max_size=12)
        | st.sampled_from(["npx", "uv", "run", "-m", "-c", "sh", "env", "python", "docker", "--", "-", "-y", "node"])
    )
)
@settings(deadline=None)
def test_any_command_has_a_label(argv: list[str]) -> None:
    label = default_label(argv)
    assert safe_label(label) == label


@pytest.mark.parametrize(
    ("command", "label"),
    [
        ("npx -y @modelcontextprotocol/server-everything", "server-everything"),
        ("npx -y @modelcontextprotocol/server-everything@2025.1 stdio", "server-everything"),
        ("npx --package=x tsx /srv/thing/src/index.ts", "thing"),
        ("npm exec foo -- --bar", "foo"),
        ("python -m mcp_server_time", "mcp_server_time"),
        ("/usr/bin/python3.13 -u -X utf8 -m pkg.__main__", "pkg"),
        ("python /srv/weather/server.py", "weather-server"),
        ("python /a/weather/client.py http://localhost", "weather-client"),
        ("node /a/weather/client/dist/index.mjs", "weather-client"),
        ("python /a/my_client/client.py", "my_client"),
        ("python /a/weather/app/server.py", "weather-server"),
        ("/usr/local/bin/server", "server"),
        ("server --port 1", "server"),
        ("app", "app"),
        ("python /server.py", "server"),
        ("python /tmp/client.py", "client"),
        ("python -m weather.server", "weather.server"),
        ("env -u SSL_CERT_FILE python /a/weather/client.py", "weather-client"),
        ("npx -y @acme/server", "acme-server"),
        ("npx -y @acme/cli@1.0", "acme"),
        ("uvx server", "server"),
        ("uv --directory=/a/weather run main.py", "weather"),
        ("uv run /a/weather/server.py --directory /data", "weather-server"),
        ("uv --directory /a/weather run -m server", "weather-server"),
        ("uv run --directory /a/weather python client.py", "weather-client"),
        ("python -c print()", "python"),
        ("python3 /srv/thing/main.py", "thing"),
        ("uvx mcp-server-git --repository x", "mcp-server-git"),
        ("uvx --from git+https://h.test/a/b mcp-b@1.2", "mcp-b"),
        ("uv --directory /x run server.py", "x-server"),
        ("uv run python -m a.b", "a.b"),
        ("uv run -m abc", "abc"),
        ("uv tool run abc==1", "abc"),
        ("pipx run abc", "abc"),
        ("/x/y/foo", "foo"),
        ("foo.exe", "foo"),
        ("node /a/b/build/index.js", "b"),
        ("bun run /a/b/src/index.ts", "b"),
        ("deno run -A jsr:@a/b", "b"),
        ("java -jar /x/target/server.jar", "x-server"),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:1", "github-mcp-server"),
        ("env A=1 B=2 nice -n 5 /x/foo", "foo"),
        ("node", "node"),
        ("uv run", "uv"),
        ("docker ps", "docker"),
        ("", "capture"),
    ],
)
def test_a_label_says_which_server_it_is(command: str, label: str) -> None:
    assert default_label(command.split()) == label


def test_a_label_looks_into_a_shell_line_and_at_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_label(["bash", "-c", "exec npx -y foo"]) == "foo"
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert default_label(["node", "dist/index.js"]) == "project"
    assert default_label(["python", "server.py"]) == default_label(["python", "-m", "src.server"]) == "project-server"
    assert default_label(["node", "./client.mjs"]) == default_label(["./client"]) == "project-client"
    monkeypatch.setenv("HOME", str(project))
    assert default_label(["python", "client.py"]) == "client", "whose home it is says nothing"
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert default_label(["python", "client.py"]) == "client"


def test_shown_text_holds_nothing_that_acts_on_a_terminal() -> None:
    assert shown("é ok") == "é ok"
    assert shown("\x1b[2J\u202e\udcff\n") == "\\x1b[2J\\u202e\\udcff\\n"


@given(st.sampled_from(["a.mcpcap", "/x/a.mcpcap", "a", "a.jsonl", "a.b.mcpcap", "é.mcpcap"]), st.integers(1, 20_000))
@settings(deadline=None)
def test_the_name_of_a_part_leads_back(path: str, part: int) -> None:
    assert split_part(part_path(path, part)) == (path, part)


def test_names_that_only_look_like_parts_are_none() -> None:
    for name in ("a.0001.mcpcap", "a.002.mcpcap", "a.00002.mcpcap", ".0002.mcpcap", "a.0000.mcpcap", "a.٢٢٢٢.mcpcap"):
        assert split_part(name) == (name, 1)
    assert part_path("a.mcpcap", 2) == "a.0002.mcpcap"
    assert part_path("a.mcpcap", 12345) == "a.12345.mcpcap"


def test_importing_the_store_loads_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {os.getcwd()!r}); import mcpsniff.capture.store; print(*sorted(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(result.stdout.split())
    assert "mcpsniff.capture.store" in loaded
    assert not loaded & {"pathlib", "json", "orjson", "platformdirs", "tomllib", "typing_extensions", "datetime"}


def test_a_capture_is_being_written_as_long_as_its_recorder_holds_it(tmp_path: Path) -> None:
    descriptor, path = new_capture_file(str(tmp_path), None, "x", [])

    assert is_being_written(path)
    assert is_being_written(path)
    os.close(descriptor)
    assert not is_being_written(path)
    assert not is_being_written(str(tmp_path / "nothing"))


def test_a_recorder_that_is_killed_lets_go_of_its_capture(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from mcpsniff.capture.store import new_capture_file, new_part_file\n"
        "_, path = new_capture_file(sys.argv[1], None, 'x', [])\n"
        "_, part = new_part_file(path, 2)\n"
        "print(path, part, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout is not None
        path, part = recorder.stdout.readline().split()
        seen = (is_being_written(path), is_being_written(part))
        recorder.kill()
        recorder.wait()

    assert seen == (True, True)
    assert not is_being_written(path)
    assert not is_being_written(part)
