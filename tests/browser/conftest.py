"""Servers, and one browser for all tests. Screenshots go to $SCREENSHOTS, if it is set, to be looked at."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "s3"))

import browser as chromium
import zonestore


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium here: scripts/setup --test installs one")
    browser = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def make_server(tmp_path):
    """A server on a drive of its own."""
    made = []

    def make(*arguments, size="256MiB", shape=(), prepare=None):
        drive = tmp_path / f"d{len(made)}.zoned"
        zonestore.run("drive", "create", drive, "--profile", "test-small", "--size", size, *shape)
        zonestore.run("store", "mkfs", drive)
        if prepare:
            prepare(drive)
        made.append(zonestore.Server(drive, *arguments).start())
        return made[-1]

    yield make
    for server in made:
        if server.alive():
            server.kill()
        os.unlink(server.drive)


@pytest.fixture
def server(make_server):
    return make_server()


@pytest.fixture
def open_page(browser):
    """The page of a server, signed in unless told otherwise; what its console says of errors fails the test."""
    opened = []

    def open_page(server, signed_in=True, **shape):
        page = browser.page(**shape)
        opened.append(page)
        page.open(server.endpoint + "/-/")
        if signed_in:
            page.sign_in(zonestore.ACCESS_KEY, zonestore.SECRET_KEY)
            page.until_text("#state", "ready")
            # The map is as high as its zones make it, once they are there.
            page.until("document.querySelector('#map').style.height !== ''")
        return page

    yield open_page
    for page in opened:
        assert page.problems() == []
        page.close()


@pytest.fixture
def picture(request):
    """Takes a picture of a page, where somebody wants to see it."""
    folder = os.environ.get("SCREENSHOTS")

    def picture(page, name=request.node.name.removeprefix("test_"), whole=True):
        if folder:
            os.makedirs(folder, exist_ok=True)
            page.picture(os.path.join(folder, name + ".png"), whole)

    return picture
