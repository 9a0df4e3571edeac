"""The libraries on PyPI: one class each."""

import base64
import hashlib
import hmac
import json
import time
from datetime import datetime, timezone
from types import SimpleNamespace
from urllib.parse import parse_qs, parse_qsl, urlencode

import Adyen.util
import braintree
import discord_interactions
import gocardless_pro.webhooks
import razorpay
import stripe
from braintree.util.crypto import Crypto
from cashfree_pg.api_client import Cashfree
from coinbase_commerce.webhook import Webhook as CoinbaseWebhook, WebhookSignature as CoinbaseSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from easypost.util import validate_webhook as easypost_validates
from hubspot.utils.signature import Signature as HubspotSignature
from mailgun.security import SecurityGuard as MailgunGuard
from nacl.signing import SigningKey
from paddle_billing.Notifications import Secret as PaddleSecret, Verifier as PaddleVerifier
from sendgrid.helpers.eventwebhook import EventWebhook
from slack_sdk.signature import SignatureVerifier
from square.utils.webhooks_helper import verify_signature as square_verifies
from standardwebhooks import Webhook as StandardWebhook
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator
from workos.webhooks import Webhooks as WorkosWebhooks

from delivery import Delivery, Sdk


def holds(verification):
    """Whether a verification that raises for what is wrong raises nothing."""
    try:
        return verification() is not False
    except Exception:  # Each library has errors of its own, with no common base.
        return False


def hmac_sha256(secret, text):
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256)


class Stripe(Sdk):
    name, provider, secret, other_secret = "stripe", "stripe", "whsec_c2VjcmV0", "whsec_b3RoZXI"

    def sign(self, asked):
        def headers(body):
            signature = stripe.WebhookSignature.generate_signature_header(body, asked.secret, int(asked.at))
            return {"Stripe-Signature": signature}

        return asked.json(headers, id=asked.event, object="event", type="charge.succeeded", api_version="2026-01-28", data={"object": {}})

    def verifies(self, delivery, secret):
        header = delivery.header("Stripe-Signature")
        return holds(lambda: stripe.Webhook.construct_event(delivery.body, header, secret))


class StandardWebhooks(Sdk):
    name, provider, family, library = "standardwebhooks", "standard-webhooks", "webhook", StandardWebhook
    secret = "whsec_" + base64.b64encode(b"a secret of twenty-four b").decode()
    other_secret = "whsec_" + base64.b64encode(b"other one of twenty-four b").decode()

    def sign(self, asked):
        def headers(body):
            at = datetime.fromtimestamp(int(asked.at), tz=timezone.utc)
            signature = self.library(asked.secret).sign(asked.event, at, body)
            family = self.family
            return {f"{family}-id": asked.event, f"{family}-timestamp": asked.seconds, f"{family}-signature": signature}

        return asked.json(headers, type="user.created", data={"id": asked.event})

    def verifies(self, delivery, secret):
        headers = {name.lower(): value for name, value in delivery.headers.items()}
        return holds(lambda: self.library(secret).verify(delivery.body, headers) or True)


class Svix(StandardWebhooks):
    name, provider, family, library = "svix", "svix", "svix", SvixWebhook


class Twilio(Sdk):
    name, provider, timed = "twilio", "twilio", False

    def sign(self, asked):
        fields = {"AccountSid": "AC1", "MessageSid": asked.event, "MessageStatus": "sent", "Body": "grüße & more"}
        signature = RequestValidator(asked.secret).compute_signature(asked.url, fields)
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Twilio-Signature": signature,
            "I-Twilio-Idempotency-Token": asked.event,
        }
        return Delivery(asked.path, headers, urlencode(fields).encode())

    def verifies(self, delivery, secret):
        fields = dict(parse_qsl(delivery.body.decode(), keep_blank_values=True))
        return RequestValidator(secret).validate(delivery.url, fields, delivery.header("X-Twilio-Signature"))


class Slack(Sdk):
    name, provider = "slack", "slack"

    def sign(self, asked):
        def headers(body):
            signature = SignatureVerifier(asked.secret).generate_signature(timestamp=asked.seconds, body=body)
            return {"X-Slack-Request-Timestamp": asked.seconds, "X-Slack-Signature": signature}

        return asked.json(headers, type="event_callback", event_id=asked.event, api_app_id="A1", team_id="T1", event={"type": "message"})

    def verifies(self, delivery, secret):
        return SignatureVerifier(secret).is_valid_request(delivery.body, delivery.headers)


