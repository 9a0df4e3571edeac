"""The libraries on npm, which run in one process of Node.js beside this one."""

import hashlib
import json
import os
import subprocess

from delivery import Delivery, Sdk
from python_sdks import StandardWebhooks, Stripe

# The folder into which `run` has installed the libraries.
FOLDER = os.environ.get("SDK_NODE_FOLDER", ".")


class NodeSdk(Sdk):
    """One of them: name, preset, and whether an old signature is refused."""

    def __init__(self, process, name, provider, timed, **secrets):
        self.process, self.name, self.provider, self.timed = process, name, provider, timed
        for key, value in secrets.items():
            setattr(self, key, value)

    def asks(self, **question):
        self.process.stdin.write(json.dumps({"sdk": self.name, **question}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: Node.js ended")
        return json.loads(line)

    def sign(self, asked):
        answer = self.asks(do="sign", path=asked.path, url=asked.url, event=asked.event, secret=asked.secret, at=asked.at)
        return Delivery(asked.path, answer["headers"], answer["body"].encode())

    def verifies(self, delivery, secret):
        headers = {name.lower(): value for name, value in delivery.headers.items()}
        answer = self.asks(do="verify", headers=headers, body=delivery.body.decode(), url=delivery.url, secret=secret)
        return answer["valid"] or answer.get("why", False)


class NodeSdks:
    """All of them, and the process."""

    def __enter__(self):
        command = ["node", os.path.join(FOLDER, "node_sdks.mjs")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        standard = {"secret": StandardWebhooks.secret, "other_secret": StandardWebhooks.other_secret}
        stripe = {"secret": Stripe.secret, "other_secret": Stripe.other_secret}
        hex_keys = {"secret": "ab" * 32, "other_secret": "cd" * 32}
        login = "merchant_user:Passw0rd1"
        phonepe = {"secret": hashlib.sha256(login.encode()).hexdigest(), "signing_secret": login, "other_secret": "other_user:Passw0rd2"}
        sdk = lambda *facts, **secrets: NodeSdk(self.process, *facts, **secrets)
        self.sdks = [
            sdk("node-stripe", "stripe", True, **stripe),
            sdk("node-standardwebhooks", "standard-webhooks", True, **standard),
            sdk("node-svix", "svix", True, **standard),
            sdk("node-github", "github", False),
            sdk("node-twilio", "twilio", False),
            sdk("node-adyen", "adyen", False, **hex_keys),
            sdk("node-square", "square", False),
            sdk("node-shopify", "shopify", False),
            sdk("node-linear", "linear", True),
            sdk("node-mux", "mux", True),
            sdk("node-paddle", "paddle", True),
            sdk("node-razorpay", "razorpay", False),
            sdk("node-workos", "workos", True),
            sdk("node-dropbox-sign", "dropbox-sign", True),
            sdk("node-phonepe", "phonepe", False, covers_body=False, **phonepe),
        ]
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)
