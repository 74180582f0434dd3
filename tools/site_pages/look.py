"""Checks a built site in a headless Chromium."""

import functools
import http.server
import json
import pathlib
import queue
import subprocess
import tempfile
import threading

WIDTHS = {"desktop": (1400, 1000), "phone": (400, 850)}
# Loads each page at the width of a phone and reports the wider pages; then enters a search. A screenshot
# cannot show the search results, because the search worker ignores Chromium's virtual time.
MEASURE = """<!doctype html><title>widths</title><body><script>
(async () => {
  const frame = document.createElement("iframe"), wide = [], width = %d;
  frame.width = width;
  frame.style.border = 0;
  document.body.append(frame);
  for (const page of %s) {
    await new Promise(loaded => { frame.onload = loaded; frame.src = page; });
    const has = frame.contentDocument.documentElement.scrollWidth;
    if (has > width) wide.push(page + " is " + has + " pixels wide");
  }
  await new Promise(loaded => { frame.onload = loaded; frame.src = "index.html?q=submit"; });
  const found = () => [...frame.contentDocument.querySelectorAll(".md-search-result__link")]
      .filter(link => link.getAttribute("href").includes("api/pool")).length;
  for (let waited = 0; waited < 300 && !found(); ++waited)
    await new Promise(later => setTimeout(later, 200));
  if (!found()) wide.push("a search for `submit` does not find api/pool.html");
  await fetch("/measured", {method: "POST", body: JSON.stringify(wide)});
})();
</script>
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site and one extra page, which measures the pages of the site."""

    def __init__(self, *arguments, measure, measured, **named):
        self.measure, self.measured = measure.encode(), measured
        super().__init__(*arguments, **named)

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path != "/measure":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.measure)))
        self.end_headers()
        self.wfile.write(self.measure)

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.measured.put(json.loads(text))


CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def console_of(address, size, picture):
    done = subprocess.run(
        [*CHROMIUM, "--enable-logging=stderr", "--virtual-time-budget=4000",
         f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}", address],
        text=True, capture_output=True, check=False, timeout=120)
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def wide_pages(address, measured):
    """Returns a report for each page that is wider than a phone, and for a failed search."""
    # With a port for a debugger, Chromium runs until terminate().
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, subprocess.Popen(
            [*CHROMIUM, "--remote-debugging-port=0", f"--user-data-dir={profile}", address],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            return measured.get(timeout=300)
        except queue.Empty:
            return ["the widths of the pages could not be measured"]
        finally:
            browser.terminate()
            browser.wait()


def at(folder):
    """Takes screenshots of some pages. Returns their console output, and a report for each page of the
    site that requires horizontal scrolling on a phone."""
    pictures, site = folder / "pictures", folder / "site"
    pictures.mkdir(exist_ok=True)
    pages = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    measured = queue.Queue()
    handler = functools.partial(Handler, directory=str(site), measured=measured,
                                measure=MEASURE % (WIDTHS["phone"][0], json.dumps(pages)))
    problems = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}/"
        for name in ("index", "getting_started", "api/pool", "benchmarks", "coming_from_cpp"):
            if not pathlib.Path(site / f"{name}.html").exists():
                continue
            address = f"{root}{name}.html"
            for kind, size in WIDTHS.items():
                picture = pictures / f"{kind}-{name.replace('/', '_')}.png"
                problems += [f"{name}, {kind}: {line}"
                             for line in console_of(address, size, picture)]
        problems += wide_pages(root + "measure", measured)
        server.shutdown()
    print(f"pictures in {pictures}; measured the widths of {len(pages)} pages and tested the search")
    return problems
