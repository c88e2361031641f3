"""notify_server.py FOLDER: a server on loopback that a run's end is posted to. Writes its port to FOLDER/port; each request is a line of
JSON in FOLDER/got. FOLDER/does, read for each: a status (500), or hang, close, redirect; 200 where there is none."""
import http.server
import json
import os
import sys
import threading

FOLDER = sys.argv[1]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        with open(f"{FOLDER}/got", "a") as to:
            to.write(json.dumps({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}) + "\n")
        try:
            does = open(f"{FOLDER}/does").read().strip()
        except FileNotFoundError:
            does = "200"
        if does == "hang":
            threading.Event().wait(60)
        if does in ("hang", "close"):
            self.close_connection = True
            return
        self.send_response(307 if does == "redirect" else int(does))
        if does == "redirect":
            self.send_header("Location", self.path + "-elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(f"{FOLDER}/port.new", "w") as port:
    port.write(str(server.server_port))
os.rename(f"{FOLDER}/port.new", f"{FOLDER}/port")
server.serve_forever()
