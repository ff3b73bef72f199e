"""Drive a real Chromium over its DevTools protocol, through the pipe that --remote-debugging-pipe opens.

No port, no driver, no package: messages are JSON with a NUL behind each, on file descriptors 3 and 4 of the browser.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
QUIET = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
# Puts the pipes where the browser expects them, whatever numbers they have here, and becomes the browser.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 60.0
"""Seconds that one command may take; a busy machine needs some."""


def find() -> str | None:
    """The path of a Chromium on this machine, if there is one."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or next((path for path in MACOS if os.path.exists(path)), None)


class Browser:
    """A Chromium with one page, and what went wrong on it: dialogs, console messages, requests, broken policies."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mcpsniff-chromium-", ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCH, str(to_browser), str(from_browser)),
                *(program, *QUIET, *sandbox, "--remote-debugging-pipe"),
                *(f"--user-data-dir={self._folder.name}", "about:blank"),
            ],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._last = 0
        self._session = ""
        self._scripts = True
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser and remove its folder."""
        with contextlib.suppress(OSError):
            os.close(self._out)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._folder.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that arrive meanwhile are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline)
            if answer.get("id") != self._last:
                self._keep(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return dict(answer["result"])

    def open(self, path: Path, *, fragment: str = "") -> None:
        """Load a file and wait until it has been read and its script, if scripts are on, has run."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.wait_for("Page.loadEventFired")
        if self._scripts:
            self.settle()

    def wait_for(self, method: str) -> dict[str, Any]:
        """Wait for an event of the protocol."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = next((event for event in self.events if event["method"] == method), None)
            if found is not None:
                return found
            self._keep(self._read(deadline))

    def settle(self) -> None:
        """Wait until the page has been drawn twice: what its script began is done."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def js(self, expression: str) -> Any:
        """The value of an expression on the page; a promise is waited for. Raises RuntimeError if it throws."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", str(result)))
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true; raises TimeoutError with the expression if it never is."""
        deadline = time.monotonic() + 20
        while not self.js(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def press(self, *keys: str) -> None:
        """Press keys: characters, or the names Enter, Escape, ArrowRight and so on."""
        for key in keys:
            text = "\r" if key == "Enter" else key if len(key) == 1 else ""
            codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
            code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
            fields = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **fields)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Write a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        self.move(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=self._x, y=self._y, button="left", clickCount=1)

    def move(self, selector: str, dx: float | None = None, dy: float | None = None) -> None:
        """Move the mouse to an element: to its middle, or so far from its upper left corner."""
        box = self.js(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            "one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
            "return [box.x, box.y, box.width, box.height]; })()"
        )
        self._x = box[0] + (box[2] / 2 if dx is None else dx)
        self._y = box[1] + (box[3] / 2 if dy is None else dy)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=self._x, y=self._y)

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Give the page a size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, *, on: bool) -> None:
        """Let the system prefer dark colours, or light ones."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def scripts(self, *, on: bool) -> None:
        """Switch scripts on or off for the next page."""
        self._scripts = on
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def picture(self) -> bytes:
        """The page as it shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def complaints(self) -> list[str]:
        """What must not happen on a page of ours: dialogs, errors, warnings, broken policies, requests."""
        self.call("Runtime.evaluate", expression="1")
        return [said for event in self.events if (said := _complaint(event))]

    def _keep(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            return
        self.events.append(message)
        if message["method"] == "Page.javascriptDialogOpening":
            # Nobody will answer it, and the page would wait.
            answer = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": False}}
            os.write(self._out, json.dumps(answer | {"sessionId": self._session}).encode() + b"\0")

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            block = os.read(self._in, 1 << 16)
            if not block:
                raise RuntimeError("the browser has ended")
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


def _complaint(event: dict[str, Any]) -> str:
    method, params = event["method"], event["params"]
    if method == "Page.javascriptDialogOpening":
        return f"dialog: {params['message']}"
    if method == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        return f"exception: {details.get('exception', {}).get('description', details['text'])}"
    if method == "Runtime.consoleAPICalled":
        return f"console: {params['args']}"
    if method == "Log.entryAdded":
        return f"log: {params['entry']['text']}"
    if method == "Audits.issueAdded":
        return f"issue: {json.dumps(params['issue'])}"
    if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "about:")):
        return f"request: {params['request']['url']}"
    return ""
