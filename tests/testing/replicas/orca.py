"""Load reports, read by the messages that the gRPC project publishes."""

import json
import re
import sys

from testing.kubernetes.charts import TOOLS

if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))

from xds.data.orca.v3 import orca_load_report_pb2  # noqa: E402
from xds.service.orca.v3 import orca_pb2  # noqa: E402

Report = orca_load_report_pb2.OrcaLoadReport
NUMBERS = ("cpu_utilization", "mem_utilization", "rps_fractional", "eps", "application_utilization")
FORMAT, HEADER, TRAILER = "endpoint-load-metrics-format", "endpoint-load-metrics", "endpoint-load-metrics-bin"


def from_bytes(text):
    return Report.FromString(text)


def numbers(report):
    """Returns a message as {name: value}, entries of named metrics by named_metrics.NAME."""
    found = {name: getattr(report, name) for name in NUMBERS}
    return {**found, **{f"named_metrics.{name}": value for name, value in report.named_metrics.items()}}


def from_text(header):
    """Returns the same of a header "TEXT a=1, b=2"."""
    pairs = re.fullmatch(r"TEXT (.*)", header).group(1).split(", ")
    return {name: float(value) for name, value in (pair.split("=") for pair in pairs)}


def from_json(header):
    """Returns the same of a header 'JSON {"a": 1}'."""
    found = json.loads(re.fullmatch(r"JSON (.*)", header).group(1))
    named = found.pop("named_metrics", {})
    return {**found, **{f"named_metrics.{name}": value for name, value in named.items()}}


def stream(channel, interval_ms):
    """Yields the reports of xds.service.orca.v3.OpenRcaService."""
    ask = channel.unary_stream("/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics",
                               request_serializer=orca_pb2.OrcaLoadReportRequest.SerializeToString,
                               response_deserializer=Report.FromString)
    request = orca_pb2.OrcaLoadReportRequest()
    request.report_interval.FromMilliseconds(interval_ms)
    return ask(request, timeout=120)
