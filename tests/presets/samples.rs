//! One event of each sender: as it comes first, as it comes again, and what is another event.

/// Requests of one sender, each as lines of headers, a blank line and the body.
pub(crate) struct Sample {
    pub(crate) provider: &'static str,
    /// As it comes first.
    pub(crate) event: &'static str,
    /// As it comes again: a new signature and timestamp, and whatever else this sender changes.
    pub(crate) retry: &'static str,
    /// Events that share much with it and are others.
    pub(crate) siblings: &'static [&'static str],
}

pub(crate) const SAMPLES: &[Sample] = &[
    Sample {
        provider: "adyen",
        event: r#"
{"live":"false","notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"A","pspReference":"report.csv","eventCode":"REPORT_AVAILABLE","success":"true","eventDate":"1"}}]}"#,
        retry: r#"
{"live":"false","notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"A","pspReference":"report.csv","eventCode":"REPORT_AVAILABLE","success":"true","eventDate":"2"}}]}"#,
        siblings: &[
            r#"
{"live":"false","notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"B","pspReference":"report.csv","eventCode":"REPORT_AVAILABLE","success":"true","eventDate":"1"}}]}"#,
            r#"
{"live":"false","notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"A","pspReference":"report.csv","eventCode":"CAPTURE","success":"true","eventDate":"1"}}]}"#,
            r#"
{"live":"false","notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"A","pspReference":"report.csv","eventCode":"REPORT_AVAILABLE","success":"false","eventDate":"1"}}]}"#,
            r#"
{"live":"false","notificationItems":[{"NotificationRequestItem":{"merchantAccountCode":"A","pspReference":"report.csv","eventCode":"REPORT_AVAILABLE","success":"true","eventDate":"1"}},{"NotificationRequestItem":{"merchantAccountCode":"A","pspReference":"other","eventCode":"CAPTURE","success":"true","eventDate":"1"}}]}"#,
        ],
    },
    Sample {
        provider: "adyen-platform",
        event: r#"
{"type":"balancePlatform.accountHolder.created","environment":"test","timestamp":"1","data":{"id":"AH1"}}"#,
        retry: r#"
{"type":"balancePlatform.accountHolder.created","environment":"test","timestamp":"1","data":{"id":"AH1"}}"#,
        siblings: &[
            r#"
{"type":"balancePlatform.accountHolder.updated","environment":"test","timestamp":"1","data":{"id":"AH1"}}"#,
            r#"
{"type":"balancePlatform.accountHolder.created","environment":"test","timestamp":"2","data":{"id":"AH1"}}"#,
            r#"
{"eventId":"E1","type":"recurring.token.created","environment":"test"}"#,
        ],
    },
    Sample {
        provider: "authorize-net",
        event: r#"
{"notificationId":"N1","eventType":"net.authorize.payment.authcapture.created","webhookId":"W1","payload":{"id":"6"}}"#,
        retry: r#"
{"notificationId":"N1","eventType":"net.authorize.payment.authcapture.created","webhookId":"W1","payload":{"id":"6"}}"#,
        siblings: &[
            r#"
{"notificationId":"N2","eventType":"net.authorize.payment.authcapture.created","webhookId":"W1","payload":{"id":"6"}}"#,
            r#"
{"notificationId":"N1","eventType":"net.authorize.payment.authcapture.created","webhookId":"W2","payload":{"id":"6"}}"#,
        ],
    },
    Sample {
        provider: "bitbucket",
        event: r#"X-Request-UUID: R1
X-Hook-UUID: H1
X-Event-Key: repo:push
X-Attempt-Number: 1

{"push":{}}"#,
        retry: r#"X-Request-UUID: R1
X-Hook-UUID: H1
X-Event-Key: repo:push
X-Attempt-Number: 2

{"push":{}}"#,
        siblings: &[
            r#"X-Request-UUID: R2
X-Hook-UUID: H1
X-Event-Key: repo:push
X-Attempt-Number: 1

{"push":{}}"#,
            r#"X-Request-UUID: R1
X-Hook-UUID: H2
X-Event-Key: repo:push
X-Attempt-Number: 1

{"push":{}}"#,
        ],
    },
    Sample {
        provider: "braintree",
        event: r"Content-Type: application/x-www-form-urlencoded

bt_signature=p%7Ca&bt_payload=AAA",
        retry: r"Content-Type: application/x-www-form-urlencoded

bt_signature=p%7Ca&bt_payload=AAA",
        siblings: &[r"Content-Type: application/x-www-form-urlencoded

bt_signature=p%7Cb&bt_payload=BBB"],
    },
    Sample {
        provider: "chargebee",
        event: r#"
{"id":"ev_1","event_type":"invoice_generated","webhooks":[{"id":"w1","webhook_status":"scheduled"}],"content":{"invoice":{"id":"1"}}}"#,
        retry: r#"
{"id":"ev_1","event_type":"invoice_generated","webhooks":[{"id":"w1","webhook_status":"failed"}],"content":{"invoice":{"id":"1"}}}"#,
        siblings: &[r#"
{"id":"ev_2","event_type":"invoice_generated","webhooks":[{"id":"w1","webhook_status":"scheduled"}],"content":{"invoice":{"id":"1"}}}"#],
    },
    Sample {
        provider: "checkout",
        event: r#"
{"id":"evt_1","type":"payment_captured","data":{"id":"pay_1"}}"#,
        retry: r#"
{"id":"evt_1","type":"payment_captured","data":{"id":"pay_1"}}"#,
        siblings: &[r#"
{"id":"evt_2","type":"payment_captured","data":{"id":"pay_1"}}"#],
    },
    Sample {
        provider: "cloudevents",
        event: r#"ce-id: 1
ce-source: /a
ce-type: t
ce-specversion: 1.0

{"a":1}"#,
        retry: r#"ce-id: 1
ce-source: /a
ce-type: t
ce-specversion: 1.0

{"a":1}"#,
        siblings: &[
            r#"ce-id: 1
ce-source: /b
ce-type: t
ce-specversion: 1.0

{"a":1}"#,
            r#"ce-id: 2
ce-source: /a
ce-type: t
ce-specversion: 1.0

{"a":1}"#,
            r#"
{"id":"1","source":"/a","type":"t"}"#,
            r#"
[{"id":"1","source":"/a","type":"t"}]"#,
        ],
    },
    Sample {
        provider: "coinbase-commerce",
        event: r#"
{"id":1,"scheduled_for":"2026-01-01","attempt_number":1,"event":{"id":"e1","type":"charge:confirmed","data":{"id":"c1"}}}"#,
        retry: r#"
{"id":2,"scheduled_for":"2026-01-02","attempt_number":2,"event":{"id":"e1","type":"charge:confirmed","data":{"id":"c1"}}}"#,
        siblings: &[r#"
{"id":1,"scheduled_for":"2026-01-01","attempt_number":1,"event":{"id":"e2","type":"charge:confirmed","data":{"id":"c1"}}}"#],
    },
    Sample {
        provider: "discord",
        event: r#"X-Signature-Timestamp: 1

{"version":1,"application_id":"1","type":2,"event":{"type":"APPLICATION_AUTHORIZED","timestamp":"2026-01-01","data":{}}}"#,
        retry: r#"X-Signature-Timestamp: 2

{"version":1,"application_id":"1","type":2,"event":{"type":"APPLICATION_AUTHORIZED","timestamp":"2026-01-01","data":{}}}"#,
        siblings: &[r#"
{"version":1,"application_id":"1","type":2,"event":{"type":"APPLICATION_AUTHORIZED","timestamp":"2026-01-02","data":{}}}"#],
    },
    Sample {
        provider: "eventgrid",
        event: r#"aeg-event-type: Notification
aeg-delivery-count: 0

[{"id":"1","topic":"/t","subject":"s","eventType":"Blob"},{"id":"2","topic":"/t","subject":"s","eventType":"Blob"}]"#,
        retry: r#"aeg-event-type: Notification
aeg-delivery-count: 1

[{"id":"1","topic":"/t","subject":"s","eventType":"Blob"},{"id":"2","topic":"/t","subject":"s","eventType":"Blob"}]"#,
        siblings: &[
            r#"aeg-event-type: Notification
aeg-delivery-count: 0

[{"id":"1","topic":"/t","subject":"s","eventType":"Blob"}]"#,
            r#"aeg-event-type: Notification
aeg-delivery-count: 0

[{"id":"1","topic":"/t","subject":"s","eventType":"Blob"},{"id":"3","topic":"/t","subject":"s","eventType":"Blob"}]"#,
        ],
    },
    Sample {
        provider: "flutterwave",
        event: r#"verif-hash: s

{"event":"charge.completed","data":{"id":285959875,"tx_ref":"T1","status":"pending"}}"#,
        retry: r#"verif-hash: s

{"event":"charge.completed","data":{"id":285959875,"tx_ref":"T1","status":"pending"}}"#,
        siblings: &[r#"verif-hash: s

{"event":"charge.completed","data":{"id":285959875,"tx_ref":"T1","status":"successful"}}"#],
    },
    Sample {
        provider: "github",
        event: r#"X-GitHub-Delivery: G1
X-GitHub-Hook-ID: 11
X-GitHub-Event: push

{"after":"b82"}"#,
        retry: r#"X-GitHub-Delivery: G1
X-GitHub-Hook-ID: 11
X-GitHub-Event: push

{"after":"b82"}"#,
        siblings: &[
            r#"X-GitHub-Delivery: G2
X-GitHub-Hook-ID: 11
X-GitHub-Event: push

{"after":"b82"}"#,
            r#"X-GitHub-Delivery: G1
X-GitHub-Hook-ID: 22
X-GitHub-Event: push

{"installation":{"id":2}}"#,
        ],
    },
    Sample {
        provider: "gitlab",
        event: r#"Idempotency-Key: u1
X-Gitlab-Event-UUID: x
X-Gitlab-Webhook-Attempt-Number: 1
X-Gitlab-Event: Push Hook
X-Gitlab-Instance: https://gitlab.example.com

{"object_kind":"push"}"#,
        retry: r#"IDEMPOTENCY-KEY: u1
X-Gitlab-Event-UUID: y
X-Gitlab-Webhook-Attempt-Number: 2
X-Gitlab-Event: Push Hook
X-Gitlab-Instance: https://gitlab.example.com

{"object_kind":"push"}"#,
        siblings: &[r#"Idempotency-Key: u2
X-Gitlab-Event-UUID: x
X-Gitlab-Webhook-Attempt-Number: 1
X-Gitlab-Event: Push Hook
X-Gitlab-Instance: https://gitlab.example.com

{"object_kind":"push"}"#],
    },
    Sample {
        provider: "gocardless",
        event: r#"
{"events":[{"id":"EV1","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}},{"id":"EV2","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}}],"meta":{"webhook_id":"WB1"}}"#,
        retry: r#"
{"events":[{"id":"EV1","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}},{"id":"EV2","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}}],"meta":{"webhook_id":"WB1"}}"#,
        siblings: &[
            r#"
{"events":[{"id":"EV1","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}}],"meta":{"webhook_id":"WB1"}}"#,
            r#"
{"events":[{"id":"EV1","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}},{"id":"EV3","action":"confirmed","resource_type":"payments","links":{"payment":"PM1"}}],"meta":{"webhook_id":"WB1"}}"#,
        ],
    },
    Sample {
        provider: "hubspot",
        event: r#"
[{"eventId":1,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123},{"eventId":2,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123}]"#,
        retry: r#"
[{"eventId":1,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":1,"objectId":123},{"eventId":2,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":1,"objectId":123}]"#,
        siblings: &[
            r#"
[{"eventId":1,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123},{"eventId":2,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123},{"eventId":3,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123}]"#,
            r#"
[{"eventId":1,"subscriptionId":5,"portalId":7,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123}]"#,
            r#"
[{"eventId":1,"subscriptionId":5,"portalId":8,"occurredAt":10,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123}]"#,
        ],
    },
    Sample {
        provider: "intercom",
        event: r#"
{"type":"notification_event","id":"notif_1","app_id":"a1","topic":"contact.created","delivery_attempts":1,"data":{"item":{"id":"c1"}}}"#,
        retry: r#"
{"type":"notification_event","id":"notif_1","app_id":"a1","topic":"contact.created","delivery_attempts":2,"data":{"item":{"id":"c1"}}}"#,
        siblings: &[r#"
{"type":"notification_event","id":"notif_2","app_id":"a1","topic":"contact.created","delivery_attempts":1,"data":{"item":{"id":"c1"}}}"#],
    },
    Sample {
        provider: "klarna",
        event: r#"
{"metadata":{"event_id":"e1","event_type":"payment.request.state-change.completed"},"payload":{"id":"p1"}}"#,
        retry: r#"
{"metadata":{"event_id":"e1","event_type":"payment.request.state-change.completed"},"payload":{"id":"p1"}}"#,
        siblings: &[r#"
{"metadata":{"event_id":"e2","event_type":"payment.request.state-change.completed"},"payload":{"id":"p1"}}"#],
    },
    Sample {
        provider: "lemonsqueezy",
        event: r#"X-Event-Name: subscription_updated

{"meta":{"event_name":"subscription_updated"},"data":{"type":"subscriptions","id":"1","attributes":{"updated_at":"1"}}}"#,
        retry: r#"X-Event-Name: subscription_updated

{"meta":{"event_name":"subscription_updated"},"data":{"type":"subscriptions","id":"1","attributes":{"updated_at":"1"}}}"#,
        siblings: &[
            r#"X-Event-Name: subscription_updated

{"meta":{"event_name":"subscription_updated"},"data":{"type":"subscriptions","id":"1","attributes":{"updated_at":"2"}}}"#,
            r#"X-Event-Name: subscription_created

{"meta":{"event_name":"subscription_created"},"data":{"type":"subscriptions","id":"1","attributes":{"updated_at":"1"}}}"#,
        ],
    },
    Sample {
        provider: "linear",
        event: r#"Linear-Delivery: d1
Linear-Event: Issue

{"action":"update","type":"Issue","organizationId":"o1","webhookTimestamp":1,"webhookId":"w1","data":{"id":"i1"}}"#,
        retry: r#"Linear-Delivery: d1
Linear-Event: Issue

{"action":"update","type":"Issue","organizationId":"o1","webhookTimestamp":2,"webhookId":"w1","data":{"id":"i1"}}"#,
        siblings: &[r#"Linear-Delivery: d2
Linear-Event: Issue

{"action":"update","type":"Issue","organizationId":"o1","webhookTimestamp":1,"webhookId":"w1","data":{"id":"i1"}}"#],
    },
    Sample {
        provider: "mailgun",
        event: r#"
{"signature":{"token":"t1","timestamp":"1","signature":"s"},"event-data":{"id":"e1","event":"opened","message":{"headers":{"message-id":"m"}}}}"#,
        retry: r#"
{"signature":{"token":"t2","timestamp":"1","signature":"s"},"event-data":{"id":"e1","event":"opened","message":{"headers":{"message-id":"m"}}}}"#,
        siblings: &[r#"
{"signature":{"token":"t1","timestamp":"1","signature":"s"},"event-data":{"id":"e2","event":"opened","message":{"headers":{"message-id":"m"}}}}"#],
    },
    Sample {
        provider: "meta",
        event: r#"
{"object":"whatsapp_business_account","entry":[{"id":"W1","changes":[{"field":"messages","value":{"messages":[{"id":"wamid.1"}]}}]}]}"#,
        retry: r#"
{"object":"whatsapp_business_account","entry":[{"id":"W1","changes":[{"field":"messages","value":{"messages":[{"id":"wamid.1"}]}}]}]}"#,
        siblings: &[r#"
{"object":"whatsapp_business_account","entry":[{"id":"W1","changes":[{"field":"messages","value":{"messages":[{"id":"wamid.2"}]}}]}]}"#],
    },
    Sample {
        provider: "mollie",
        event: r#"
{"resource":"event","id":"event_1","type":"payment-link.paid","entityId":"pl_1"}"#,
        retry: r#"
{"resource":"event","id":"event_1","type":"payment-link.paid","entityId":"pl_1"}"#,
        siblings: &[r#"
{"resource":"event","id":"event_2","type":"payment-link.paid","entityId":"pl_1"}"#],
    },
    Sample {
        provider: "mollie-classic",
        event: r"Content-Type: application/x-www-form-urlencoded

id=tr_1",
        retry: r"Content-Type: application/x-www-form-urlencoded

id=tr_1",
        siblings: &[r"Content-Type: application/x-www-form-urlencoded

id=tr_2"],
    },
    Sample {
        provider: "msgraph",
        event: r#"
{"value":[{"id":"n1","subscriptionId":"s1","changeType":"updated","resource":"r","clientState":"c"}]}"#,
        retry: r#"
{"value":[{"id":"n1","subscriptionId":"s1","changeType":"updated","resource":"r","clientState":"c"}]}"#,
        siblings: &[
            r#"
{"value":[{"id":"n2","subscriptionId":"s1","changeType":"updated","resource":"r","clientState":"c"}]}"#,
            r#"
{"value":[{"id":"n1","subscriptionId":"s1","changeType":"updated","resource":"r","clientState":"c"},{"id":"n2","subscriptionId":"s1","changeType":"updated","resource":"r","clientState":"c"}]}"#,
        ],
    },
    Sample {
        provider: "paddle",
        event: r#"Paddle-Signature: ts=1;h1=a

{"event_id":"evt_1","event_type":"transaction.paid","notification_id":"ntf_1","data":{"id":"txn_1"}}"#,
        retry: r#"Paddle-Signature: ts=2;h1=b

{"event_id":"evt_1","event_type":"transaction.paid","notification_id":"ntf_2","data":{"id":"txn_1"}}"#,
        siblings: &[r#"
{"event_id":"evt_2","event_type":"transaction.paid","notification_id":"ntf_1","data":{"id":"txn_1"}}"#],
    },
    Sample {
        provider: "paypal",
        event: r#"PAYPAL-TRANSMISSION-ID: a

{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"3C6"}}"#,
        retry: r#"PAYPAL-TRANSMISSION-ID: b

{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"3C6"}}"#,
        siblings: &[r#"PAYPAL-TRANSMISSION-ID: a

{"id":"WH-2","event_type":"PAYMENT.CAPTURE.REFUNDED","resource":{"id":"3C6"}}"#],
    },
    Sample {
        provider: "paystack",
        event: r#"
{"event":"charge.success","data":{"id":302961,"reference":"qTPrJoy9Bx","status":"success"}}"#,
        retry: r#"
{"event":"charge.success","data":{"id":302961,"reference":"qTPrJoy9Bx","status":"success"}}"#,
        siblings: &[r#"
{"event":"refund.processed","data":{"id":302961,"reference":"qTPrJoy9Bx","status":"success"}}"#],
    },
    Sample {
        provider: "postmark",
        event: r#"
{"RecordType":"Open","MessageID":"m1","Recipient":"a@example.com","ReceivedAt":"1","ServerID":23}"#,
        retry: r#"
{"RecordType":"Open","MessageID":"m1","Recipient":"a@example.com","ReceivedAt":"1","ServerID":23}"#,
        siblings: &[
            r#"
{"RecordType":"Open","MessageID":"m1","Recipient":"a@example.com","ReceivedAt":"2","ServerID":23}"#,
            r#"
{"RecordType":"Open","MessageID":"m1","Recipient":"b@example.com","ReceivedAt":"1","ServerID":23}"#,
            r#"
{"RecordType":"Delivery","MessageID":"m1","Recipient":"a@example.com","DeliveredAt":"1","ServerID":23}"#,
            r#"
{"MessageID":"m1","From":"a@example.com"}"#,
        ],
    },
    Sample {
        provider: "pubsub",
        event: r#"
{"message":{"messageId":"1","data":"e30="},"subscription":"projects/p/subscriptions/s","deliveryAttempt":1}"#,
        retry: r#"
{"message":{"messageId":"1","data":"e30="},"subscription":"projects/p/subscriptions/s","deliveryAttempt":2}"#,
        siblings: &[
            r#"
{"message":{"messageId":"2","data":"e30="},"subscription":"projects/p/subscriptions/s","deliveryAttempt":1}"#,
            r#"
{"message":{"messageId":"1","data":"e30="},"subscription":"projects/p/subscriptions/t","deliveryAttempt":1}"#,
        ],
    },
    Sample {
        provider: "razorpay",
        event: r#"x-razorpay-event-id: E1

{"account_id":"acc_1","event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1"}}}}"#,
        retry: r#"X-Razorpay-Event-Id: E1

{"account_id":"acc_1","event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1"}}}}"#,
        siblings: &[
            r#"x-razorpay-event-id: E2

{"account_id":"acc_1","event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1"}}}}"#,
            r#"x-razorpay-event-id: E1

{"account_id":"acc_2","event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1"}}}}"#,
        ],
    },
    Sample {
        provider: "recurly",
        event: r#"Recurly-Signature: 1,a

{"id":"obj_1","object_type":"account","site_id":"s1","event_type":"updated","event_time":"2026-01-01T00:00:00Z"}"#,
        retry: r#"Recurly-Signature: 2,b

{"id":"obj_1","object_type":"account","site_id":"s1","event_type":"updated","event_time":"2026-01-01T00:00:00Z"}"#,
        siblings: &[
            r#"
{"id":"obj_1","object_type":"account","site_id":"s1","event_type":"updated","event_time":"2026-01-02T00:00:00Z"}"#,
            r#"
{"id":"obj_1","object_type":"account","site_id":"s1","event_type":"closed","event_time":"2026-01-01T00:00:00Z"}"#,
        ],
    },
    Sample {
        provider: "sendgrid",
        event: r#"X-Twilio-Email-Event-Webhook-Timestamp: 1

[{"sg_event_id":"a","event":"delivered","sg_message_id":"m1"},{"sg_event_id":"b","event":"delivered","sg_message_id":"m1"}]"#,
        retry: r#"X-Twilio-Email-Event-Webhook-Timestamp: 2

[{"sg_event_id":"a","event":"delivered","sg_message_id":"m1"},{"sg_event_id":"b","event":"delivered","sg_message_id":"m1"}]"#,
        siblings: &[
            r#"
[{"sg_event_id":"a","event":"delivered","sg_message_id":"m1"}]"#,
            r#"
[{"sg_event_id":"a","event":"delivered","sg_message_id":"m1"},{"sg_event_id":"c","event":"delivered","sg_message_id":"m1"}]"#,
        ],
    },
    Sample {
        provider: "shopify",
        event: r#"X-Shopify-Webhook-Id: W1
X-Shopify-Event-Id: E1
X-Shopify-Topic: orders/create
X-Shopify-Shop-Domain: a.example

{"id":820982911946154508}"#,
        retry: r#"X-Shopify-Webhook-Id: W1
X-Shopify-Event-Id: E1
X-Shopify-Topic: orders/create
X-Shopify-Shop-Domain: a.example

{"id":820982911946154508}"#,
        siblings: &[
            r#"X-Shopify-Webhook-Id: W2
X-Shopify-Event-Id: E1
X-Shopify-Topic: orders/paid
X-Shopify-Shop-Domain: a.example

{"id":820982911946154508}"#,
            r#"X-Shopify-Webhook-Id: W2
X-Shopify-Event-Id: E1
X-Shopify-Topic: orders/create
X-Shopify-Shop-Domain: a.example

{"id":820982911946154508}"#,
            r#"X-Shopify-Webhook-Id: W1
X-Shopify-Event-Id: E1
X-Shopify-Topic: orders/create
X-Shopify-Shop-Domain: b.example

{"id":820982911946154508}"#,
        ],
    },
    Sample {
        provider: "slack",
        event: r#"X-Slack-Request-Timestamp: 1

{"type":"event_callback","api_app_id":"A1","team_id":"T1","event_id":"Ev1","event":{"type":"message","ts":"1.2"}}"#,
        retry: r#"X-Slack-Request-Timestamp: 2
X-Slack-Retry-Num: 1

{"type":"event_callback","api_app_id":"A1","team_id":"T1","event_id":"Ev1","event":{"type":"message","ts":"1.2"}}"#,
        siblings: &[
            r#"
{"type":"event_callback","api_app_id":"A1","team_id":"T1","event_id":"Ev2","event":{"type":"message","ts":"1.2"}}"#,
            r#"
{"type":"event_callback","api_app_id":"A1","team_id":"T2","event_id":"Ev1","event":{"type":"message","ts":"1.2"}}"#,
        ],
    },
    Sample {
        provider: "sns",
        event: r#"x-amz-sns-message-type: Notification
x-amz-sns-message-id: m1
x-amz-sns-topic-arn: arn:t
x-amz-sns-subscription-arn: arn:s1
Content-Type: text/plain; charset=UTF-8

{"Type":"Notification","MessageId":"m1"}"#,
        retry: r#"x-amz-sns-message-type: Notification
x-amz-sns-message-id: m1
x-amz-sns-topic-arn: arn:t
x-amz-sns-subscription-arn: arn:s1
Content-Type: text/plain; charset=UTF-8

{"Type":"Notification","MessageId":"m1"}"#,
        siblings: &[
            r#"x-amz-sns-message-type: Notification
x-amz-sns-message-id: m2
x-amz-sns-topic-arn: arn:t
x-amz-sns-subscription-arn: arn:s1
Content-Type: text/plain; charset=UTF-8

{"Type":"Notification","MessageId":"m2"}"#,
            r#"x-amz-sns-message-type: Notification
x-amz-sns-message-id: m1
x-amz-sns-topic-arn: arn:t
x-amz-sns-subscription-arn: arn:s2
Content-Type: text/plain; charset=UTF-8

{"Type":"Notification","MessageId":"m1"}"#,
        ],
    },
    Sample {
        provider: "square",
        event: r#"square-retry-number: 0

{"merchant_id":"M1","type":"payment.updated","event_id":"E1","data":{"id":"P1"}}"#,
        retry: r#"square-retry-number: 1

{"merchant_id":"M1","type":"payment.updated","event_id":"E1","data":{"id":"P1"}}"#,
        siblings: &[
            r#"
{"merchant_id":"M1","type":"payment.updated","event_id":"E2","data":{"id":"P1"}}"#,
            r#"
{"merchant_id":"M2","type":"payment.updated","event_id":"E1","data":{"id":"P1"}}"#,
        ],
    },
    Sample {
        provider: "standard-webhooks",
        event: r#"webhook-id: msg_1
webhook-timestamp: 1
webhook-signature: v1,a

{"type":"user.created","data":{"id":"u1"}}"#,
        retry: r#"webhook-id: msg_1
webhook-timestamp: 2
webhook-signature: v1,a

{"type":"user.created","data":{"id":"u1"}}"#,
        siblings: &[r#"webhook-id: msg_2
webhook-timestamp: 1
webhook-signature: v1,a

{"type":"user.created","data":{"id":"u1"}}"#],
    },
    Sample {
        provider: "stripe",
        event: r#"Stripe-Signature: t=1,v1=aa

{"id":"evt_1","type":"charge.succeeded","pending_webhooks":2,"request":{"id":"req_9"},"data":{"object":{"id":"ch_1"}}}"#,
        retry: r#"Stripe-Signature: t=2,v1=bb

{"id":"evt_1","type":"charge.succeeded","pending_webhooks":1,"request":{"id":"req_9"},"data":{"object":{"id":"ch_1"}}}"#,
        siblings: &[
            r#"
{"id":"evt_2","type":"charge.updated","request":{"id":"req_9"},"data":{"object":{"id":"ch_1"}}}"#,
            r#"
{"id":"evt_1","type":"charge.succeeded","account":"acct_2"}"#,
        ],
    },
    Sample {
        provider: "stripe-thin",
        event: r#"
{"id":"evt_1","type":"v1.billing.meter.error","object":"v2.core.event","related_object":{"id":"mtr_1"}}"#,
        retry: r#"
{"id":"evt_1","type":"v1.billing.meter.error","object":"v2.core.event","related_object":{"id":"mtr_1"}}"#,
        siblings: &[r#"
{"id":"evt_2","type":"v1.billing.meter.error","object":"v2.core.event","related_object":{"id":"mtr_1"}}"#],
    },
    Sample {
        provider: "svix",
        event: r#"svix-id: msg_1
svix-timestamp: 1
svix-signature: v1,a

{"type":"user.created","data":{"id":"u1"}}"#,
        retry: r#"svix-id: msg_1
svix-timestamp: 2
svix-signature: v1,a

{"type":"user.created","data":{"id":"u1"}}"#,
        siblings: &[r#"svix-id: msg_2
svix-timestamp: 1
svix-signature: v1,a

{"type":"user.created","data":{"id":"u1"}}"#],
    },
    Sample {
        provider: "twilio",
        event: r"Content-Type: application/x-www-form-urlencoded
I-Twilio-Idempotency-Token: k1

AccountSid=AC1&MessageSid=SM1&MessageStatus=sent",
        retry: r"Content-Type: application/x-www-form-urlencoded
I-Twilio-Idempotency-Token: k1

AccountSid=AC1&MessageSid=SM1&MessageStatus=sent",
        siblings: &[
            r"Content-Type: application/x-www-form-urlencoded
I-Twilio-Idempotency-Token: k2

AccountSid=AC1&MessageSid=SM1&MessageStatus=delivered",
            r"Content-Type: application/x-www-form-urlencoded

AccountSid=AC1&MessageSid=SM1&MessageStatus=delivered",
        ],
    },
    Sample {
        provider: "twitch",
        event: r#"Twitch-Eventsub-Message-Id: m1
Twitch-Eventsub-Message-Type: notification
Twitch-Eventsub-Subscription-Type: channel.follow
Twitch-Eventsub-Message-Timestamp: 1

{"subscription":{"id":"s1"},"event":{}}"#,
        retry: r#"Twitch-Eventsub-Message-Id: m1
Twitch-Eventsub-Message-Type: notification
Twitch-Eventsub-Subscription-Type: channel.follow
Twitch-Eventsub-Message-Timestamp: 2

{"subscription":{"id":"s1"},"event":{}}"#,
        siblings: &[r#"Twitch-Eventsub-Message-Id: m2
Twitch-Eventsub-Message-Type: notification
Twitch-Eventsub-Subscription-Type: channel.follow
Twitch-Eventsub-Message-Timestamp: 1

{"subscription":{"id":"s1"},"event":{}}"#],
    },
    Sample {
        provider: "woocommerce",
        event: r#"X-WC-Webhook-Source: https://shop.example/
X-WC-Webhook-ID: 3
X-WC-Webhook-Topic: order.updated
X-WC-Webhook-Delivery-ID: d1

{"id":7}"#,
        retry: r#"X-WC-Webhook-Source: https://shop.example/
X-WC-Webhook-ID: 3
X-WC-Webhook-Topic: order.updated
X-WC-Webhook-Delivery-ID: d1

{"id":7}"#,
        siblings: &[
            r#"X-WC-Webhook-Source: https://shop.example/
X-WC-Webhook-ID: 3
X-WC-Webhook-Topic: order.updated
X-WC-Webhook-Delivery-ID: d1

{"id":8}"#,
            r#"X-WC-Webhook-Source: https://shop.example/
X-WC-Webhook-ID: 3
X-WC-Webhook-Topic: order.updated
X-WC-Webhook-Delivery-ID: d2

{"id":7}"#,
            r#"X-WC-Webhook-Source: https://shop.example/
X-WC-Webhook-ID: 4
X-WC-Webhook-Topic: order.updated
X-WC-Webhook-Delivery-ID: d1

{"id":7}"#,
        ],
    },
    Sample {
        provider: "worldpay",
        event: r#"
{"eventId":"E1","eventDetails":{"type":"sentForSettlement","transactionReference":"T1"}}"#,
        retry: r#"
{"eventId":"E1","eventDetails":{"type":"sentForSettlement","transactionReference":"T1"}}"#,
        siblings: &[r#"
{"eventId":"E2","eventDetails":{"type":"sentForSettlement","transactionReference":"T1"}}"#],
    },
    Sample {
        provider: "zendesk",
        event: r#"X-Zendesk-Webhook-Invocation-Id: 01A
X-Zendesk-Webhook-Id: W1

{"type":"zen:event-type:ticket.created","detail":{"id":"1"}}"#,
        retry: r#"X-Zendesk-Webhook-Invocation-Id: 01A
X-Zendesk-Webhook-Id: W1

{"type":"zen:event-type:ticket.created","detail":{"id":"1"}}"#,
        siblings: &[r#"X-Zendesk-Webhook-Invocation-Id: 01B
X-Zendesk-Webhook-Id: W1

{"type":"zen:event-type:ticket.created","detail":{"id":"1"}}"#],
    },
    Sample {
        provider: "zoom",
        event: r#"x-zm-request-timestamp: 1

{"event":"meeting.started","payload":{"account_id":"a1","object":{"id":"123"}},"event_ts":1626230691572}"#,
        retry: r#"x-zm-request-timestamp: 2

{"event":"meeting.started","payload":{"account_id":"a1","object":{"id":"123"}},"event_ts":1626230691572}"#,
        siblings: &[r#"
{"event":"meeting.started","payload":{"account_id":"a1","object":{"id":"123"}},"event_ts":1626230691573}"#],
    },
];
