"""What each peer session does, written once for every SDK version.

A session is a list of steps; a client script (client_*) knows how its SDK spells each step. The result is one JSON
document: what each step gave, and what the server asked of the client or told it. ``canonical`` replaces the parts that
differ from run to run (times, hashes, the folder), so that two runs can be compared.

Runs inside the SDKs' environments: standard library only.
"""

import asyncio
import base64
import json
import re
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP_SECONDS = 60
SESSION_SECONDS = 150
AT_ONCE = 2
SETTLE_SECONDS = 0.2
REMIND_SECONDS = 2

Step = tuple[str, dict[str, Any]]


def call(name: str, /, **arguments: Any) -> Step:
    return "call", {"name": name, "arguments": arguments}


def time_session(folder: Path) -> list[Step]:
    return [
        ("list_tools", {}),
        call("get_current_time", timezone="Europe/Paris"),
        call("convert_time", source_timezone="UTC", time="12:30", target_timezone="Asia/Tokyo"),
        call("convert_time", source_timezone="UTC", time="25:30", target_timezone="Asia/Tokyo"),
    ]


def git_session(folder: Path) -> list[Step]:
    repo = {"repo_path": str(folder)}
    return [
        ("list_tools", {}),
        call("git_status", **repo),
        call("git_diff_unstaged", **repo),
        call("git_add", files=["notes.txt"], **repo),
        call("git_diff_staged", **repo),
        call("git_commit", message="Say more, caf\u00e9 \U0001f600\u2028too", **repo),
        call("git_log", max_count=5, **repo),
        call("git_branch", branch_type="local", **repo),
        call("git_show", revision="HEAD", **repo),
    ]


def filesystem_session(folder: Path) -> list[Step]:
    page = str(folder / "page.txt")
    return [
        ("list_tools", {}),
        call("list_allowed_directories"),
        call("write_file", path=page, content="one\ntwo \U0001f600\u2028\nthree\n" + "x" * 100_000 + "\n"),
        call("read_text_file", path=page),
        call("edit_file", path=page, edits=[{"oldText": "three", "newText": "drei"}]),
        call("read_text_file", path=page, head=3),
        call("create_directory", path=str(folder / "sub")),
        call("list_directory", path=str(folder)),
        call("directory_tree", path=str(folder)),
        call("search_files", path=str(folder), pattern="*.txt"),
        call("get_file_info", path=page),
        call("read_text_file", path="/nowhere/else.txt"),
    ]


def memory_session(folder: Path) -> list[Step]:
    entities = [
        {"name": "pipe", "entityType": "thing", "observations": ["carries bytes"]},
        {"name": "wrapper", "entityType": "program", "observations": ["notes them", "\u00e9\U0001f600"]},
    ]
    return [
        ("list_tools", {}),
        call("create_entities", entities=entities),
        call("create_relations", relations=[{"from": "wrapper", "to": "pipe", "relationType": "reads"}]),
        call("add_observations", observations=[{"entityName": "pipe", "contents": ["has two ends"]}]),
        call("read_graph"),
        call("search_nodes", query="bytes"),
        call("open_nodes", names=["wrapper"]),
        call("delete_observations", deletions=[{"entityName": "pipe", "observations": ["carries bytes"]}]),
        call("read_graph"),
    ]


def everything_session(folder: Path) -> list[Step]:
    document = "demo://resource/static/document/features.md"
    text = "demo://resource/dynamic/text/7"
    return [
        ("wait_for_roots", {}),
        ("set_level", {"level": "debug"}),
        ("list_tools", {}),
        call("echo", message="h\u00e9 \U0001f600\u2028 mark"),
        call("get-sum", a=2, b=40),
        call("get-structured-content", location="Chicago"),
        call("get-tiny-image"),
        call("get-resource-links", count=2),
        ("call_with_progress", {"name": "trigger-long-running-operation", "arguments": {"duration": 0.4, "steps": 4}}),
        call("trigger-sampling-request", prompt="hi", maxTokens=10),
        call("trigger-elicitation-request"),
        call("get-roots-list"),
        ("list_prompts", {}),
        ("get_prompt", {"name": "simple-prompt", "arguments": None}),
        ("get_prompt", {"name": "args-prompt", "arguments": {"city": "Oslo", "state": "NO"}}),
        ("get_prompt", {"name": "resource-prompt", "arguments": {"resourceType": "Text", "resourceId": "3"}}),
        ("complete", {"prompt": "completable-prompt", "argument": ("department", "E"), "context": None}),
        (
            "complete",
            {"prompt": "completable-prompt", "argument": ("name", "A"), "context": {"department": "Engineering"}},
        ),
        ("list_resources", {}),
        ("list_templates", {}),
        ("read", {"uri": document}),
        ("read", {"uri": text}),
        ("read", {"uri": "demo://resource/dynamic/blob/8"}),
        ("subscribe", {"uri": text}),
        call("toggle-subscriber-updates"),
        call("toggle-subscriber-updates"),
        ("unsubscribe", {"uri": text}),
        ("set_level", {"level": "error"}),
        ("ping", {}),
        ("call_and_cancel", {"name": "trigger-long-running-operation", "arguments": {"duration": 5, "steps": 2}}),
        call("echo", message="after the cancel"),
        # The TypeScript SDK 1.x takes an error for a cut stream and resumes it a second later. Then this server sends
        # all that came since, and an empty object for each event without data. So it is the last step.
        ("read", {"uri": "demo://resource/dynamic/nothing"}),
    ]


