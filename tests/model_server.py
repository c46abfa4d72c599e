"""A model behind an OpenAI-compatible endpoint on this machine, that says what a test says."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Whatever the test says of a body: a status and a text."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        status, text = self.server.says(body)
        content = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(says):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as one:
        one.asked, one.says = [], says
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def flags(server, *more):
    return ("--interpreter", f"http://127.0.0.1:{server.server_port}/v1", "--model", "m", *more)