class Paddle(Sdk):
    name, provider, signs = "paddle", "paddle", False

    def sign(self, asked):
        def headers(body):
            signature = hmac_sha256(asked.secret, f"{asked.seconds}:{body}").hexdigest()
            return {"Paddle-Signature": f"ts={asked.seconds};h1={signature}"}

        return asked.json(headers, event_id=asked.event, event_type="transaction.completed", notification_id="ntf_1", data={})

    def verifies(self, delivery, secret):
        headers = {"Paddle-Signature": delivery.header("Paddle-Signature")}
        request = SimpleNamespace(headers=headers, body=delivery.body)
        return PaddleVerifier(60).verify(request, PaddleSecret(secret))


class AdyenItems(Sdk):
    name, provider, timed = "adyen", "adyen", False
    secret, other_secret = "ab" * 32, "cd" * 32

    def sign(self, asked):
        item = {
            "additionalData": {},
            "amount": {"currency": "EUR", "value": 1000},
            "eventCode": "AUTHORISATION",
            "eventDate": "2026-11-05T10:00:00+01:00",
            "merchantAccountCode": "ShopECOM",
            "merchantReference": "order:1",
            "pspReference": asked.event,
            "success": "true",
        }
        signature = Adyen.util.generate_notification_sig(item, asked.secret).decode()
        item["additionalData"]["hmacSignature"] = signature
        return asked.json(lambda _: {}, live="false", notificationItems=[{"NotificationRequestItem": item}])

    def verifies(self, delivery, secret):
        item = json.loads(delivery.body)["notificationItems"][0]["NotificationRequestItem"]
        return Adyen.util.is_valid_hmac_notification(item, secret)


class AdyenPlatform(AdyenItems):
    name, provider = "adyen-platform", "adyen-platform"

    def sign(self, asked):
        def headers(body):
            signature = Adyen.util.generate_payload_sig(body.encode(), asked.secret).decode()
            return {"HmacSignature": signature, "Protocol": "HmacSHA256"}

        return asked.json(headers, type="balancePlatform.transfer.created", environment="test", data={"id": asked.event}, timestamp="2026-11-05T10:00:00+01:00")

    def verifies(self, delivery, secret):
        return Adyen.util.is_valid_hmac_payload(delivery.header("HmacSignature"), secret, delivery.body)


class Square(Sdk):
    name, provider, timed, signs = "square", "square", False, False

    def sign(self, asked):
        def headers(body):
            digest = hmac_sha256(asked.secret, asked.url + body).digest()
            return {"x-square-hmacsha256-signature": base64.b64encode(digest).decode()}

        return asked.json(headers, merchant_id="M1", type="payment.updated", event_id=asked.event, data={})

    def verifies(self, delivery, secret):
        return square_verifies(
            request_body=delivery.body.decode(),
            signature_header=delivery.header("x-square-hmacsha256-signature"),
            signature_key=secret,
            notification_url=delivery.url,
        )


class Razorpay(Sdk):
    name, provider, timed, signs = "razorpay", "razorpay", False, False

    def sign(self, asked):
        def headers(body):
            signature = hmac_sha256(asked.secret, body).hexdigest()
            return {"X-Razorpay-Signature": signature, "x-razorpay-event-id": asked.event}

        return asked.json(headers, entity="event", account_id="acc_1", event="payment.captured", payload={"id": asked.event})

    def verifies(self, delivery, secret):
        utility = razorpay.Client(auth=("key", "secret")).utility
        signature = delivery.header("X-Razorpay-Signature")
        return holds(lambda: utility.verify_webhook_signature(delivery.body.decode(), signature, secret))


class Braintree(Sdk):
    name, provider, timed = "braintree", "braintree", False

    def gateway(self, secret):
        environment = braintree.Environment.Sandbox
        return braintree.BraintreeGateway(braintree.Configuration(environment, "merchant", "public-key", secret))

    def sign(self, asked):
        kind = braintree.WebhookNotification.Kind.SubscriptionChargedSuccessfully
        fields = self.gateway(asked.secret).webhook_testing.sample_notification(kind, asked.event)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return Delivery(asked.path, headers, urlencode({key: as_text(value) for key, value in fields.items()}).encode())

    def verifies(self, delivery, secret):
        fields = {key: values[0] for key, values in parse_qs(delivery.body.decode()).items()}
        notifications = self.gateway(secret).webhook_notification
        return holds(lambda: notifications.parse(fields["bt_signature"], fields["bt_payload"]))

    def tampered(self, delivery, event):
        fields = {key: values[0] for key, values in parse_qs(delivery.body.decode()).items()}
        payload = base64.b64decode(fields["bt_payload"]).replace(event.encode(), b"evt-another-one")
        fields["bt_payload"] = base64.encodebytes(payload).decode()
        return Delivery(delivery.path, delivery.headers, urlencode(fields).encode())