def own_session(folder: Path) -> list[Step]:
    """tests/servers/sdk1_server.py and sdk2_server.py: what a server on either version of the Python SDK can do."""
    return [
        ("list_tools", {}),
        call("add", a=2, b=40),
        call("echo", message="h\u00e9 \U0001f600\u2028 mark"),
        ("call_with_progress", {"name": "count", "arguments": {"to": 3}}),
        call("greet"),
        call("summarise", text="a long story"),
        ("list_resources", {}),
        ("read", {"uri": "note://today"}),
        ("list_prompts", {}),
        ("get_prompt", {"name": "ask", "arguments": {"topic": "pipes"}}),
        ("watch", {"uri": "note://today", "tool": "touch"}),
        call("pause"),
    ]


def plain_session(folder: Path) -> list[Step]:
    """The same servers where they answer with whole bodies: what needs no event stream."""
    return [
        ("list_tools", {}),
        call("add", a=2, b=40),
        call("add", a="two"),
        ("list_resources", {}),
        ("read", {"uri": "note://today"}),
        ("get_prompt", {"name": "ask", "arguments": {"topic": "pipes"}}),
    ]


SESSIONS = {
    "time": time_session,
    "git": git_session,
    "filesystem": filesystem_session,
    "memory": memory_session,
    "everything": everything_session,
    "sdk1_server": own_session,
    "sdk2_server": own_session,
}


@dataclass(frozen=True)
class Plan:
    """A session to hold: the server's name, the folder to work in, the transport, where the server is, what to do.

    The target is a command for ``stdio`` and a URL for ``sse`` and ``http``.
    """

    server: str
    folder: Path
    transport: str
    target: Any
    steps: list[Step]

    def line(self) -> str:
        """The plan as a line for a client script."""
        return json.dumps({**vars(self), "folder": str(self.folder)})

    @classmethod
    def read(cls, line: str) -> "Plan":
        fields = json.loads(line)
        return cls(**{**fields, "folder": Path(fields["folder"])})


def prepare(server: str, folder: Path) -> dict[str, str]:
    """Lay out the folder a session works in; returns the environment variables its server needs."""
    folder.mkdir(parents=True, exist_ok=True)
    if server == "git":
        git = ["git", "-C", str(folder), "-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
        for arguments in (
            ["init", "-q", "-b", "main"],
            ["config", "user.name", "Test"],
            ["config", "user.email", "test@example.invalid"],
        ):
            subprocess.run([*git, *arguments], check=True)
        (folder / "notes.txt").write_text("first\n", encoding="utf-8")
        subprocess.run([*git, "add", "notes.txt"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "Begin"], check=True)
        (folder / "notes.txt").write_text("first\nsecond \u00e9\n", encoding="utf-8")
    if server == "memory":
        return {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
    return {}


class Told:
    """What came from the server on its own account: requests to the client, and notifications."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.logs: list[Any] = []
        self.other: list[Any] = []
        self.roots_asked = asyncio.Event()


async def hold(client: Any, plan: Plan, told: Told) -> dict[str, Any]:
    """Go through a plan's steps. ``client`` has a coroutine for each kind of step, which returns plain JSON."""
    steps = []
    for name, arguments in plan.steps:
        try:
            outcome = {"result": await asyncio.wait_for(getattr(client, name)(**arguments), STEP_SECONDS)}
        except client.Error as error:
            outcome = {"error": client.describe(error)}
        steps.append({"step": name, "arguments": arguments, **outcome})
    await asyncio.sleep(SETTLE_SECONDS)
    return {"steps": steps, "asked": told.asked, "logs": told.logs, "other": told.other}


VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?=[^\d:])"), "<time>"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w* \w{3} \d+ .*"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d( [AP]M)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "<hash>"),
    (re.compile(r"(day_of_week\W+)\w+"), r"\1<day_of_week>"),
]


def steady(value: Any, folder: Path, key: str = "") -> Any:
    """Replace what differs between two runs of one session."""
    if isinstance(value, dict):
        return {name: steady(item, folder, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [steady(item, folder) for item in value]
    if not isinstance(value, str):
        return value
    if key == "blob":
        value = base64.b64decode(value).decode(errors="replace")
    if key in ("requestState", "day_of_week"):
        return f"<{key}>"
    for place in {str(folder.resolve()), str(folder)}:
        value = value.replace(place, "<folder>")
    for pattern, substitute in VOLATILE:
        value = pattern.sub(substitute, value)
    return value


def canonical(said: Any, folder: Path) -> str:
    """A session as text that is the same for every run with the same results."""
    plain = steady(said, folder)
    # A log message may overtake an answer that is handled in another task of the client, so their order says nothing.
    plain["logs"] = sorted({json.dumps(log, sort_keys=True) for log in plain["logs"]})
    return json.dumps(plain, indent=1, sort_keys=True)


async def hold_all(session: Callable[[Plan], Awaitable[dict[str, Any]]]) -> None:
    """Hold the sessions that standard input names, a few at a time, for importing an SDK takes longer than a session.

    A line in: a Plan. For each, in the same order, a line out: {"said": SESSION}, or {"failed": TRACEBACK}.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(plan: Plan) -> dict[str, Any]:
        async with slots:
            try:
                return {"said": await asyncio.wait_for(session(plan), SESSION_SECONDS)}
            except Exception:
                return {"failed": traceback.format_exc()}

    for outcome in await asyncio.gather(*map(one, map(Plan.read, sys.stdin))):
        print(json.dumps(outcome))
