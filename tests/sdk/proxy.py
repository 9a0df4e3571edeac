"""A running proxy, a receiver behind it, and a client that sends what it is given."""

import http.client
import os
import re
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from delivery import PUBLIC_URL, Delivery


class Receiver:
    """Answers 200 and keeps what it got."""

    def __init__(self):
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append(Delivery(self.path, dict(self.headers.items()), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server.server_address[1]

    def count(self, path):
        return sum(1 for delivery in list(self.received) if delivery.path == path)


class Proxy:
    """The binary under test, with one route for each library."""

    def __init__(self, binary, sdks, receiver):
        self.folder = tempfile.TemporaryDirectory(prefix="onceward-sdk-")
        lines = ["[server]", 'listen = "127.0.0.1:0"', f'public_url = "{PUBLIC_URL}"']
        lines += ["[admin]", 'listen = "127.0.0.1:0"', "[store.memory]"]
        for sdk in sdks:
            secret = os.path.join(self.folder.name, sdk.name)
            with open(secret, "w", encoding="utf-8") as file:
                file.write(sdk.secret + "\n")
            lines += [f"[routes.{sdk.name}]", f'path = "/{sdk.name}"', f'provider = "{sdk.provider}"']
            lines += [f"secrets = [{{ file = '{secret}' }}]", f'upstream = "http://127.0.0.1:{receiver.port}"']
        config = os.path.join(self.folder.name, "onceward.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ONCEWARD_")}
        command = [binary, "serve", "--config", config]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.log = []
        self.port = self.listens()
        threading.Thread(target=self.log.extend, args=(self.process.stderr,), daemon=True).start()

    def listens(self):
        """The port, once it is known."""
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"serving listen=127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found.group(1))
        raise SystemExit("the proxy did not start:\n" + "".join(self.log))

    def answers(self, delivery):
        """Sends a delivery; its status and its disposition."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", delivery.path, delivery.body, delivery.headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers.get("Onceward-Disposition")
        finally:
            connection.close()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.folder.cleanup()
