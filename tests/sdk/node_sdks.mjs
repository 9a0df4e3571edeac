// The libraries on npm. Reads one JSON object a line and answers each with one.
//
//   {"sdk", "do": "sign", "path", "url", "event", "secret", "at"}   -> {"headers", "body"}
//   {"sdk", "do": "verify", "headers", "body", "url", "secret"}     -> {"valid"}

import { createHash, createHmac } from "node:crypto";
import { createInterface } from "node:readline";
import adyen from "@adyen/api-library";
import { EventCallbackHelper, EventCallbackRequest } from "@dropbox/sign";
import { LinearWebhookClient } from "@linear/sdk/webhooks";
import Mux from "@mux/mux-node";
import { sign as githubSigns, verify as githubVerifies } from "@octokit/webhooks-methods";
import { Paddle } from "@paddle/paddle-node-sdk";
import { ApiVersion, shopifyApi } from "@shopify/shopify-api";
import "@shopify/shopify-api/adapters/node";
import { createWorkOS } from "@workos-inc/node";
import { Env, StandardCheckoutClient } from "pg-sdk-node";
import razorpay from "razorpay";
import { WebhooksHelper } from "square";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";
import twilio from "twilio";

const JSON_TYPE = { "Content-Type": "application/json" };
const seconds = (asked) => String(Math.floor(asked.at));
const milliseconds = (asked) => String(Math.floor(asked.at * 1000));
const hmac = (secret, text, encoding) => createHmac("sha256", secret).update(text).digest(encoding);

/** A delivery of a JSON body; `headers` is given its text. */
async function json(members, headers) {
  const body = JSON.stringify(members);
  return { headers: { ...JSON_TYPE, ...(await headers(body)) }, body };
}

/** Svix and Standard Webhooks: the same scheme under two families of headers. */
function standard(Library, family) {
  return {
    sign: (asked) =>
      json({ type: "user.created", data: { id: asked.event } }, (body) => ({
        [`${family}-id`]: asked.event,
        [`${family}-timestamp`]: seconds(asked),
        [`${family}-signature`]: new Library(asked.secret).sign(asked.event, new Date(Number(seconds(asked)) * 1000), body),
      })),
    verify: ({ headers, body, secret }) => Boolean(new Library(secret).verify(body, headers)),
  };
}

const adyenItem = (asked) => ({
  additionalData: {},
  amount: { currency: "EUR", value: 1000 },
  eventCode: "AUTHORISATION",
  eventDate: "2026-11-05T10:00:00+01:00",
  merchantAccountCode: "ShopECOM",
  merchantReference: "order:1",
  pspReference: asked.event,
  success: "true",
});

const BOUNDARY = "boundary-of-the-tests";

/** A form of one field, as Dropbox Sign sends it. */
const form = (name, value) => ({
  headers: { "Content-Type": `multipart/form-data; boundary=${BOUNDARY}` },
  body: `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n--${BOUNDARY}--\r\n`,
});

const shopify = (secret) =>
  shopifyApi({
    apiKey: "key",
    apiSecretKey: secret,
    apiVersion: Object.values(ApiVersion).at(-1),
    hostName: "hooks.example.com",
    isEmbeddedApp: false,
    logger: { log: () => {} },
  });

