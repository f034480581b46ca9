"""A headless Chromium, driven over a pipe by the protocol of its developer tools; no package is needed for that."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
# Only what hangs takes longer, also on a machine with much else to do.
TIMEOUT = 120


class Browser:
    """One browser process; `page` opens pages in it."""

    def __init__(self, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = ["--remote-debugging-pipe", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
        options += ["--disable-background-networking", "--no-first-run", "--force-color-profile=srgb", "--hide-scrollbars"]
        command = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", PROGRAM, *options, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._number = 0
        self.events = []

    def call(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + TIMEOUT
        while True:
            answer = self._next(until, method)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _next(self, until, waits_for):
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            assert left > 0 and select.select([self._read], [], [], left)[0], f"the browser does not answer {waits_for}"
            read = os.read(self._read, 1 << 20)
            assert read, "the browser ended"
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def page(self, width=1280, height=900, dark=False, phone=False):
        return Page(self, width, height, dark, phone)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)


class Page:
    """A page in a browser."""

    def __init__(self, browser, width, height, dark, phone):
        self.browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")
        scale = 2 if phone else 1
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def call(self, method, **parameters):
        return self.browser.call(method, self._session, **parameters)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script):
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, (script, done["exceptionDetails"])
        return done["result"].get("value")

    def until(self, condition, timeout=TIMEOUT):
        """Waits until an expression is true."""
        until = time.monotonic() + timeout
        while not self.run(condition):
            assert time.monotonic() < until, f"never: {condition}\n{self.text('body')}"
            time.sleep(0.05)

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def until_text(self, selector, part):
        self.until(f"document.querySelector({json.dumps(selector)}).innerText.includes({json.dumps(part)})")

    def click(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key, modifiers=0):
        codes = {"Tab": 9, "Enter": 13, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "ArrowUp": 38}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": modifiers}
        if key == "Enter":
            event["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def sign_in(self, access_key, secret_key):
        self.until("!document.querySelector('#keys').hidden")
        self.run("document.querySelector('#access').value = ''; document.querySelector('#access').focus()")
        self.type(access_key)
        self.press("Tab")
        self.type(secret_key)
        self.press("Enter")

    def picture(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def problems(self):
        """What the console has said of errors since the browser began: scripts that failed, and what was not allowed."""
        self.run("0")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self._session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"])
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["source"] in ("security", "javascript"):
                found.append(event["params"]["entry"]["text"])
        return found

    def asked(self):
        """Addresses that the page has asked for."""
        events = (event for event in self.browser.events if event.get("sessionId") == self._session)
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self._target)