def as_text(value):
    return value.decode() if isinstance(value, bytes) else value


def ecdsa_pair(number):
    """A private key, and the public one as SendGrid shows it."""
    private = ec.derive_private_key(number, ec.SECP256R1())
    public = private.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return SimpleNamespace(private=private, public=base64.b64encode(public).decode())


class Sendgrid(Sdk):
    name, provider, signs = "sendgrid", "sendgrid", False
    secret = ecdsa_pair(20_261_105).public
    signing_secret, other_secret = ecdsa_pair(20_261_105), ecdsa_pair(20_261_106)

    def sign(self, asked):
        body = json.dumps([{"email": "a@example.com", "event": "delivered", "sg_event_id": asked.event}]) + "\r\n"
        signature = asked.secret.private.sign((asked.seconds + body).encode(), ec.ECDSA(hashes.SHA256()))
        headers = {
            "Content-Type": "application/json",
            "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
            "X-Twilio-Email-Event-Webhook-Timestamp": asked.seconds,
        }
        return Delivery(asked.path, headers, body.encode())

    def verifies(self, delivery, secret):
        signature = delivery.header("X-Twilio-Email-Event-Webhook-Signature")
        timestamp = delivery.header("X-Twilio-Email-Event-Webhook-Timestamp")
        return EventWebhook(secret.public).verify_signature(delivery.body.decode(), signature, timestamp)


class Discord(Sdk):
    name, provider, signs = "discord", "discord", False
    secret = SigningKey(b"1" * 32).verify_key.encode().hex()
    signing_secret, other_secret = SigningKey(b"1" * 32), SigningKey(b"2" * 32)

    def sign(self, asked):
        def headers(body):
            signature = asked.secret.sign((asked.seconds + body).encode()).signature.hex()
            return {"X-Signature-Ed25519": signature, "X-Signature-Timestamp": asked.seconds}

        event = {"type": "APPLICATION_AUTHORIZED", "timestamp": "2026-11-05T10:00:00.123456", "data": {"id": asked.event}}
        return asked.json(headers, version=1, application_id="1234", type=1, event=event)

    def verifies(self, delivery, secret):
        signature, timestamp = delivery.header("X-Signature-Ed25519"), delivery.header("X-Signature-Timestamp")
        return discord_interactions.verify_key(delivery.body, signature, timestamp, secret.verify_key.encode().hex())


class Gocardless(Sdk):
    name, provider, timed, signs = "gocardless", "gocardless", False, False

    def sign(self, asked):
        def headers(body):
            return {"Webhook-Signature": hmac_sha256(asked.secret, body).hexdigest()}

        event = {"id": asked.event, "resource_type": "payments", "action": "confirmed", "links": {}}
        return asked.json(headers, events=[event], meta={"webhook_id": "WB1"})

    def verifies(self, delivery, secret):
        signature = delivery.header("Webhook-Signature")
        return holds(lambda: gocardless_pro.webhooks.parse(delivery.body, secret, signature))


class CoinbaseCommerce(Sdk):
    name, provider, timed = "coinbase-commerce", "coinbase-commerce", False

    def sign(self, asked):
        def headers(body):
            return {"X-CC-Webhook-Signature": CoinbaseSignature._compute_signature(body, asked.secret)}

        return asked.json(headers, id="1", event={"id": asked.event, "type": "charge:confirmed", "data": {}})

    def verifies(self, delivery, secret):
        header = delivery.header("X-CC-Webhook-Signature")
        return holds(lambda: CoinbaseWebhook.construct_event(delivery.body.decode(), header, secret))


class Hubspot(Sdk):
    name, provider = "hubspot", "hubspot"

    def sign(self, asked):
        event = {"eventId": asked.event, "subscriptionId": 1, "portalId": 2, "occurredAt": 3, "subscriptionType": "contact.creation"}
        body = json.dumps([event])
        signature = HubspotSignature.get_signature(asked.secret, body, "v3", asked.url, "POST", asked.milliseconds)
        headers = {
            "Content-Type": "application/json",
            "X-HubSpot-Signature-v3": signature,
            "X-HubSpot-Request-Timestamp": asked.milliseconds,
        }
        return Delivery(asked.path, headers, body.encode())

    def verifies(self, delivery, secret):
        signature = delivery.header("X-HubSpot-Signature-v3")
        timestamp = delivery.header("X-HubSpot-Request-Timestamp")
        return holds(lambda: HubspotSignature.is_valid(signature, secret, delivery.body.decode(), delivery.url, "POST", "v3", timestamp))


