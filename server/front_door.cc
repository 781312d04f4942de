#include "server/front_door.h"

#include <prometheus/counter.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

constexpr char kAnyOrigin[] = "*";

Caller CallerOf(const CallHead& head, bool is_admin_port) {
  return {.authorization = head.Field("authorization"),
          .api_key = head.Field("x-api-key"),
          .is_local = head.peer != nullptr && head.peer->is_local,
          .on_admin_port = is_admin_port};
}

Caller CallerOf(const HttpRequest& request, bool is_admin_port) {
  return {.authorization = request.Field("authorization"),
          .api_key = request.Field("x-api-key"),
          .is_local = request.peer != nullptr && request.peer->is_local,
          .on_admin_port = is_admin_port};
}

HttpReply Refusal(const RequestPath& path, const absl::Status& why) {
  HttpFields fields;
  if (why.code() == absl::StatusCode::kUnauthenticated) {
    fields.emplace_back("WWW-Authenticate", "Bearer");
  }
  return ErrorReply(path, ErrorRowOf(why.code()).http, ErrorMessage(why), std::move(fields));
}

// Returns whether a browser asks for permission before its request. It does so without credentials.
bool IsPreflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.Field("access-control-request-method").empty();
}

HttpReply PreflightReply(const HttpRequest& request) {
  HttpReply reply = {.status = 204};
  reply.fields = {{"Access-Control-Allow-Methods", "GET, POST"}, {"Access-Control-Max-Age", "600"}};
  const std::string headers(request.Field("access-control-request-headers"));
  if (!headers.empty()) reply.fields.emplace_back("Access-Control-Allow-Headers", headers);
  return reply;
}

// Other calls would hide those that compute.
bool AsksModel(const CallHead& head) { return absl::EndsWith(head.path, "Infer"); }

}  // namespace

FrontDoor::FrontDoor(const Options& options, std::unique_ptr<KeyRing> keys,
                     const ServerMetrics& metrics, Tracer* tracer)
    : origins_(options.cors_origins),
      gate_({.allow_admin = options.allow_admin, .has_admin_port = options.has_admin_port()},
            std::move(keys)),
      metrics_(metrics),
      tracer_(tracer) {}

absl::StatusOr<std::unique_ptr<FrontDoor>> FrontDoor::Open(const Options& options,
                                                           const Clock& clock,
                                                           const ServerMetrics& metrics,
                                                           Tracer* tracer,
                                                           KeyRing::OnTrouble on_trouble) {
  std::unique_ptr<KeyRing> keys;
  if (!options.api_key_file.empty()) {
    ASSIGN_OR_RETURN(keys, KeyRing::Open(options.api_key_file, clock, std::move(on_trouble)));
  }
  return std::unique_ptr<FrontDoor>(new FrontDoor(options, std::move(keys), metrics, tracer));
}

absl::StatusOr<std::shared_ptr<KeyUse>> FrontDoor::Ask(Right right, const Caller& caller) const {
  auto key = gate_.Check(right, caller);
  if (!key.ok()) {
    (key.status().code() == absl::StatusCode::kUnauthenticated ? metrics_.unauthenticated
                                                               : metrics_.not_permitted)
        ->Increment();
  }
  return key;
}

RpcRoutes::Gate FrontDoor::ForRpc(bool is_admin_port) const {
  return [this, is_admin_port](CallHead& head) {
    const Right right = RightOfRpc(head.path);
    auto key = Ask(right, CallerOf(head, is_admin_port));
    if (!key.ok()) return key.status();
    head.key = *std::move(key);
    if (tracer_ != nullptr && AsksModel(head)) BeginTrace(head);
    return absl::OkStatus();
  };
}

void FrontDoor::BeginTrace(CallHead& head) const {
  const absl::string_view method = absl::StripPrefix(head.path, "/");
  head.trace = tracer_->Begin(head.Field(kTraceParent), head.Field(kTraceState),
                              [&] { return std::string(method); });
  if (head.trace == nullptr) return;
  WhereMemoryAllows([&] {
    const size_t slash = method.find('/');
    head.trace->AddAttribute({"rpc.system", "grpc"});
    head.trace->AddAttribute({"rpc.service", std::string(method.substr(0, slash))});
    if (slash == absl::string_view::npos) return;
    head.trace->AddAttribute({"rpc.method", std::string(method.substr(slash + 1))});
  });
}

void FrontDoor::BeginTrace(const Router::Found& found, HttpExchange& exchange) const {
  const HttpRequest& request = exchange.request();
  const absl::string_view pattern = found.pattern();
  const std::shared_ptr<RequestTrace> trace = tracer_->Begin(
      request.Field(kTraceParent), request.Field(kTraceState),
      [&] { return absl::StrCat(request.method, pattern.empty() ? "" : " ", pattern); });
  if (trace == nullptr) return;
  WhereMemoryAllows([&] {
    trace->AddAttribute({"http.request.method", request.method});
    trace->AddAttribute({"url.path", request.path.Text()});
    if (!pattern.empty()) trace->AddAttribute({"http.route", std::string(pattern)});
    exchange.AddReplyField(kTraceParent, trace->parent_text());
    if (!trace->state().empty()) exchange.AddReplyField(kTraceState, trace->state());
  });
  exchange.SetTrace(trace);
}

absl::Status FrontDoor::Check(Right right, const CallHead& head, bool is_admin_port) const {
  return Ask(right, CallerOf(head, is_admin_port)).status();
}

std::string FrontDoor::AllowedOrigin(const HttpRequest& request) const {
  const absl::string_view origin = request.Field("origin");
  if (origin.empty()) return "";
  for (const std::string& allowed : origins_) {
    if (allowed == kAnyOrigin) return kAnyOrigin;
    if (allowed == origin) return allowed;
  }
  return "";
}

HttpHandler FrontDoor::ForHttp(const Router& router, bool is_admin_port) const {
  return [this, &router, is_admin_port](std::shared_ptr<HttpExchange> exchange) {
    const HttpRequest& request = exchange->request();
    const Router::Found found = router.Find(request);
    if (request.is_spare && !found.is_probe()) {
      return exchange->Answer([path = request.path] {
        return ErrorReply(path, 503,
                          "the server has as many connections as it may; probes of its health are "
                          "answered");
      });
    }
    if (const std::string origin = AllowedOrigin(request); !origin.empty()) {
      exchange->AddReplyField("Access-Control-Allow-Origin", origin);
      exchange->AddReplyField("Vary", "Origin");
      if (IsPreflight(request)) {
        return exchange->Answer([reply = PreflightReply(request)] { return reply; });
      }
    }
    auto key = Ask(found.right(), CallerOf(request, is_admin_port));
    if (!key.ok()) {
      return exchange->Answer([reply = Refusal(request.path, key.status())] { return reply; });
    }
    exchange->SetKey(*std::move(key));
    if (tracer_ != nullptr && found.right() == Right::kInfer && request.method == "POST") {
      BeginTrace(found, *exchange);
    }
    found.Answer(std::move(exchange));
  };
}

}  // namespace reprise
