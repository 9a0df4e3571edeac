"""The servers of a measurement: on free ports of the loopback address, ended by their ids whatever happens."""

import contextlib
import grp
import http.client
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE_SECONDS = 30
# Below the ports that the kernel gives to clients.
PORTS = range(20_000, 30_000)
HERTZ = os.sysconf("SC_CLK_TCK")
DATABASE_USER = "onceward"


class Failed(Exception):
    """A measurement cannot go on."""


class Server:
    """A process that listens on a port."""

    def __init__(self, process, port, log):
        self.process, self.port, self.log = process, port, log

    def wait_until(self, is_up):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"`{self.process.args[0]}` did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def processes(self):
        """Its id and those of its children."""
        pid = self.process.pid
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [pid] + [int(child) for task in tasks for child in (task / "children").read_text().split()]

    def processor_seconds(self):
        """What it has used so far in user and kernel, its children included, those that have ended too."""
        ticks = 0
        for pid in self.processes():
            # A child that has ended meanwhile counts with its parent.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # Behind the name, which may contain blanks.
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
        return ticks / HERTZ

    def resident_mib(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def end(self, with_signal):
        self.process.send_signal(with_signal)
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            # The process began a group, which its children are in.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextlib.contextmanager
def running(command, port, log, is_up, *, end_with=signal.SIGTERM, **options):
    """Runs a server as long as the block lasts."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, **options
        )
    server = Server(process, port, log)
    try:
        server.wait_until(is_up)
        yield server
    finally:
        server.end(end_with)


def free_port():
    while True:
        port = random.choice(PORTS)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def answer(port, path):
    """The body of the answer to a GET; None if there is none with status 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read().decode() if response.status == 200 else None
    return None


def filled_in(directory, name, values):
    """A configuration of this folder with its values, in the directory."""
    text = (HERE / name).read_text()
    for key, value in {"DIR": directory, **values}.items():
        text = text.replace(f"@{key}@", str(value))
    filled = directory / name
    filled.write_text(text)
    return filled


def nginx(directory, name, ready_path, values):
    """nginx with the configuration of this name."""
    port = free_port()
    user = f"{pwd.getpwuid(os.getuid()).pw_name} {grp.getgrgid(os.getgid()).gr_name}"
    config = filled_in(directory, f"{name}.conf", {"USER": user, "PORT": port, **values})
    command = ["nginx", "-p", directory, "-e", directory / "nginx.log", "-c", config]
    return running(command, port, directory / "nginx.log", lambda: answer(port, ready_path) is not None)


def onceward(directory, binary, values):
    """A build of Onceward with the store and the mode that the values say."""
    port, admin = free_port(), free_port()
    config = filled_in(directory, "onceward.toml", {"PORT": port, "ADMIN": admin, **values})
    command = [binary, "serve", "--config", config, "--log", "warn"]
    return running(command, port, directory / "onceward.log", lambda: answer(admin, "/readyz") is not None)


def floor(directory, program, upstream):
    """The proxy of `floor.rs`."""
    port = free_port()
    command = [program, f"127.0.0.1:{port}", f"127.0.0.1:{upstream}"]
    return running(command, port, directory / "floor.log", lambda: answer(port, "/") is not None)


def redis(directory):
    """Redis that appends what changes to a file, and has it on the disk within a second."""
    port = free_port()
    where = ["--bind", "127.0.0.1", "--port", str(port), "--dir", directory]
    # It would write the file anew while it is measured, in a process beside, and seldom do so in use.
    appends = ["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
    command = ["redis-server", *where, *appends, "--save", ""]
    ping = ["redis-cli", "-p", str(port), "ping"]
    return running(command, port, directory / "redis.log", lambda: succeeds(ping))


@contextlib.contextmanager
def postgres(directory):
    """PostgreSQL with its built-in settings: it waits for the disk at every commit. It does not run as root."""
    owner = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
    port, data, log = free_port(), directory / "data", directory / "postgres.log"
    if owner:
        os.chmod(directory.parent, 0o755)
        shutil.chown(directory, "postgres")
    made = ["-A", "trust", "-U", DATABASE_USER, "-E", "UTF8", "--no-locale", "-D", data]
    output = subprocess.run(
        [postgres_program("initdb"), *made], cwd="/", capture_output=True, text=True, check=False, **owner
    )
    if output.returncode != 0:
        raise Failed(output.stderr)
    command = [postgres_program("postgres"), "-D", data, "-k", directory, "-h", "127.0.0.1", "-p", str(port)]
    ready = [postgres_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    # SIGINT ends the sessions as well.
    started = running(command, port, log, lambda: succeeds(ready), end_with=signal.SIGINT, cwd="/", **owner)
    with started as server:
        yield server


def postgres_program(name):
    """Debian keeps every version in a directory of its own."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    return found[-1] if found else name


def succeeds(command):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run(command, check=False, **quiet).returncode == 0
