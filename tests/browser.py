"""A browser without a window, for the tests of pages and for the pictures of the documentation."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
DRIVER = shutil.which("chromedriver")
LIMIT = 120  # seconds to wait for what comes in the end


def start_browser():
    """RETURNS: selenium's driver of Chromium. `quit` ends it."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def set_window(driver, width: int, height: int = 900, scale: float = 1, mobile: bool = False):
    """Set the size of the page, in CSS pixels, and how many pixels of the screen each of them has."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def set_scheme(driver, scheme: str):
    """Set what the system prefers: "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def find_seen(driver, selector: str) -> list:
    """The elements of a page that are seen."""
    return [element for element in driver.find_elements("css selector", selector) if element.is_displayed()]


def wait(condition):
    """Wait until a condition holds. What the page replaces meanwhile is looked up again. RETURNS: Its value."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            if found := condition():
                return found
        except Exception as error:
            if type(error).__name__ not in ("StaleElementReferenceException", "NoSuchElementException"):
                raise
        assert time.monotonic() < end, "It did not happen."
        time.sleep(0.1)


@contextmanager
def explorer(folder: Path, *options: str) -> Iterator[str]:
    """Start the explorer by its command, and end it as people do, with Ctrl+C.

    folder (Path): Its home and its log: as on the first day, Streamlit has no settings there.
    YIELDS (str): The address of the page.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "spacy", "pll", "explore", "--headless", "--port", str(port), *options]
    log = folder / "log"
    environment = {**os.environ, "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
    try:
        wait(lambda: process.poll() is not None or _is_up(port))
        assert process.poll() is None, log.read_text()
        yield f"http://localhost:{port}"
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 0
        assert "Traceback" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()


def _is_up(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://localhost:{port}/_stcore/health").status == 200
    except urllib.error.URLError:
        return False
