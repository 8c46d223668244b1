"""A server on this machine that misbehaves on request."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Serves ``body`` at every path, or what ``paths`` has for it.

    ``behaviour`` is a list of words, one for each request to come: a status code, redirect, cut, no-range,
    hang, elsewhere, endless; without one the request is answered well.
    """

    def __init__(self, body, context=None):
        self.body = body
        self.behaviour = []
        self.ranges = []
        self.paths = {}
        self.release = threading.Event()
        self.redirect_to = ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked = self.headers.get("Range")
                outer.ranges.append(asked)
                how = outer.behaviour.pop(0) if outer.behaviour else "well"
                if how.isdecimal():
                    return self.send_error(int(how))
                if how == "redirect":
                    self.send_response(302)
                    self.send_header("Location", outer.redirect_to)
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                start = int(asked[6:-1]) if asked and how != "no-range" else 0
                whole = outer.paths.get(self.path, outer.body)
                body = whole[start:]
                self.send_response(206 if start else 200)
                if start:
                    shown = start + 1 if how == "elsewhere" else start
                    self.send_header("Content-Range", f"bytes {shown}-{len(whole) - 1}/{len(whole)}")
                if how == "endless":
                    self.send_header("Connection", "close")
                else:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.close_connection = True
                self.wfile.write(body[: len(body) // 2] if how in ("cut", "hang") else body)
                if how == "hang":
                    outer.release.wait(20)
                return None

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.http.server_port}/file"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.release.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()
