"""A collector of OTLP over HTTP: the spans that it was sent, decoded by their published numbers."""

import http.server
import threading

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_T = descriptor_pb2.FieldDescriptorProto
# opentelemetry/proto/trace/v1/trace.proto and its includes, as published: name -> (number, type).
_MESSAGES = {
    "AnyValue": {"string_value": (1, _T.TYPE_STRING), "bool_value": (2, _T.TYPE_BOOL),
                 "int_value": (3, _T.TYPE_INT64), "double_value": (4, _T.TYPE_DOUBLE)},
    "KeyValue": {"key": (1, _T.TYPE_STRING), "value": (2, "AnyValue")},
    "Resource": {"attributes": (1, "*KeyValue"), "dropped_attributes_count": (2, _T.TYPE_UINT32)},
    "InstrumentationScope": {"name": (1, _T.TYPE_STRING), "version": (2, _T.TYPE_STRING)},
    "Status": {"message": (2, _T.TYPE_STRING), "code": (3, _T.TYPE_INT32)},
    "Span": {"trace_id": (1, _T.TYPE_BYTES), "span_id": (2, _T.TYPE_BYTES),
             "trace_state": (3, _T.TYPE_STRING), "parent_span_id": (4, _T.TYPE_BYTES),
             "name": (5, _T.TYPE_STRING), "kind": (6, _T.TYPE_INT32),
             "start_time_unix_nano": (7, _T.TYPE_FIXED64), "end_time_unix_nano": (8, _T.TYPE_FIXED64),
             "attributes": (9, "*KeyValue"), "dropped_attributes_count": (10, _T.TYPE_UINT32),
             "status": (15, "Status"), "flags": (16, _T.TYPE_FIXED32)},
    "ScopeSpans": {"scope": (1, "InstrumentationScope"), "spans": (2, "*Span"),
                   "schema_url": (3, _T.TYPE_STRING)},
    "ResourceSpans": {"resource": (1, "Resource"), "scope_spans": (2, "*ScopeSpans"),
                      "schema_url": (3, _T.TYPE_STRING)},
    "ExportTraceServiceRequest": {"resource_spans": (1, "*ResourceSpans")},
}


def _request_class():
    file = descriptor_pb2.FileDescriptorProto(name="otlp_of_tests.proto", package="otlp_of_tests",
                                              syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "AnyValue":
            message.oneof_decl.add(name="value")
        for field, (number, kind) in fields.items():
            many = isinstance(kind, str) and kind.startswith("*")
            added = message.field.add(name=field, number=number,
                                      label=_T.LABEL_REPEATED if many else _T.LABEL_OPTIONAL)
            if name == "AnyValue":
                added.oneof_index = 0
            if isinstance(kind, str):
                added.type = _T.TYPE_MESSAGE
                added.type_name = ".otlp_of_tests." + kind.lstrip("*")
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("otlp_of_tests.ExportTraceServiceRequest"))


_Request = _request_class()


class Span:
    def __init__(self, span, resource):
        self.name, self.kind = span.name, span.kind
        self.trace_id, self.id = span.trace_id.hex(), span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.state = span.trace_state
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.error = span.status.message if span.status.code == 2 else ""
        self.attributes = _attributes(span.attributes)
        self.resource = resource

    def __repr__(self):
        return f"{self.name} {self.attributes}"


def _attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


class Collector:
    """Listens while the block runs; `answer` is the status that it gives."""

    def __init__(self, answer=200):
        self.answer, self.spans, self.requests = answer, [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers)))
                if collector.answer == 200:
                    request = _Request.FromString(body)
                    for of in request.resource_spans:
                        resource = _attributes(of.resource.attributes)
                        for scope in of.scope_spans:
                            assert scope.scope.name == "reprise"
                            collector.spans.extend(Span(one, resource) for one in scope.spans)
                self.send_response(collector.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def trace(self, trace_id):
        return [span for span in list(self.spans) if span.trace_id == trace_id]
