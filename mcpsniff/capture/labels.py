"""Names for captures: a label from a server's command, and any name as one safe part of a file name.

Pure text work, and cheap to import: the stdio wrapper needs it before the server's first byte.
"""

import os
import re
from collections.abc import Sequence
from typing import Final

LONGEST: Final = 64
"""Bytes of UTF-8 in a label; time, process id and suffix then fit any file system's 255."""

_FALLBACK: Final = "capture"
_RESERVED = re.compile(r"(con|prn|aux|nul|conin_|conout_|com[0-9¹²³]|lpt[0-9¹²³])(?=\.|$)", re.IGNORECASE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Options that take their value from the next word; all other options stand alone.
_VALUES_NPX = _words("-p --package -c --call -w --workspace --registry --prefix --filter")
_VALUES_UV = _words(
    "--from --with --with-editable --with-requirements -p --python --directory --project --env-file --extra --group "
    "--index --index-url --default-index --extra-index-url -i --find-links -f --cache-dir --config-file --spec "
    "--pip-args --suffix"
)
_VALUES_INTERPRETER = _words(
    "-W -X -r --require --import --loader --experimental-loader --env-file -C --conditions --config --tsconfig -I "
    "--title --input-type --icu-data-dir -cp -classpath --class-path"
)
_VALUES_DOCKER = _words(
    "-e --env --env-file -v --volume --mount --name -p --publish --network --net -u --user -w --workdir --entrypoint "
    "-l --label -m --memory --cpus --platform --pull --add-host --dns -h --hostname --restart --ulimit --tmpfs --gpus "
    "--device --cap-add --cap-drop --security-opt --pid --ipc --userns --log-driver --log-opt --shm-size"
)
_VALUES_WRAPPER = {"env": _words("-u -C"), "nice": _words("-n"), "sudo": _words("-u -g"), "stdbuf": _words("-i -o -e")}

_PACKAGE_RUNNERS = {
    "npx": ((), _VALUES_NPX),
    "bunx": ((), _VALUES_NPX),
    "pnpx": ((), _VALUES_NPX),
    "npm": (("exec", "x"), _VALUES_NPX),
    "pnpm": (("dlx", "exec"), _VALUES_NPX),
    "yarn": (("dlx", "exec"), _VALUES_NPX),
    "uvx": ((), _VALUES_UV),
    "pipx": (("run",), _VALUES_UV),
}
_SHELLS = _words("sh bash zsh dash")
_INTERPRETERS = _SHELLS | _words("node nodejs bun deno tsx ts-node ruby perl php java")
_WRAPPERS = _words("env nice nohup exec time sudo stdbuf")
_SAYS_NOTHING = _words("__main__ main index cli app run start")
_ROLES = _words("client server")
"""What a program does, which many have in common: the project's name is put in front."""
_BUILD_FOLDERS = _words("dist build out lib libs src bin cjs esm js target")
_SYSTEM_FOLDERS = _words("usr local opt srv var home users root tmp sbin")
_SUFFIXES = _words(".py .pyz .js .mjs .cjs .ts .mts .cts .rb .pl .php .sh .jar .exe .cmd .bat .bin")


def safe_label(name: str) -> str:
    """Map any text to one file-name component of at most 64 bytes, the same on every platform.

    Letters and digits of any script, ``_``, ``.`` and ``-`` stay; whatever else stands between them becomes one
    ``-``. The result is never empty, never begins or ends with a dot or dash, holds no ``..`` and is no device name
    of Windows. Mapping it again changes nothing.
    """
    text = re.sub(r"[^\w.-]+", "-", name)
    text = re.sub(r"-*\.[.-]*", ".", text)
    text = re.sub(r"-{2,}", "-", text).strip(".-")
    text = _RESERVED.sub(r"\1_", text, count=1) if _RESERVED.match(text) else text
    text = text.encode()[:LONGEST].decode(errors="ignore").strip(".-")
    return text or _FALLBACK


def shown(text: str) -> str:
    """Return ``text`` fit for a terminal: what cannot be printed (controls, bidi marks) is spelled as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def default_label(argv: Sequence[str]) -> str:
    """Name the server that ``argv`` starts: its package, module or script rather than the launcher in front of it.

    ``npx -y @scope/server-x`` gives ``server-x``, ``python -m pkg_server`` gives ``pkg_server``, ``node dist/index.js``
    the name of the folder above ``dist``, and ``python weather/client.py`` gives ``weather-client``. The result is safe
    (see `safe_label`).
    """
    return safe_label(_name(list(argv), depth=0))


def _name(argv: list[str], depth: int) -> str:
    """Return the telling word of a command; ``depth`` bounds launchers inside launchers."""
    if not argv or depth > 4:
        return ""
    command, rest = _stem(argv[0]).lower(), argv[1:]
    inner = ""
    if command in _WRAPPERS:
        rest = _after_options(rest, _VALUES_WRAPPER.get(command, frozenset()))
        inner = _name([word for word in rest if not re.match(r"\w+=", word)], depth + 1)
    elif command in _PACKAGE_RUNNERS:
        inner = _package_run(rest, *_PACKAGE_RUNNERS[command], depth)
    elif command == "uv":
        inner = _uv_run(rest, depth)
    elif command in {"docker", "podman"}:
        image = _after_options(rest[1:], _VALUES_DOCKER) if rest[:1] == ["run"] else []
        inner = re.sub(r"[:@].*", "", image[0].rsplit("/", 1)[-1]) if image else ""
    elif command in _INTERPRETERS or re.fullmatch(r"(python|pypy)[\d.]*w?", command):
        inner = _program(rest, depth, shell=command in _SHELLS)
    is_file = "/" in argv[0] or os.path.splitext(argv[0])[1].lower() in _SUFFIXES
    return inner or (_script(argv[0]) if is_file else _stem(argv[0]))  # else it is found by PATH, not in this folder


def _package_run(rest: list[str], subcommands: tuple[str, ...], values: frozenset[str], depth: int) -> str:
    """Return the package that npx, uvx and the like are told to run, or nothing."""
    if subcommands:
        if not rest or rest[0] not in subcommands:
            return ""
        rest = rest[1:]
    words = _after_options(rest, values)
    return _name([_package(words[0]), *words[1:]], depth + 1) if words else ""


def _uv_run(rest: list[str], depth: int) -> str:
    """Return what ``uv run`` or ``uv tool run`` starts, or nothing."""
    given, rest = rest, _after_options(rest, _VALUES_UV)
    if rest[:2] == ["tool", "run"]:
        return _package_run(rest[2:], (), _VALUES_UV, depth)
    if rest[:1] != ["run"]:
        return ""
    words = _after_options(rest[1:], _VALUES_UV)
    before = given[: len(given) - len(words)]
    folder = _value(before, "--directory")
    if words and before[-1] in {"-m", "--module"}:
        return _module(words[0], folder)
    if folder:
        at = next((at for at, word in enumerate(words) if word.endswith(".py")), len(words))
        words[at : at + 1] = [os.path.join(folder, word) for word in words[at : at + 1]]
    return _name(words, depth + 1)


def _program(rest: list[str], depth: int, *, shell: bool) -> str:
    """Return what an interpreter runs: a module, the first command of a shell's line, or a script."""
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        word, following = rest[at], rest[at + 1] if at + 1 < len(rest) else ""
        if word in {"-m", "--module"}:
            return _module(following)
        if word == "-jar":
            return _script(following)
        if word in {"-c", "-lc", "-e"}:
            return _name(following.split(), depth + 1) if shell else ""
        at += 2 if word in _VALUES_INTERPRETER else 1
    words = rest[at:]
    if words[:1] == ["run"]:  # bun run x, deno run x
        words = _after_options(words[1:], _VALUES_INTERPRETER)
    if not words:
        return ""
    return _script(_package(words[0]) if words[0].startswith(("jsr:", "npm:", "http")) else words[0])


def _after_options(words: list[str], values: frozenset[str]) -> list[str]:
    """Return ``words`` from the first that is no option; ``values`` names the options that take the next word."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in values else 1
    return words[at:]


def _package(spec: str) -> str:
    """``@scope/name@1.2`` gives ``name``, ``@scope/server`` ``scope-server``; a path or address gives its last part."""
    name = spec if spec.startswith("@") else re.sub(r"^[\w+.-]+:(//)?", "", spec)
    name = name.rstrip("/").rsplit("/", 1)[-1]
    name = re.sub(r"([@=<>~!\[#;].*|\.git)$", "", name) or name
    scope = spec[1:].partition("/")[0] if spec.startswith("@") else ""
    if scope and name.lower() in _ROLES | _SAYS_NOTHING:
        return f"{scope}-{name}" if name.lower() in _ROLES else scope
    return name


def _stem(path: str) -> str:
    name = os.path.basename(path.rstrip("/"))
    root, suffix = os.path.splitext(name)
    return root if suffix.lower() in _SUFFIXES and root else name


def _module(name: str, folder: str = "") -> str:
    """Return a module's name, or that of the project where it says nothing (``server``, ``src.main``)."""
    words = name.removesuffix(".__main__").split(".")
    if all(word.lower() in _SAYS_NOTHING | _ROLES | _BUILD_FOLDERS for word in words):
        return _script(os.path.join(folder, *words))
    return ".".join(words)


def _value(words: list[str], option: str) -> str:
    """Return the value of ``option`` among ``words``, or nothing."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""


def _script(path: str) -> str:
    """Return the stem of a program's file; with the project's folder where it says little, or the folder alone.

    That is for a stem that says what many programs do (client, server), or nothing (index, main).
    """
    stem = _stem(path)
    if stem.lower() not in _SAYS_NOTHING | _ROLES or "\0" in path:
        return stem
    role = stem if stem.lower() in _ROLES else ""
    try:
        folder = os.path.dirname(os.path.abspath(path))
    except OSError:  # this folder is gone
        return stem
    while (name := os.path.basename(folder)).lower() in _BUILD_FOLDERS | _SAYS_NOTHING | _ROLES:
        role = role or (name if name.lower() in _ROLES else "")
        folder = os.path.dirname(folder)
    if not name or name.lower() in _SYSTEM_FOLDERS or folder == os.path.expanduser("~"):  # no project's
        return stem
    return f"{name}-{role}" if role.lower() not in name.lower() else name
