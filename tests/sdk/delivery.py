"""A request as a sender makes it, and what every library under test can do."""

import json
import time
from dataclasses import dataclass, field, replace

PUBLIC_URL = "https://hooks.example.com"


@dataclass(frozen=True)
class Delivery:
    """One request: what stands on the wire."""

    path: str
    headers: dict
    body: bytes

    @property
    def url(self):
        return PUBLIC_URL + self.path

    def header(self, name):
        """The value of a header by its name in any case, or none."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)

    def tampered(self, old, new):
        """The same head over another body."""
        changed = self.body.replace(old.encode(), new.encode())
        assert changed != self.body, f"{old} does not stand in the body"
        return replace(self, body=changed)


@dataclass(frozen=True)
class Asked:
    """What is to be signed: one event, at one moment, under one secret."""

    path: str
    event: str
    secret: str
    at: float = field(default_factory=time.time)

    @property
    def url(self):
        return PUBLIC_URL + self.path

    @property
    def seconds(self):
        return str(int(self.at))

    @property
    def milliseconds(self):
        return str(int(self.at * 1000))

    def json(self, headers, **members):
        """A delivery of a JSON body; `headers` is given the text of the body."""
        body = json.dumps(members)
        return Delivery(self.path, {"Content-Type": "application/json", **headers(body)}, body.encode())


class Sdk:
    """One library in the role of the sender, and of the receiver behind the proxy."""

    name = ""
    provider = ""
    secret = "secret-of-the-tests"
    # The secret as the library takes it, where the route is given another one (a public key).
    signing_secret = None
    other_secret = "another-secret-of-the-tests"
    # Whether an old signature is refused for its age.
    timed = True
    # Whether what it signs is in the body. Else the secret is only sent along.
    covers_body = True
    # Whether the library itself signs; else the signature is made here and the library verifies it.
    signs = True

    def sign(self, asked):
        """A delivery of the event, signed."""
        raise NotImplementedError

    def verifies(self, delivery, secret):
        """Whether the library takes the delivery for genuine."""
        raise NotImplementedError

    def tampered(self, delivery, event):
        """The delivery with another event in its body, under the same signature."""
        return delivery.tampered(event, event[:-1] + "X")
