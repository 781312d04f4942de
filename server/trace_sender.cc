#include "server/trace_sender.h"

#include <prometheus/counter.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/http_get.h"

namespace reprise {
namespace {

constexpr char kPath[] = "/v1/traces";
constexpr int64_t kMostAnswerBytes = 1 << 20;

// Returns a variable of OpenTelemetry's own, which its other programs read too; "" if it is unset.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "name=value,name=value".
std::vector<std::pair<std::string, std::string>> PairsOf(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const absl::string_view one : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(one, absl::MaxSplits('=', 1));
    pairs.emplace_back(absl::StripAsciiWhitespace(pair.first),
                       absl::StripAsciiWhitespace(pair.second));
  }
  return pairs;
}

std::vector<SpanAttribute> ResourceOf(const std::string& version) {
  std::string service = "reprise";
  std::vector<SpanAttribute> resource;
  for (auto& [name, value] : PairsOf(Variable("OTEL_RESOURCE_ATTRIBUTES"))) {
    if (name == "service.name") {
      service = value;
    } else {
      resource.push_back({name, value});
    }
  }
  if (const std::string named = Variable("OTEL_SERVICE_NAME"); !named.empty()) service = named;
  resource.push_back({"service.name", service});
  resource.push_back({"service.version", version});
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    resource.push_back({"host.name", std::string(host.data())});
  }
  resource.push_back({"process.pid", static_cast<int64_t>(getpid())});
  return resource;
}

std::function<absl::Status(const std::string&, const std::function<bool()>&)> PostTo(
    const std::string& endpoint) {
  HttpGet post = {.url = SpanAddress(endpoint),
                  .headers = {"Content-Type: application/x-protobuf"}};
  for (const auto& [name, value] : PairsOf(Variable("OTEL_EXPORTER_OTLP_HEADERS"))) {
    post.headers.push_back(absl::StrCat(name, ": ", value));
  }
  post.authorities = Variable("OTEL_EXPORTER_OTLP_CERTIFICATE");
  return [post](const std::string& body, const std::function<bool()>& cancelled) {
    HttpGet request = post;
    request.form = body;
    return GetText(request, kMostAnswerBytes, cancelled).status();
  };
}

}  // namespace

std::string SpanAddress(const std::string& endpoint) {
  const size_t host = endpoint.find("://") + 3;
  const size_t path = endpoint.find('/', host);
  if (path == std::string::npos) return absl::StrCat(endpoint, kPath);
  if (path + 1 == endpoint.size()) return absl::StrCat(endpoint.substr(0, path), kPath);
  return endpoint;
}

std::unique_ptr<TraceSender> TraceSender::Open(const Options& options, const std::string& version,
                                               const ServerMetrics& metrics, LogFunction log) {
  if (options.trace_endpoint.empty()) return nullptr;
  const std::string shown = ShownUrl(SpanAddress(options.trace_endpoint));
  auto exporter = std::make_shared<SpanExporter>(SpanExporterOptions{
      .send = PostTo(options.trace_endpoint),
      .resource = ResourceOf(version),
      .version = version,
      .on_spans =
          [&metrics](int64_t exported, int64_t dropped, int64_t failed) {
            metrics.spans_exported->Increment(static_cast<double>(exported));
            metrics.spans_dropped->Increment(static_cast<double>(dropped));
            metrics.spans_failed->Increment(static_cast<double>(failed));
          },
      .on_trouble =
          [log = std::move(log), shown](const absl::Status& why) {
            if (why.ok()) {
              log(LogLevel::kInfo, absl::StrCat("spans are sent again to ", shown));
            } else {
              log(LogLevel::kWarning, absl::StrCat("spans are not sent: ", why.message()));
            }
          }});
  return std::unique_ptr<TraceSender>(new TraceSender(std::move(exporter), options.trace_sample));
}

}  // namespace reprise
