# SPDX-License-Identifier: Apache-2.0
"""An HTTP server with a thread for each connection, which labels what it does."""

import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import labels


def work():
    """What a request does."""
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with labels.scope(tenant=self.headers.get("X-Tenant", "unknown"), route=self.path.split("?")[0]):
            work()
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"done\n")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # without asking for the name of this host
        self.server_name, self.server_port = self.server_address


if __name__ == "__main__":
    labels.describe(service="shop")
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Handler)
    print("listening on", server.server_port, flush=True)
    server.serve_forever()
