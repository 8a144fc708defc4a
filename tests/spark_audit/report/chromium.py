"""Chromium without a window, told what to do over a pair of pipes: the DevTools protocol, messages ended by NUL."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_ANSWER_S: Final = 60.0
#: Chromium reads commands from file descriptor 3 and answers on 4.
_WITH_PIPES: Final = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def chromium_path() -> str | None:
    """Where Chromium is, None where it is not installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Page:
    """One page. `requests` are the addresses that it asked for, `complaints` what the browser says of it."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to_browser, self._from_browser = to_browser, from_browser
        self._number = 0
        self._buffer = b""
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        #: Documents that are loaded, by their loaders: that of the empty page may say so late.
        self._loaded: set[str] = set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Carries out one command and returns its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, file: Path, *, width: int, height: int = 800, media: str = "", scheme: str = "light") -> None:
        """Shows a file in a window of that size in CSS pixels, and waits until it is loaded."""
        self.requests.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        loader = self.call("Page.navigate", url=file.as_uri())["loaderId"]
        while loader not in self._loaded:
            self._next()

    def value(self, expression: str) -> Any:
        """The value of an expression within the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def pdf(self) -> bytes:
        """The page printed on A4."""
        printed = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        return base64.b64decode(printed["data"])

    def _next(self) -> dict[str, Any]:
        deadline_s = time.monotonic() + _ANSWER_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from_browser], [], [], max(0.0, deadline_s - time.monotonic()))
            data = os.read(self._from_browser, 1 << 20) if ready else b""
            assert data, "Chromium ended, or gave no answer"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, facts: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(facts["entry"]["text"])
        elif event == "Page.lifecycleEvent" and facts["name"] == "load":
            self._loaded.add(facts["loaderId"])


@contextmanager
def chromium(path: str, profile: Path) -> Iterator[Page]:
    """A browser of its own, with its profile in that folder; it ends with the context."""
    from_us, to_browser = os.pipe()
    from_browser, to_us = os.pipe()
    command = [path, *_FLAGS, f"--user-data-dir={profile}"]
    with subprocess.Popen(
        [sys.executable, "-c", _WITH_PIPES, str(from_us), str(to_us), *command],
        pass_fds=(from_us, to_us),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as browser:
        os.close(from_us)
        os.close(to_us)
        try:
            yield Page(to_browser, from_browser)
        finally:
            os.close(to_browser)
            os.close(from_browser)
            browser.kill()
