"""A headless Chromium for tests of pages, by the DevTools protocol over its pipe.

    with Browser() as browser:
        page = browser.open(url, width=1200, height=800, dark=True)
        page.wait("document.title === 'x'")
        page.click("#run")
        assert page.troubles() == []     # exceptions of scripts, refusals of the page's policy
        page.hosts()                     # the hosts it has asked
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import tempfile
import time

from testing.leftovers import end_tree

PATIENCE_S = 60
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
         "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--remote-debugging-pipe")


def fresh_pipe():
    """Returns the ends of a pipe, above the numbers that the browser's get."""
    ends = os.pipe()
    above = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return above


class Browser:
    def __enter__(self):
        program = shutil.which("chromium")
        assert program is not None, "the package chromium is in the section [test] of deploy/packages.txt"
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        theirs_in, self._out = fresh_pipe()
        self._in, theirs_out = fresh_pipe()
        log = os.path.join(self._folder.name, "log")
        environment = {**os.environ, "HOME": self._folder.name}
        # It reads commands from 3 and writes events to 4.
        self._pid = os.posix_spawn(program, [program, *FLAGS, f"--user-data-dir={self._folder.name}/data"], environment,
                                   file_actions=[(os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT, 0o600),
                                                 (os.POSIX_SPAWN_DUP2, 1, 2),
                                                 (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                                                 (os.POSIX_SPAWN_DUP2, theirs_out, 4)])
        os.close(theirs_in)
        os.close(theirs_out)
        self._log = pathlib.Path(log)
        self._rest, self._last, self._pages = b"", 0, {}
        return self

    def __exit__(self, kind, error, trace):
        end_tree(self._pid)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def _read(self, until):
        """Reads the next message; events go to their pages."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0, until - time.monotonic()))
            assert ready, f"the browser says nothing\n{self._log.read_text(errors='replace')}"
            some = os.read(self._in, 1 << 20)
            assert some, f"the browser has ended\n{self._log.read_text(errors='replace')}"
            self._rest += some
        message, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(message)
        if "method" in message and message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].events.append(message)
        return message

    def call(self, method, session=None, **params):
        self._last += 1
        asked = {"id": self._last, "method": method, "params": params}
        if session is not None:
            asked["sessionId"] = session
        data = json.dumps(asked).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        until = time.monotonic() + PATIENCE_S
        while True:
            message = self._read(until)
            if message.get("id") == asked["id"]:
                assert "error" not in message, (method, message["error"])
                return message["result"]

    def open(self, url, width=1280, height=900, dark=False):
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Page.navigate", url=url)
        page.wait("document.readyState === 'complete'")
        return page


class Page:
    def __init__(self, browser, session):
        self._browser, self._session, self.events = browser, session, []

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def value(self, expression):
        """Returns the value of an expression of the page's language, a promise's result included."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, (expression, done["exceptionDetails"])
        return done["result"].get("value")

    def text(self, selector):
        """Returns the text of the first element that a reader sees."""
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def wait(self, expression, within_s=PATIENCE_S):
        """Until the expression is true; its value."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.05)  # the interval of polling, not a wait for luck
        raise AssertionError(f"{expression} is not true after {within_s} s; the page says:\n"
                             f"{self.value('document.body.innerText')}\n{self.troubles()}")

    def click(self, selector):
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector, text):
        """Sets a field as a user does, and leaves it then."""
        self.value(f"""(() => {{ const field = document.querySelector({json.dumps(selector)});
            field.value = {json.dumps(text)};
            for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {{bubbles: true}})); }})()""")

    def give_file(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, key, code=None, **more):
        """Presses a key, by its name: "Tab", "Enter"."""
        known = {"Tab": 9, "Enter": 13, "Escape": 27}
        text = {"Enter": "\r"}.get(key)
        down = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode=known.get(key, 0), **(down if kind == "keyDown" else {}), **more)

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip={
            "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def accessible(self):
        """(role, name) of everything that assistive programs are told of."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node.get("ignored") and "role" in node]

    def hosts(self):
        """Returns the schemes and hosts of all that it has asked for."""
        urls = [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]
        return {"/".join(url.split("/")[:3]) if "://" in url else url.split(":")[0] for url in urls}

    def troubles(self):
        """Returns exceptions of its scripts, and the browser's complaints: refusals of its policy among them."""
        found = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['source']}: {params['entry']['text']} {params['entry'].get('url', '')}")
        return found
