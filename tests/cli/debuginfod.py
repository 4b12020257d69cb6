#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""debuginfod.py FOLDER LOG: a server of FOLDER/BUILDID/debuginfo (and executable) on a free
port of 127.0.0.1, which it prints; writes the paths that are asked for into LOG. The first
part of a path is how it answers: plain; garbage: sends something else; cut: half of what it
announced; slow: a trickle; silent: takes the question and never answers."""
import http.server
import os
import sys
import time

FOLDER, LOG = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        with open(LOG, "a") as log:
            print(self.path, file=log)
        mode, first, *rest = self.path.strip("/").split("/")
        file = os.path.join(FOLDER, *rest)
        data = b""
        if mode == "silent":
            time.sleep(600)
        if mode == "garbage":
            data = b"\x7fELF garbage" * 1000
        elif first == "buildid" and os.path.isfile(file):
            with open(file, "rb") as content:
                data = content.read()
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if mode == "cut":
            data = data[: len(data) // 2]
            self.close_connection = True
        step = 200 if mode == "slow" else len(data) + 1
        for at in range(0, len(data), step):
            self.wfile.write(data[at : at + step])
            self.wfile.flush()
            if mode == "slow":
                time.sleep(0.5)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
