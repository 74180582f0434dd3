"""Starts the servers of bench/compare_net, and reads the resources that they have used."""

import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from programs import Unavailable, built, cxx_server, go_server, rust_server

HERE = "127.0.0.1:0"
NGINX = """worker_processes {workers};
daemon off;
error_log stderr crit;
pid {folder}/pid;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  default_type text/plain;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port} backlog=4096{ssl};
    location / {{ return 200 "Hello, World!"; }}
  }}
}}
"""


def weft(path, build, workers, secret, *more):
    return [str(built(build, path)), "--listen", HERE, "--workers", str(workers), *more, *secret]


def go(module, build, workers, secret, *more):
    return [str(go_server(module, build)), "--listen", HERE, "--workers", str(workers), *more,
            *secret]


def rust(crate, build, workers, secret):
    if secret:
        raise Unavailable("it is measured without TLS")
    return [str(rust_server(crate, build)), "--listen", HERE, "--workers", str(workers)]


def floor(build, workers, secret, *more):
    if workers > 1:
        raise Unavailable("it has one thread")
    if secret:
        raise Unavailable("it does not support TLS")
    return [str(built(build, "bench/echo_floor")), "--port", "0", *more]


def pistache(build, workers, secret):
    if secret:
        raise Unavailable("it is measured without TLS")
    return [str(cxx_server("pistache", build)), HERE, str(workers)]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@functools.lru_cache
def scratch():
    """Returns a temporary folder, which Python removes at the end of the script."""
    return tempfile.TemporaryDirectory()


def nginx(build, workers, secret):
    del build
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        raise Unavailable("it is not installed; run tools/install_packages bench")
    port, ssl = free_port(), ""
    if secret:
        ssl = f" ssl; ssl_certificate {secret[1]}; ssl_certificate_key {secret[3]}"
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch().name))
    text = NGINX.format(workers=workers, folder=folder, port=port, ssl=ssl)
    (folder / "conf").write_text(text)
    # nginx does not print its address.
    return ["sh", "-c", f'echo listening on 127.0.0.1:{port}; exec "$0" "$@"', program,
            "-p", str(folder), "-c", str(folder / "conf")]


WEFT_HTTP = functools.partial(weft, "bench/http_server")
GO_HTTP = functools.partial(go, "go_http")
RUST = {
    "hyper": functools.partial(rust, "hyper_http"),
    "actix": functools.partial(rust, "actix_http"),
}
WHOLE_HTTP = {
    "weft": WEFT_HTTP,
    "go_fasthttp": lambda *where: GO_HTTP(*where, "--library", "fasthttp"),
    "go": GO_HTTP,
    "nginx": nginx,
}
SERVERS = {
    "echo": {
        "weft": functools.partial(weft, "examples/echo_server"),
        "epoll": floor,
        "go": functools.partial(go, "go_echo"),
    },
    "http": {
        **WHOLE_HTTP,
        **RUST,
        "pistache": pistache,
        # These two only search for the blank line at the end of a request.
        "weft_scan": functools.partial(weft, "bench/hello_server"),
        "epoll": lambda *where: floor(*where, "--hello"),
    },
    "connect": {**WHOLE_HTTP, "pistache": pistache},
    "tls": WHOLE_HTTP,
    "light": {"weft": WEFT_HTTP, **RUST, "go_fasthttp": WHOLE_HTTP["go_fasthttp"], "go": GO_HTTP},
}


@functools.lru_cache
def secret_options():
    """Creates a certificate and its key; returns the options that weft's and Go's servers share."""
    certificate, key = (f"{scratch().name}/{name}" for name in ("certificate", "key"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj",
               "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run(command, capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as failure:
        raise Unavailable("openssl could not create a certificate") from failure
    os.chmod(scratch().name, 0o755)  # nginx's workers may run as another user.
    return ("--certificate", certificate, "--key", key)


def processes(pid):
    """Yields a process and its descendants, because nginx's workers are processes."""
    yield pid
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            text = pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text()
            for child in text.split():
                yield from processes(int(child))
    except FileNotFoundError:
        return


def processor_seconds(pid):
    """Returns the processor time of all threads of a server, in user mode and in the kernel."""
    return sum(seconds_of_process(each) for each in processes(pid))


def seconds_of_process(pid):
    total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            total += int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        return total / 1e9
    except (FileNotFoundError, IndexError):
        # This kernel has no schedstat; the fallback has the granularity of the clock tick.
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kernel_switches(pid):
    """Returns how often threads of a server have blocked in the kernel so far."""
    total = 0
    for each in processes(pid):
        for status in pathlib.Path(f"/proc/{each}/task").glob("*/status"):
            for line in status.read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    total += int(line.split()[1])
    return total


# perf counts all system calls, and the calls that wake a thread: by a futex, and by an eventfd.
COUNTED_EVENTS = (
    *("-e", "raw_syscalls:sys_enter"),
    *("-e", "syscalls:sys_enter_futex", "--filter", "op == 1 || op == 129"),
    *("-e", "syscalls:sys_enter_write", "--filter", "count == 8"),
)


def count_system_calls(pid, load):
    """Returns (system calls, wakes of threads) of a server during `load()`.

    Returns None if perf cannot count them.
    """
    pids = ",".join(str(each) for each in processes(pid))
    command = ["perf", "stat", "-x,", *COUNTED_EVENTS, "-p", pids]
    try:
        perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True)
    except FileNotFoundError:
        return None
    time.sleep(0.2)  # perf does not report when it has begun to count.
    try:
        load()
    finally:
        perf.send_signal(signal.SIGINT)
        text = perf.communicate(timeout=30)[1]
    counts = [int(count) for count in re.findall(r"^(\d+),", text, re.MULTILINE)]
    return (counts[0], counts[1] + counts[2]) if len(counts) == 3 else None


def peak_memory_bytes(pid):
    total = 0
    for each in processes(pid):
        for line in pathlib.Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1]) * 1024
    return total
