#!/usr/bin/env python3
"""Drives the page of a report in a real browser: drive_page.py GMEM TRACE [SCREENSHOT].

Headless Chromium opens pages that gmem makes, uses every function, and compares figures with a plain model. The console must stay empty. Without
the browser it leaves with 77, or with 1 where CI is set. Debian's chromium, chromium-driver and python3-selenium are what it needs."""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's selenium, whichever python3 comes first
try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
    missing = "" if shutil.which("chromium") and shutil.which("chromedriver") else "chromium, chromium-driver"
except ImportError:
    missing = "python3-selenium"

HOSTILE = "gmtrace 1\nm </script><script>document.title='taken'</script>\na 1 4096 0\nm \u202eevil <b>bold</b>\na 2 100 3\nm =1+1\nf 1 2\n"
WAIT_S = 60


class Page:
    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-lcd-text", "--hide-scrollbars", "--window-size=1000,1055"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": str(folder),
                                                 "profile.default_content_setting_values.automatic_downloads": 1})
        self.driver, self.folder = webdriver.Chrome(options=options), folder

    def wait(self, what, test):
        end = time.monotonic() + WAIT_S
        while not test():
            assert time.monotonic() < end, f"{what}: not within {WAIT_S} s"
            time.sleep(0.02)

    def open(self, path, hash_text=""):
        self.driver.get("about:blank")
        self.driver.get(f"file://{path}{hash_text}")
        self.wait("ready", lambda: self.run("return document.documentElement.dataset.ready") or self.text("failure"))
        self.settle()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Two frames and the timer of the table."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))")

    def find(self, name):
        return self.driver.find_element(By.ID, name)

    def text(self, name):
        return self.find(name).text

    def click(self, name):
        self.run("arguments[0].click()", self.find(name))
        self.settle()

    def keys(self, *keys):
        self.find("timeline").send_keys(*keys)
        self.settle()

    def choose(self, name, value):
        Select(self.find(name)).select_by_value(value)
        self.settle()

    def type(self, name, text):
        field = self.find(name)
        field.clear()
        field.send_keys(text, Keys.ENTER)
        self.settle()

    def state(self, key):
        return self.run("return app.state[arguments[0]]", key)

    def rows(self):
        return self.run("return [...document.querySelectorAll('#panel-table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")

    def check_console(self):
        said = [line for line in self.driver.get_log("browser") if line["level"] != "INFO"]
        assert not said, said


def live_by_mark(path, moments):
    """For each moment the live bytes by label of the mark of birth, and in all; and the peak."""
    live, mark, at, peak, total, out = {}, "before the first mark", -1, (0, 0), 0, {}
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt") as lines:
        for line in lines:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind not in ("a", "f", "m"):
                continue
            at += 1
            words = rest.split(" ")
            if kind == "m":
                mark = rest
            elif kind == "a":
                live[words[0]] = (int(words[1]), mark)
                total += int(words[1])
            else:
                total -= live.pop(words[0])[0]
            peak = max(peak, (total, -at))
            if at in moments:
                groups = {}
                for size, label in live.values():
                    groups[label] = groups.get(label, 0) + size
                out[at] = groups
    return out, peak[0], -peak[1]


def exact(text):
    """The bytes of "1.5 KiB (1 536 B)"."""
    return int("".join(c for c in text.split("(")[-1] if c.isdigit()))


def check_begin(page, peak, peak_at):
    summary = page.text("summary").replace("\u202f", "")
    assert f"({peak} B) at event {peak_at}" in summary, summary
    assert page.state("cursor") == peak_at and page.state("tab") == "holders"
    colours = page.run("const c = document.getElementById('timeline'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, s = new Set();"
                       "for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return [...s]")
    assert 0x0072b2 in colours, "the first group's colour is not in the picture"


def check_holders(page, figures, moment):
    held = {row[0]: exact(row[1]) for row in page.rows() if exact(row[1])}
    assert held == figures[moment], (held, figures[moment])