const SDKS = {
  "node-stripe": {
    sign: (asked) =>
      json({ id: asked.event, object: "event", type: "charge.succeeded", api_version: "2026-01-28", data: { object: {} } }, (payload) => ({
        "Stripe-Signature": new Stripe("sk_test_1").webhooks.generateTestHeaderString({
          payload,
          secret: asked.secret,
          timestamp: Math.floor(asked.at),
        }),
      })),
    verify: ({ headers, body, secret }) =>
      Boolean(new Stripe("sk_test_1").webhooks.constructEvent(body, headers["stripe-signature"], secret)),
  },
  "node-standardwebhooks": standard(StandardWebhook, "webhook"),
  "node-svix": standard(SvixWebhook, "svix"),
  "node-github": {
    sign: (asked) =>
      json({ action: "opened", delivery: asked.event }, async (body) => ({
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": asked.event,
        "X-Hub-Signature-256": await githubSigns(asked.secret, body),
      })),
    verify: ({ headers, body, secret }) => githubVerifies(secret, body, headers["x-hub-signature-256"]),
  },
  "node-twilio": {
    sign: (asked) => {
      const fields = { AccountSid: "AC1", MessageSid: asked.event, MessageStatus: "sent", Body: "grüße & more" };
      return {
        headers: {
          "Content-Type": "application/x-www-form-urlencoded",
          "I-Twilio-Idempotency-Token": asked.event,
          "X-Twilio-Signature": twilio.getExpectedTwilioSignature(asked.secret, asked.url, fields),
        },
        body: new URLSearchParams(fields).toString(),
      };
    },
    verify: ({ headers, body, url, secret }) =>
      twilio.validateRequest(secret, headers["x-twilio-signature"], url, Object.fromEntries(new URLSearchParams(body))),
  },
  "node-adyen": {
    sign: (asked) => {
      const item = adyenItem(asked);
      item.additionalData.hmacSignature = new adyen.hmacValidator().calculateHmac(item, asked.secret);
      return json({ live: "false", notificationItems: [{ NotificationRequestItem: item }] }, () => ({}));
    },
    verify: ({ body, secret }) =>
      new adyen.hmacValidator().validateHMAC(JSON.parse(body).notificationItems[0].NotificationRequestItem, secret),
  },
  "node-square": {
    sign: (asked) =>
      json({ merchant_id: "M1", type: "payment.updated", event_id: asked.event, data: {} }, (body) => ({
        "x-square-hmacsha256-signature": hmac(asked.secret, asked.url + body, "base64"),
      })),
    verify: ({ headers, body, url, secret }) =>
      WebhooksHelper.verifySignature({
        requestBody: body,
        signatureHeader: headers["x-square-hmacsha256-signature"],
        signatureKey: secret,
        notificationUrl: url,
      }),
  },
  "node-shopify": {
    sign: (asked) =>
      json({ id: 1, note: asked.event }, (body) => ({
        "X-Shopify-Topic": "orders/create",
        "X-Shopify-Shop-Domain": "shop.example.com",
        "X-Shopify-API-Version": "2026-10",
        "X-Shopify-Webhook-Id": asked.event,
        "X-Shopify-Hmac-Sha256": hmac(asked.secret, body, "base64"),
      })),
    verify: async ({ headers, body, secret }) =>
      (await shopify(secret).webhooks.validate({ rawBody: body, rawRequest: { method: "POST", url: "/", headers } })).valid,
  },
  "node-linear": {
    sign: (asked) =>
      json({ action: "create", type: "Issue", organizationId: "o1", data: { id: asked.event }, webhookTimestamp: Number(milliseconds(asked)) }, (body) => ({
        "Linear-Delivery": asked.event,
        "Linear-Event": "Issue",
        "Linear-Signature": hmac(asked.secret, body, "hex"),
      })),
    verify: ({ headers, body, secret }) =>
      new LinearWebhookClient(secret).verify(Buffer.from(body), headers["linear-signature"], JSON.parse(body).webhookTimestamp),
  },
  "node-mux": {
    sign: (asked) =>
      json({ type: "video.asset.ready", object: { type: "asset", id: "a1" }, id: asked.event, data: { id: "a1" }, attempts: [] }, (body) => ({
        "Mux-Signature": `t=${seconds(asked)},v1=${hmac(asked.secret, `${seconds(asked)}.${body}`, "hex")}`,
      })),
    verify: async ({ headers, body, secret }) => {
      await new Mux({ tokenId: "id", tokenSecret: "secret" }).webhooks.verifySignature(body, headers, secret);
      return true;
    },
  },
  "node-paddle": {
    sign: (asked) =>
      json({ event_id: asked.event, event_type: "transaction.completed", notification_id: "ntf_1", data: {} }, (body) => ({
        "Paddle-Signature": `ts=${seconds(asked)};h1=${hmac(asked.secret, `${seconds(asked)}:${body}`, "hex")}`,
      })),
    verify: ({ headers, body, secret }) => new Paddle("key").webhooks.isSignatureValid(body, secret, headers["paddle-signature"]),
  },
  "node-razorpay": {
    sign: (asked) =>
      json({ entity: "event", account_id: "acc_1", event: "payment.captured", payload: { id: asked.event } }, (body) => ({
        "x-razorpay-event-id": asked.event,
        "X-Razorpay-Signature": hmac(asked.secret, body, "hex"),
      })),
    verify: ({ headers, body, secret }) => razorpay.validateWebhookSignature(body, headers["x-razorpay-signature"], secret),
  },
  "node-workos": {
    sign: (asked) =>
      json({ id: asked.event, event: "user.created", data: {}, created_at: "2026-11-05T10:00:00.000Z" }, (body) => ({
        "WorkOS-Signature": `t=${milliseconds(asked)}, v1=${hmac(asked.secret, `${milliseconds(asked)}.${body}`, "hex")}`,
      })),
    verify: ({ headers, body, secret }) =>
      createWorkOS({ clientId: "client" }).webhooks.verifyHeader({ payload: JSON.parse(body), sigHeader: headers["workos-signature"], secret }),
  },
  "node-dropbox-sign": {
    sign: (asked) => {
      const event = { event_time: seconds(asked), event_type: asked.event, event_metadata: { reported_for_account_id: "a1" } };
      event.event_hash = hmac(asked.secret, event.event_time + event.event_type, "hex");
      return form("json", JSON.stringify({ event, signature_request: { signature_request_id: "r1" } }));
    },
    verify: ({ body, secret }) => {
      const json = body.split("\r\n\r\n")[1].split(`\r\n--${BOUNDARY}`)[0];
      return EventCallbackHelper.isValid(secret, EventCallbackRequest.init(JSON.parse(json)));
    },
  },
  "node-phonepe": {
    sign: (asked) =>
      json({ event: "checkout.order.completed", payload: { orderId: asked.event, state: "COMPLETED" } }, () => ({
        Authorization: createHash("sha256").update(asked.secret).digest("hex"),
      })),
    verify: ({ headers, body, secret }) => {
      const client = StandardCheckoutClient.getInstance("id", "secret", 1, Env.SANDBOX, false);
      return Boolean(client.validateCallback(...secret.split(":"), headers.authorization, body));
    },
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const sdk = SDKS[asked.sdk];
  let answer;
  if (asked.do === "sign") {
    answer = await sdk.sign(asked);
  } else {
    try {
      answer = { valid: Boolean(await sdk.verify(asked)) };
    } catch (error) {
      answer = { valid: false, why: String(error) };
    }
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
