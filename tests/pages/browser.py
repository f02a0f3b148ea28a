# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A headless Chromium, told what to do over a pipe.

The DevTools protocol by descriptors 3 and 4: JSON with a NUL behind each message. So no
port is opened, and the standard library is enough.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

ANSWER_S = 60  # against hangs only


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page. Ends with its `with` block."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="rdmabox-browser.")
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def pipes():
            # Away from 3 and 4 first: one of them may be the other's place.
            read_end, write_end = os.dup(to_browser), os.dup(from_browser)
            while read_end < 5 or write_end < 5:
                read_end, write_end = os.dup(read_end), os.dup(write_end)
            os.dup2(read_end, 3)
            os.dup2(write_end, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--hide-scrollbars", "--no-proxy-server",
             "--user-data-dir=" + self.home, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.serial = 0
        self.requested = []  # addresses that pages asked for
        self.complaints = []  # of the page: errors, and what the policy stopped
        self.session = None
        target = next(target for target in self.call("Target.getTargets")["targetInfos"]
                      if target["type"] == "page")
        self.session = self.call("Target.attachToTarget",
                                 targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.to)
        os.close(self.back)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def _next(self, until):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.back, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        method, what = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(what["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(what["exceptionDetails"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.complaints.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))

    def call(self, method, **params):
        self.serial += 1
        message = {"id": self.serial, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + ANSWER_S
        while True:
            answer = self._next(until)
            if answer.get("id") != self.serial:
                self._note(answer)
                continue
            if "error" in answer:
                raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
            return answer["result"]

    def look(self, width, height, scheme, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        self.call("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression in the page; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, script, seconds=30):
        until = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > until:
                raise TimeoutError("never true: " + script)
            time.sleep(0.1)

    def picture(self, path):
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip,
                         captureBeyondViewport=True, optimizeForSpeed=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
