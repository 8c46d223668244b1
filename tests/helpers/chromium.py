"""A headless Chromium that is driven over the DevTools protocol, by a pipe: no package is needed for it.

    with Chromium() as browser:
        page = browser.open(path)
        page.run("document.title")

A page hears of everything that goes wrong on it: console messages, exceptions, and requests beyond the page itself.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
FLAGS = (
    *("--headless", "--no-sandbox", "--remote-debugging-pipe", "--no-first-run", "--mute-audio"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"),
    *("--hide-scrollbars", "--disable-extensions", "--disable-sync"),
)
PATIENCE = 60.0


def find_chromium():
    """Return the browser's path, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """A browser; ``webgl`` gives it a graphics card in software, else it has none."""

    def __init__(self, *, webgl=True, size=(1400, 1000)):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        graphics = SOFTWARE if webgl else ("--disable-gpu", "--disable-3d-apis")
        command = [find_chromium(), *FLAGS, *graphics, f"--user-data-dir={self._profile.name}"]
        command += [f"--window-size={size[0]},{size[1]}", "about:blank"]
        # the browser reads commands from descriptor 3 and writes answers to 4
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self._events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with suppress(OSError, TimeoutError):
            self.call("Browser.close")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method, session=None, **params):
        """Send a command and return its result."""
        self._number += 1
        number, message = self._number, {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._next(end - time.monotonic())
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._events.append(answer)

    def _next(self, patience):
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, patience))[0]:
                raise TimeoutError("Chromium gives no answer")
            some = os.read(self._read, 1 << 20)
            if not some:
                raise OSError("Chromium has ended")
            self._buffer += some
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def events(self, session):
        """Return what was heard of a page since it was opened."""
        return [event for event in self._events if event.get("sessionId") == session]

    def open(self, path, *, width=1400, height=1000, dark=False, wait=True, fragment=""):
        """Open a file and wait until its explorer is drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, Path(path))
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        page.call("Emulation.setEmulatedMedia", features=scheme)
        page.call("Page.navigate", url=page.path.as_uri() + (f"#{fragment}" if fragment else ""))
        if wait:
            page.wait_for("document.querySelector('#explorer')?.dataset.drawn === 'yes'")
        return page


class Page:
    """An open page."""

    def __init__(self, browser, session, path):
        self.browser, self.session, self.path = browser, session, path.resolve()

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, script):
        """Return the value of an expression, which may be awaited for."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            about = found["exceptionDetails"]
            raise AssertionError(about.get("exception", {}).get("description") or about["text"])
        return found["result"].get("value")

    def wait_for(self, condition, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise AssertionError(f"never came true: {condition}; {self.complaints()}")
            time.sleep(0.03)

    def frame(self):
        """Wait until what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, x, y, **more):
        kinds = {"down": "mousePressed", "up": "mouseReleased", "move": "mouseMoved"}
        options = {"button": "left", "clickCount": 1} if kind != "move" else {}
        options |= {"buttons": 1} if kind == "move" and more.pop("held", False) else {}
        self.call("Input.dispatchMouseEvent", type=kinds[kind], x=x, y=y, **{**options, **more})

    def click(self, x, y, count=1):
        for number in range(1, count + 1):
            self.mouse("down", x, y, clickCount=number)
            self.mouse("up", x, y, clickCount=number)

    def drag(self, start, end, steps=8):
        self.mouse("move", *start)
        self.mouse("down", *start)
        for step in range(1, steps + 1):
            part = step / steps
            place = [a + (b - a) * part for a, b in zip(start, end, strict=True)]
            self.mouse("move", *place, held=True)
        self.mouse("up", *end)
        self.frame()

    def key(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path, *, whole=False):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """Return console messages, exceptions, dialogs, and requests for anything but the page itself."""
        self.run("0")  # what was underway has come by now
        found = []
        for event in self.browser.events(self.session):
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.consoleAPICalled":
                    found.append(("console", [arg.get("value") for arg in params["args"]]))
                case "Runtime.exceptionThrown":
                    found.append(("exception", params["exceptionDetails"]))
                case "Log.entryAdded":
                    found.append(("log", params["entry"]["text"]))
                case "Page.javascriptDialogOpening":
                    found.append(("dialog", params["message"]))
                case "Network.requestWillBeSent":
                    url = params["request"]["url"]
                    if url not in (self.path.as_uri(), "about:srcdoc") and not url.startswith("blob:"):
                        found.append(("request", url))
        return found
