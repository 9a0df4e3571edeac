"""A receiver of webhooks, once for WSGI and once for ASGI.

It reads what it gets and says 200. Below `/hooks/early` it says 413 and reads nothing.
"""


def wsgi(environ, start_response):
    if environ["PATH_INFO"].startswith("/hooks/early"):
        status, body = "413 Content Too Large", b"too large"
    else:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, body = "200 OK", b"ok"
    start_response(status, [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"].startswith("/hooks/early"):
        status, body = 413, b"too large"
    else:
        while (await receive()).get("more_body"):
            pass
        status, body = 200, b"ok"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
