"""A system that is short of something costs the recording, or the wrapper, but not the session."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proxy.wrapped import PATIENCE, environment

TALK = b"hello\n" * 100


def talk(
    folder: Path, *before: str, preexec: Callable[[], None] | None = None, command: tuple[str, ...] = ("cat",)
) -> subprocess.CompletedProcess[bytes]:
    """Hold a session in a wrapper that ran the statements ``before`` first."""
    script = "; ".join((*before, "import sys", "from mcpsniff.__main__ import main", "sys.exit(main())"))
    options = ["stdio", "--grace", "60", "--no-transcript", "--dir", str(folder / "captures"), "--"]
    return subprocess.run(
        [sys.executable, "-c", script, *options, *command],
        input=TALK,
        capture_output=True,
        env=environment(),
        preexec_fn=preexec,
        timeout=PATIENCE,
    )


def stored(folder: Path) -> int:
    return len(list(folder.glob("captures/*")))


def descriptors(count: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


@pytest.mark.parametrize("count", range(6, 24))
def test_few_descriptors(tmp_path: Path, count: int) -> None:
    done = talk(tmp_path, preexec=descriptors(count))
    if done.returncode and b"mcpsniff" not in done.stderr:
        pytest.skip("too few for Python itself")
    assert (done.returncode, done.stdout) == (0, TALK)
    assert b"Traceback" not in done.stderr
    assert stored(tmp_path) or b"nothing is recorded" in done.stderr or b"goes on without a capture" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit the address space")
@pytest.mark.parametrize("kibibytes", [16_000, 30_000, 40_000, 50_000, 60_000, 90_000, 200_000])
def test_little_memory(tmp_path: Path, kibibytes: int) -> None:
    size = kibibytes << 10
    done = talk(tmp_path, preexec=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
    if done.returncode and b"mcpsniff: " not in done.stderr:
        pytest.skip("too little for Python itself")
    assert (done.returncode, done.stdout) == (0, TALK)
    assert b"Traceback" not in done.stderr


FAILING = (
    "import _thread, {module}",
    "real, calls = {module}.{name}, []",
    "fail = lambda *words, **more: real(*words, **more) if calls.append(1) or len(calls) != {at} else {raising}",
    "{module}.{name} = fail",
)


def failing(module: str, name: str, at: int, error: str) -> tuple[str, ...]:
    """Statements after which the call number ``at`` of a function fails."""
    raising = f"(_ for _ in ()).throw({error})"
    return tuple(line.format(module=module, name=name, at=at, raising=raising) for line in FAILING)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_no_thread(tmp_path: Path, at: int) -> None:
    """Three carry the streams; without the fourth nothing is recorded, and no empty file is left."""
    done = talk(tmp_path, *failing("_thread", "start_new_thread", at, 'RuntimeError("no thread")'))
    assert (done.returncode, done.stdout) == (0, TALK)
    says = b"goes on without a capture" if at == 4 else b"nothing is recorded"
    assert says in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert stored(tmp_path) == 0


@pytest.mark.parametrize("at", range(1, 9))
def test_no_pipe(tmp_path: Path, at: int) -> None:
    done = talk(tmp_path, *failing("os", "pipe", at, 'OSError(24, "too many")'))
    assert (done.returncode, done.stdout) == (0, TALK)
    if at < 5:
        assert b"nothing is recorded" in done.stderr
    elif at == 6:  # the fifth only saves a thread the trouble of waking
        assert b"no guardian" in done.stderr
    assert stored(tmp_path) == (at >= 5)


def test_no_process(tmp_path: Path) -> None:
    done = talk(
        tmp_path, *failing("os", "posix_spawnp", 1, 'OSError(11, "no more")'), command=("sh", "-c", "cat; exit 5")
    )
    assert (done.returncode, done.stdout) == (5, TALK)
    assert b"nothing is recorded" in done.stderr


def test_without_a_wrapper_the_server_finds_the_same(tmp_path: Path) -> None:
    """Signals, a script without an interpreter line, and a command that does not exist."""
    server = tmp_path / "server"
    server.write_text("kill -PIPE $$\n")
    server.chmod(0o755)
    done = talk(tmp_path, *failing("os", "pipe", 1, 'OSError(24, "too many")'), command=(str(server),))
    assert done.returncode == -signal.SIGPIPE
    done = talk(tmp_path, *failing("os", "pipe", 1, 'OSError(24, "too many")'), command=("no-such-server",))
    assert done.returncode == 127
    assert b"command not found: no-such-server" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("what", ["read", "append"])
def test_memory_that_runs_out_on_the_way(tmp_path: Path, what: str) -> None:
    if what == "read":
        before = failing("os", "read", 2, "MemoryError()")
    else:
        before = (
            "import mcpsniff.proxy.recorder as r",
            "real = r.Recorder.__init__",
            "raising = lambda entry: (_ for _ in ()).throw(MemoryError())",
            "r.Recorder.__init__ = lambda self: (real(self), setattr(self, 'append', raising))[0]",
            "r.Recorder.mark = lambda *_: None",
        )
    done = talk(tmp_path, *before)
    assert (done.returncode, done.stdout) == (0, TALK)
    assert b"out of memory" in done.stderr
    assert b"Traceback" not in done.stderr