def check_zoom(page):
    """The highest of each column is the highest of its events, at several zooms."""
    for _ in range(4):
        wrong = page.run("""const view = {...app.state, events: app.model.events}, columns = measureColumns(app.model, app.series, view, 500);
          for (let x = 0; x < 500; x++) {
            const [from, to] = columnEvents(view, 500, x), part = app.series.live.subarray(from, to);
            if (columns.max[x] !== Math.max(...part) || columns.min[x] !== Math.min(...part) || columns.at[x] !== from + part.indexOf(columns.max[x]))
              return [x, from, to];
            if (columns.groups.subarray(x * app.series.count, (x + 1) * app.series.count).reduce((a, b) => a + b, 0) !== columns.max[x]) return [x];
          } return null""")
        assert wrong is None, wrong
        before = page.state("to") - page.state("from")
        page.keys("+")
        assert abs((page.state("to") - page.state("from")) - before / 2) <= 1
    page.keys(Keys.PAGE_DOWN)
    page.click("zoom-out")
    page.click("zoom-all")
    assert page.state("from") == 0 and page.state("to") == page.run("return app.model.events")


def check_moves(page, peak_at):
    page.keys("p", Keys.SHIFT + Keys.ARROW_LEFT)
    assert page.state("cursor") == peak_at - 1
    page.keys("[")
    mark = page.state("cursor")
    assert "it mark " in page.text("moment"), page.text("moment")
    page.keys("]", "[")
    assert page.state("cursor") == mark
    page.keys(Keys.END)
    assert page.state("cursor") == page.run("return app.model.events") - 1
    page.keys(Keys.HOME)
    assert page.state("cursor") == 0
    page.choose("mark-choice", "1")
    assert page.state("cursor") == page.run("return app.model.markEvent[1]")
    page.run("""const canvas = document.getElementById('timeline'), box = canvas.getBoundingClientRect(), at = {pointerId: 1, bubbles: true, buttons: 1};
      canvas.setPointerCapture = () => {};
      for (const type of ['pointerdown', 'pointerup']) canvas.dispatchEvent(new PointerEvent(type, {...at, clientX: box.left + box.width / 2, clientY: 50 + box.top}));
      canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -100, clientX: box.left + box.width / 2, cancelable: true}));""")
    page.settle()
    assert abs(page.state("cursor") / page.run("return app.model.events") - 0.5) < 0.1
    assert page.state("to") - page.state("from") < page.run("return app.model.events")
    page.click("zoom-all")


def check_tables(page, trace, first, second):
    figures, _, _ = live_by_mark(trace, {first, second})
    page.run("app.goTo(arguments[0])", first)
    page.click("compare-here")
    page.run("app.goTo(arguments[0])", second)
    page.settle()
    check_holders(page, figures, second)
    others = {row[0]: exact(row[4]) for row in page.rows() if exact(row[4])}
    assert others == figures[first], (others, figures[first])
    page.click("tab-growth")
    change = sum(exact(row[1]) - exact(row[3]) for row in page.rows())
    assert change == sum(figures[second].values()) - sum(figures[first].values()), change
    page.click("tab-marks")
    assert [row[0] for row in page.rows()] == page.run("return app.model.marks")
    page.click("tab-sizes")
    blocks = page.run("return app.table.rows.reduce((sum, row) => sum + row.blocks, 0)")
    assert blocks == page.run("return app.model.blocks"), blocks
    page.click("compare-peak")
    page.click("tab-blocks")
    page.run("document.querySelector('#panel-table tbody button').click()")
    page.settle()
    assert "Born" in page.text("block") and "Stream" in page.text("block"), page.text("block")


def check_filters(page):
    total = page.run("return app.model.peak_bytes")
    page.type("filter-least", "1M")
    assert page.text("filter-note").startswith("Filtered"), page.text("filter-note")
    assert page.run("return app.series.peak") < total
    page.type("filter-least", "nonsense")
    assert page.find("filter-least").get_attribute("aria-invalid") == "true"
    page.click("filter-clear")
    assert page.run("return app.series.peak") == total
    page.type("filter-name", page.run("return app.model.marks[0]"))
    assert 0 < page.run("return app.series.peak") < total
    page.click("filter-clear")
    for by in page.run("return groupings(app.model).map(([by]) => by)"):
        page.choose("group", by)
        assert page.run("return app.series.peak") == total
        assert page.state("by") == by


def check_link(page, path):
    page.choose("group", "size")
    page.keys("+", "+")
    page.click("tab-growth")
    keys = ("from", "to", "cursor", "by", "tab", "fit")
    before, link = [page.state(key) for key in keys], page.run("return location.hash")
    page.open(path, link)
    assert [page.state(key) for key in keys] == before, link
    page.open(path, "#from=-5&to=1e99&at=nonsense&by=%3Cscript%3E&tab=__proto__&block=99999999999&key=-1&vs=1e300")
    assert page.state("tab") == "holders" and page.state("block") is None and page.state("from") == 0


