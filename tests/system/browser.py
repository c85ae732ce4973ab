# SPDX-License-Identifier: Apache-2.0
"""A real Chromium, driven by Debian's selenium, and its record of requests, console messages and pixels."""
import json
import time
from contextlib import contextmanager

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By


class Browser:
    def __init__(self, driver):
        self.driver = driver

    def size(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """The first such element's text, or nothing. Read in one step, as the page updates itself meanwhile."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, holds, seconds=15):
        """Waits for it to become true; returns the last result."""
        deadline = time.monotonic() + seconds
        while not (result := holds()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return result

    def keys(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def console(self):
        """Messages since the last call, including violations of the content security policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self):
        """URLs requested since the last call, whatever requested them."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]

    def pixels(self, selector):
        """(width, height, RGBA bytes) of a canvas."""
        width, height, data = self.run(
            "const c = document.querySelector(arguments[0]);"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "let text = ''; for (let i = 0; i < d.length; i += 8192) text += String.fromCharCode(...d.subarray(i, i + 8192));"
            "return [c.width, c.height, btoa(text)];", selector)
        import base64  # pylint: disable=import-outside-toplevel
        return width, height, base64.b64decode(data)


@contextmanager
def browser(width=1280, height=900):
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-component-update", f"--window-size={width},{height}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    try:
        subject = Browser(driver)
        subject.size(width, height)
        yield subject
    finally:
        driver.quit()