class Easypost(Sdk):
    name, provider, timed, signs = "easypost", "easypost", False, False

    def sign(self, asked):
        def headers(body):
            signature = hmac_sha256(asked.secret, body).hexdigest()
            return {"X-Hmac-Signature": f"hmac-sha256-hex={signature}"}

        return asked.json(headers, id=asked.event, object="Event", description="tracker.updated", mode="test", result={})

    def verifies(self, delivery, secret):
        headers = {"X-Hmac-Signature": delivery.header("X-Hmac-Signature")}
        return holds(lambda: easypost_validates(delivery.body, headers, secret))


class CashfreePayments(Sdk):
    name, provider, signs = "cashfree", "cashfree", False

    def sign(self, asked):
        def headers(body):
            digest = hmac_sha256(asked.secret, asked.milliseconds + body).digest()
            return {
                "x-webhook-signature": base64.b64encode(digest).decode(),
                "x-webhook-timestamp": asked.milliseconds,
                "x-idempotency-key": asked.event,
            }

        return asked.json(headers, type="PAYMENT_SUCCESS_WEBHOOK", event_time="2026-11-05T10:00:00+05:30", data={"order": {"order_id": asked.event}})

    def verifies(self, delivery, secret):
        client = Cashfree(Cashfree.SANDBOX, "id", secret)
        signature, timestamp = delivery.header("x-webhook-signature"), delivery.header("x-webhook-timestamp")
        return holds(lambda: client.PGVerifyWebhookSignature(signature, delivery.body.decode(), timestamp))


class Workos(Sdk):
    name, provider, signs = "workos", "workos", False

    def sign(self, asked):
        def headers(body):
            signature = hmac_sha256(asked.secret, f"{asked.milliseconds}.{body}").hexdigest()
            return {"WorkOS-Signature": f"t={asked.milliseconds}, v1={signature}"}

        return asked.json(headers, id=asked.event, event="user.created", data={}, created_at="2026-11-05T10:00:00.000Z")

    def verifies(self, delivery, secret):
        signature = delivery.header("WorkOS-Signature")
        verify = WorkosWebhooks(None).verify_header
        return holds(lambda: verify(event_body=delivery.body, event_signature=signature, secret=secret) is None)


def mailgun_signature(asked):
    """The signature of an event whose token it is."""
    signature = hmac_sha256(asked.secret, asked.seconds + asked.event).hexdigest()
    return {"timestamp": asked.seconds, "token": asked.event, "signature": signature}


def mailgun_verifies(fields, secret):
    signed = {name: fields[name] for name in ("token", "timestamp", "signature")}
    return holds(lambda: MailgunGuard.verify_webhook(secret, **signed))


class Mailgun(Sdk):
    name, provider, signs = "mailgun", "mailgun", False

    def sign(self, asked):
        event = {"event": "delivered", "id": asked.event, "timestamp": asked.at, "recipient": "b@example.com"}
        return asked.json(lambda _: {}, **{"signature": mailgun_signature(asked), "event-data": event})

    def tampered(self, delivery, event):
        return delivery.tampered(f'"token": "{event}"', f'"token": "{event}X"')

    def verifies(self, delivery, secret):
        return mailgun_verifies(json.loads(delivery.body)["signature"], secret)


class MailgunForm(Sdk):
    name, provider, signs = "mailgun-form", "mailgun-form", False

    def sign(self, asked):
        fields = {"recipient": "test@inbound.example.com", "body-plain": "grüße & more", **mailgun_signature(asked)}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return Delivery(asked.path, headers, urlencode(fields).encode())

    def verifies(self, delivery, secret):
        return mailgun_verifies(dict(parse_qsl(delivery.body.decode())), secret)


SDKS = [
    Stripe(), StandardWebhooks(), Svix(), Twilio(), Slack(), Paddle(), AdyenItems(), AdyenPlatform(), Square(), Razorpay(),
    Braintree(), Sendgrid(), Discord(), Gocardless(), CoinbaseCommerce(), Hubspot(), Easypost(), CashfreePayments(), Workos(),
    Mailgun(), MailgunForm(),
]