def check_saves(page):
    page.click("tab-blocks")
    for name, button, begin in (("report-blocks.csv", "save-csv", '"block","bytes"'), ("report.svg", "save-svg", "<svg")):
        page.click(button)
        file = page.folder / name
        page.wait(name, lambda: file.exists() and file.read_text().endswith((">", "\n")))
        assert file.read_text().startswith(begin), file.read_text()[:80]
    lines = (page.folder / "report-blocks.csv").read_text().splitlines()
    assert len(lines) == page.run("return app.table.rows.length") + 1


def check_height(page):
    scale = "return makeScale(plotOf(600, 300), {least: 900, most: 1000}, app.state.fit).low"
    assert page.run(scale) == 0
    page.keys("f")
    assert page.run(scale) == 890 and page.find("fit").get_attribute("aria-pressed") == "true"


def check_theme(page):
    back = "return getComputedStyle(document.body).backgroundColor"
    before = page.run(back)
    page.click("theme")
    assert page.run(back) != before
    page.click("theme")
    assert page.run(back) == before


def check_names(page):
    """Each control has a name for a screen reader."""
    nameless = page.run("""return [...document.querySelectorAll('button, select, input, canvas:not([aria-hidden]), meter, section')].filter((e) =>
      !e.textContent.trim() && !e.closest('label') && !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).map((e) => e.outerHTML)""")
    assert not nameless, nameless


def check_hostile(page, gmem):
    trace, path = page.folder / "hostile.gmtrace", page.folder / "hostile.html"
    trace.write_text(HOSTILE)
    subprocess.run([gmem, "report", trace, "-o", path], check=True, capture_output=True)
    page.open(path, "#tab=marks")
    names = [row[0] for row in page.rows()]
    assert names == ["</script><script>document.title='taken'</script>", "\\u202eevil <b>bold</b>", "=1+1"], names
    assert page.run("return document.title").startswith("Memory report: ") and page.run("return document.querySelectorAll('b').length") == 0
    page.click("save-csv")
    file = page.folder / "report-marks.csv"
    page.wait("CSV", file.exists)
    assert "\"'=1+1\"" in file.read_text(), file.read_text()
    empty = page.folder / "empty.gmtrace"
    empty.write_text("gmtrace 1\n")
    subprocess.run([gmem, "report", empty, "-o", path], check=True, capture_output=True)
    page.open(path)
    page.keys("+", "-", "0", "p", "]", "[", "c", Keys.ARROW_RIGHT, Keys.END, Keys.PAGE_DOWN)
    for tab in ("growth", "sizes", "blocks", "marks", "holders"):
        page.click(f"tab-{tab}")
    assert "no events" in page.text("moment") and not page.text("failure")


def drive(gmem, trace, screenshot, folder):
    path = folder / "report.html"
    subprocess.run([gmem, "report", trace, "-o", path], check=True, capture_output=True)
    _, peak, peak_at = live_by_mark(trace, set())
    figures, _, _ = live_by_mark(trace, {peak_at})
    page = Page(folder)
    try:
        page.open(path)
        if screenshot:
            page.driver.save_screenshot(str(screenshot))
        first = page.run("return Number(document.documentElement.dataset.ready)")
        check_begin(page, peak, peak_at)
        check_holders(page, figures, peak_at)
        check_names(page)
        check_zoom(page)
        check_moves(page, peak_at)
        events = page.run("return app.model.events")
        check_tables(page, trace, events // 3, events * 2 // 3)
        check_filters(page)
        check_theme(page)
        check_height(page)
        check_link(page, path)
        check_saves(page)
        check_hostile(page, gmem)
        page.check_console()
    finally:
        page.driver.quit()
    print(f"the page does all it should; {path.name} was ready after {first} ms")


def main():
    if missing:
        print(f"{'FAILED' if os.environ.get('CI') else 'SKIPPED'}: no browser drives the page of gmem report, for want of {missing} (scripts/install ci)")
        return 1 if os.environ.get("CI") else 77
    with tempfile.TemporaryDirectory() as folder:
        drive(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
