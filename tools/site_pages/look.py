"""Looks at a built site in a headless Chromium."""

import functools
import http.server
import pathlib
import subprocess
import threading

WIDTHS = {"desktop": (1400, 1000), "phone": (400, 850)}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def chromium(address, size, picture):
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--enable-logging=stderr", "--virtual-time-budget=4000",
         f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}", address],
        text=True, capture_output=True, check=False, timeout=120)
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def at(folder):
    """Pictures of some pages; what any of them writes to the console is wrong."""
    pictures, site = folder / "pictures", folder / "site"
    pictures.mkdir(exist_ok=True)
    handler = functools.partial(Quiet, directory=str(site))
    problems = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in ("index", "getting_started", "api/pool", "benchmarks", "coming_from_cpp",
                     "index.html?q=submit"):
            if "?" not in name and not pathlib.Path(site / f"{name}.html").exists():
                continue
            address = f"http://127.0.0.1:{server.server_port}/" + \
                (name if "?" in name else f"{name}.html")
            for kind, size in WIDTHS.items():
                picture = pictures / f"{kind}-{name.replace('/', '_').replace('?', '-')}.png"
                problems += [f"{name}, {kind}: {line}"
                             for line in chromium(address, size, picture)]
        server.shutdown()
    print(f"pictures in {pictures}")
    return problems
