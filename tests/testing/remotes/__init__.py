"""Places that models come from, on this machine: the Hugging Face Hub, S3, Google's buckets, the web.

    with Remote() as remote:
        remote.add_hub("acme/minilm", {"model.onnx": data, "config.json": b"{}"}, lfs={"model.onnx"})
        remote.add_bucket("acme", {"models/minilm/model.onnx": data})
        remote.add_file("/models/minilm.tar.gz", archive)
        environment = remote.environment()      # variables for their tools; programs ask this server then
        remote.requests                         # the requests so far: Request(method, path, headers)

Signatures of S3 and of Google's accounts are computed here by the definitions of the two, not by the code under
test. huggingface_hub takes its files from it as well (test_fetch.py); boto3 and google-cloud-storage were tried by hand.
"""

import base64
import dataclasses
import hashlib
import hmac
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclasses.dataclass
class Request:
    method: str
    path: str  # with its query
    headers: dict  # names in lower case
    status: int = 0


def git_digest(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def etag(data):
    return '"' + hashlib.md5(data).hexdigest() + '"'


class Remote:
    """One server for all; its parts are told apart by their paths."""

    def __init__(self, host="127.0.0.1", token=None, aws_key=None, google_token=None,
                 certificate=None):
        """`token`: that the hub wants; `aws_key`: (ID, SECRET) that S3 wants; None: anybody may read."""
        self.host, self.token, self.aws_key, self.google_token = host, token, aws_key, google_token
        self.certificate = certificate  # (file, key file): it speaks TLS
        self.hubs, self.buckets, self.files, self.redirects = {}, {}, {}, {}
        self.requests = []
        self.page = 1000  # entries of one page of a list
        self.cut_after = None  # bytes of a body after which a connection is cut, once for each entry
        self.pause_s = 0  # between pieces of a body
        self.broken = set()  # paths whose bytes are not those that are told
        self.no_ranges = False
        self.down = False  # every answer is 503
        self.heads = True  # False: HEAD is refused, as signed addresses do
        self.lfs_host = None  # where large files of the hub are redirected to
        self.tokens_asked = []

    def __enter__(self):
        remote = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                remote.serve(self)

            do_HEAD = do_POST = do_GET

        self.server = http.server.ThreadingHTTPServer((self.host, 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if self.certificate else ''}://{self.host}:{self.port}"
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*map(str, self.certificate))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    # --- The remote files. ---

    def add_hub(self, repository, files, lfs=(), commit=COMMIT, revisions=("main",)):
        hub = self.hubs.setdefault(repository, {"revisions": {}, "trees": {}, "lfs": set()})
        hub["trees"][commit] = dict(files)
        hub["lfs"] |= set(lfs)
        for revision in (*revisions, commit):
            hub["revisions"][revision] = commit

    def add_bucket(self, bucket, files):
        self.buckets.setdefault(bucket, {}).update(files)

    def add_file(self, path, data):
        self.files[path] = data
        return self.url + path

    def environment(self, **more):
        """Returns the variables that make programs ask here; secrets are those that were given."""
        values = {"HF_ENDPOINT": self.url, "AWS_ENDPOINT_URL": self.url + "/s3",
                  "STORAGE_EMULATOR_HOST": self.url + "/gcs", "AWS_EC2_METADATA_DISABLED": "true",
                  "NO_PROXY": "*", "no_proxy": "*"}
        if self.token:
            values["HF_TOKEN"] = self.token
        if self.aws_key:
            values["AWS_ACCESS_KEY_ID"], values["AWS_SECRET_ACCESS_KEY"] = self.aws_key
        return values | more

    # --- Answers. ---

    def serve(self, handler):
        path, _, query = handler.path.partition("?")
        request = Request(handler.command, handler.path,
                          {name.lower(): value for name, value in handler.headers.items()})
        self.requests.append(request)
        length = int(request.headers.get("content-length", 0))
        body = handler.rfile.read(length) if length else b""
        try:
            if self.down:
                return self.answer(handler, request, 503, b"down")
            if handler.command == "HEAD" and not self.heads:
                return self.answer(handler, request, 403, b"")
            if path in self.redirects:
                return self.answer(handler, request, 302, b"", {"Location": self.redirects[path]})
            if path == "/oauth/token":
                self.tokens_asked.append(urllib.parse.parse_qs(body.decode()))
                return self.answer_json(handler, request, {"access_token": self.google_token})
            if path in self.files:
                return self.answer_file(handler, request, self.files[path])
            if path.startswith("/s3/"):
                return self.serve_s3(handler, request, path[3:], query)
            if path.startswith("/gcs/"):
                return self.serve_gcs(handler, request, path[4:], query)
            return self.serve_hub(handler, request, path, query)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def answer(self, handler, request, status, body, headers=None):
        request.status = status
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def answer_json(self, handler, request, value, headers=None):
        self.answer(handler, request, 200, json.dumps(value).encode(),
                    {"Content-Type": "application/json", **(headers or {})})

    def answer_file(self, handler, request, data, headers=None):
        """With ranges; bodies may be cut, slow, or other bytes than were told."""
        path = handler.path.partition("?")[0]
        if path in self.broken:
            data = data[:-1] + bytes([data[-1] ^ 1])
        headers = {"ETag": etag(data), **(headers or {})}
        begin, end, status = 0, len(data), 200
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if match and not self.no_ranges:
            begin = int(match[1])
            end = min(len(data), int(match[2]) + 1) if match[2] else len(data)
            if begin >= len(data):
                return self.answer(handler, request, 416, b"",
                                   {"Content-Range": f"bytes */{len(data)}"})
            status = 206
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        request.status = status
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(end - begin))
        handler.end_headers()
        if handler.command == "HEAD":
            return None
        piece, cut = 1 << 16, self.cut_after.pop(0) if self.cut_after and end - begin > 1 else None
        for at in range(begin, end, piece):
            block = data[at:min(end, at + piece)]
            if cut is not None and at - begin + len(block) > cut:
                handler.wfile.write(block[:max(0, cut - (at - begin))])
                handler.wfile.flush()
                handler.close_connection = True
                handler.connection.shutdown(2)
                return None
            handler.wfile.write(block)
            if self.pause_s:
                time.sleep(self.pause_s)
        return None

    def serve_hub(self, handler, request, path, query):
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return self.answer(handler, request, 401, b'{"error":"Repository not found"}',
                               {"X-Error-Code": "RepoNotFound"})
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        found = (api or file) and self.hubs.get((api or file)[1])
        if not found:
            return self.answer(handler, request, 404, b'{"error":"Repository not found"}',
                               {"X-Error-Code": "RepoNotFound"})
        revision = urllib.parse.unquote((api[3] or "main") if api else file[2])
        commit = found["revisions"].get(revision)
        if commit is None:
            return self.answer(handler, request, 404, b'{"error":"Invalid rev id"}',
                               {"X-Error-Code": "RevisionNotFound"})
        tree = found["trees"][commit]
        if api and api[2] == "tree":
            return self.answer_tree(handler, request, found, tree, query)
        if api:
            return self.answer_json(handler, request, {
                "id": api[1], "sha": commit, "private": False, "tags": [],
                "siblings": [{"rfilename": name} for name in tree]})
        name = urllib.parse.unquote(file[3])
        if name not in tree:
            return self.answer(handler, request, 404, b"", {"X-Error-Code": "EntryNotFound"})
        data, large = tree[name], name in found["lfs"]
        mark = hashlib.sha256(data).hexdigest() if large else git_digest(data)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{mark}"'}
        if large and self.lfs_host:
            return self.answer(handler, request, 302, b"", {
                **headers, "X-Linked-Etag": f'"{mark}"', "X-Linked-Size": str(len(data)),
                "Location": self.lfs_host.add_file(f"/lfs/{mark}", data)})
        return self.answer_file(handler, request, data, headers)

    def answer_tree(self, handler, request, hub, tree, query):
        entries = []
        for name, data in sorted(tree.items()):
            entry = {"type": "file", "path": name, "size": len(data), "oid": git_digest(data)}
            if name in hub["lfs"]:
                digest = hashlib.sha256(data).hexdigest()
                pointer = (f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\n"
                           f"size {len(data)}\n").encode()
                entry |= {"oid": git_digest(pointer),
                          "lfs": {"oid": digest, "size": len(data), "pointerSize": len(pointer)}}
            entries.append(entry)
        at = int(dict(urllib.parse.parse_qsl(query)).get("cursor", 0))
        headers = {}
        if at + self.page < len(entries):
            address = f"{self.url}{handler.path.split('?')[0]}?recursive=true&cursor={at + self.page}"
            headers["Link"] = f'<{address}>; rel="next"'
        return self.answer_json(handler, request, entries[at:at + self.page], headers)

    def serve_s3(self, handler, request, path, query):
        if self.aws_key and not signed_by(request, self.aws_key):
            return self.answer(handler, request, 403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        objects = self.buckets.get(bucket)
        if objects is None:
            return self.answer(handler, request, 404, b"<Error><Code>NoSuchBucket</Code></Error>")
        if key:
            if key not in objects:
                return self.answer(handler, request, 404, b"<Error><Code>NoSuchKey</Code></Error>")
            return self.answer_file(handler, request, objects[key])
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        names = sorted(name for name in objects if name.startswith(asked.get("prefix", "")))
        at = int(asked.get("continuation-token", 0))
        rows = "".join(
            f"<Contents><Key>{name.replace('&', '&amp;')}</Key><ETag>{etag(objects[name]).replace(chr(34), '&quot;')}</ETag>"
            f"<Size>{len(objects[name])}</Size></Contents>" for name in names[at:at + self.page])
        more = at + self.page < len(names)
        text = ('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
                f"<Name>{bucket}</Name><KeyCount>{len(names)}</KeyCount>"
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{rows}"
                + (f"<NextContinuationToken>{at + self.page}</NextContinuationToken>" if more else "")
                + "</ListBucketResult>")
        return self.answer(handler, request, 200, text.encode(), {"Content-Type": "application/xml"})

    def serve_gcs(self, handler, request, path, query):
        if self.google_token and request.headers.get("authorization") != f"Bearer {self.google_token}":
            return self.answer(handler, request, 401, b'{"error":{"code":401}}')
        match = re.fullmatch(r"/storage/v1/b/([^/]+)/o(?:/([^/]+))?", path)
        objects = match and self.buckets.get(match[1])
        if not objects:
            return self.answer(handler, request, 404, b'{"error":{"code":404}}')
        asked = dict(urllib.parse.parse_qsl(query))
        if match[2]:
            name = urllib.parse.unquote(match[2])
            if name not in objects or asked.get("alt") != "media":
                return self.answer(handler, request, 404, b"")
            return self.answer_file(handler, request, objects[name])
        names = sorted(name for name in objects if name.startswith(asked.get("prefix", "")))
        at = int(asked.get("pageToken", 0))
        answer = {"kind": "storage#objects", "items": [
            {"name": name, "size": str(len(objects[name])), "generation": "1",
             "md5Hash": base64.b64encode(hashlib.md5(objects[name]).digest()).decode()}
            for name in names[at:at + self.page]]}
        if at + self.page < len(names):
            answer["nextPageToken"] = str(at + self.page)
        return self.answer_json(handler, request, answer)


def signed_by(request, key):
    """Returns whether the request has AWS's signature, version 4, of `key` (ID, SECRET).

    As "Signature Version 4 signing process" of the documentation defines it.
    """
    match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/(s3)/aws4_request, ?"
                         r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                         request.headers.get("authorization", ""))
    if not match or match[1] != key[0]:
        return False
    _, day, region, service, names, signature = match.groups()
    if not {"host", *(n for n in request.headers if n.startswith("x-amz-"))} <= set(names.split(";")):
        return False
    path, _, query = request.path.partition("?")
    pairs = sorted(part.partition("=")[::2] for part in query.split("&") if part)
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n"
                      for name in names.split(";"))
    canonical = "\n".join([request.method, path, "&".join(f"{n}={v}" for n, v in pairs), headers, names,
                           request.headers.get("x-amz-content-sha256", "")])
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers.get("x-amz-date", ""), scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    derived = ("AWS4" + key[1]).encode()
    for part in (day, region, service, "aws4_request"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(hmac.new(derived, text.encode(), hashlib.sha256).hexdigest(), signature)
