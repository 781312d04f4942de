#include "server/rest/settings_routes.h"

#include <simdjson.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/protocol/log_settings.h"
#include "server/protocol/trace_settings.h"
#include "server/rest/json_document.h"
#include "server/rest/reply.h"

namespace reprise {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;
using simdjson::dom::element;
using simdjson::dom::object;

// Turns a JSON object of settings into the protocol's request for them.
absl::StatusOr<inference::LogSettingsRequest> LogRequest(absl::string_view body,
                                                         MemoryBudget& parsing) {
  inference::LogSettingsRequest request;
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root, document.ParseObject(body));
  for (const auto& [key, value] : root) {
    auto& setting = (*request.mutable_settings())[std::string(key)];
    bool flag = false;
    uint64_t number = 0;
    std::string_view text;
    if (value.get(flag) == simdjson::SUCCESS) {
      setting.set_bool_param(flag);
    } else if (value.get(number) == simdjson::SUCCESS) {
      setting.set_uint32_param(static_cast<uint32_t>(number));
    } else if (value.get(text) == simdjson::SUCCESS) {
      setting.set_string_param(std::string(text));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "log setting '", std::string(key), "' is neither true, false, a number nor a text"));
    }
  }
  return request;
}

HttpReply LoggingReply(const inference::LogSettingsRequest& request, LogSwitch& log) {
  const auto answer = AnswerLogSettings(request, log);
  if (!answer.ok()) return StatusReply(answer.status());
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::map<std::string, inference::LogSettingsResponse::SettingValue> sorted(
      answer->settings().begin(), answer->settings().end());
  for (const auto& [name, value] : sorted) {
    if (value.has_bool_param()) {
      json[name] = value.bool_param();
    } else if (value.has_uint32_param()) {
      json[name] = value.uint32_param();
    } else {
      json[name] = value.string_param();
    }
  }
  return {.content_type = "application/json", .body = json.dump()};
}

// Returns one value of a trace setting as text: clients send numbers as either.
absl::StatusOr<std::string> SettingText(std::string_view name, const element& value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return absl::StrCat(number);
  return absl::InvalidArgumentError(
      absl::StrCat("trace setting '", std::string(name), "' is neither a text, a number nor null"));
}

absl::StatusOr<inference::TraceSettingRequest> TraceRequest(const std::string& model,
                                                            absl::string_view body,
                                                            MemoryBudget& parsing) {
  inference::TraceSettingRequest request;
  request.set_model_name(model);
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root, document.ParseObject(body));
  for (const auto& [key, value] : root) {
    auto& setting = (*request.mutable_settings())[std::string(key)];
    if (value.is_null()) continue;
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS) {
      ASSIGN_OR_RETURN(*setting.add_value(), SettingText(key, value));
      continue;
    }
    for (const element one : list) {
      ASSIGN_OR_RETURN(*setting.add_value(), SettingText(key, one));
    }
  }
  return request;
}

HttpReply TraceReply(const inference::TraceSettingRequest& request, const Repository& repository,
                     Tracer* tracer) {
  const auto answer = AnswerTraceSettings(request, repository, tracer);
  if (!answer.ok()) return StatusReply(answer.status());
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::map<std::string, inference::TraceSettingResponse::SettingValue> sorted(
      answer->settings().begin(), answer->settings().end());
  for (const auto& [name, value] : sorted) {
    // Levels are a list, whatever their number.
    if (name == "trace_level") {
      json[name] = nlohmann::json::array({value.value(0)});
    } else {
      json[name] = value.value(0);
    }
  }
  return {.content_type = "application/json", .body = json.dump()};
}

void AddLogging(LogSwitch* log, MemoryBudget* parsing, Router& router) {
  router.Add(
      "GET", "/v2/logging", Right::kAdmin, [log](const Exchange& exchange, const PathParts&) {
        exchange->Answer([log] { return LoggingReply(inference::LogSettingsRequest(), *log); });
      });
  router.Add("POST", "/v2/logging", Right::kAdmin,
             [log, parsing](const Exchange& exchange, const PathParts&) {
               auto request = LogRequest(exchange->request().body, *parsing);
               exchange->Answer([log, request = std::move(request)] {
                 return request.ok() ? LoggingReply(*request, *log) : StatusReply(request.status());
               });
             });
}

void AddTraceSettings(const Repository* repository, Tracer* tracer, MemoryBudget* parsing,
                      Router& router) {
  const auto model_of = [](const PathParts& parts) {
    const auto it = parts.find("model");
    return it == parts.end() ? std::string() : it->second;
  };
  for (const char* path : {"/v2/trace/setting", "/v2/models/{model}/trace/setting"}) {
    router.Add("GET", path, Right::kAdmin, [=](const Exchange& exchange, const PathParts& parts) {
      inference::TraceSettingRequest request;
      request.set_model_name(model_of(parts));
      exchange->Answer([=] { return TraceReply(request, *repository, tracer); });
    });
    router.Add("POST", path, Right::kAdmin, [=](const Exchange& exchange, const PathParts& parts) {
      auto request = TraceRequest(model_of(parts), exchange->request().body, *parsing);
      exchange->Answer([=, request = std::move(request)] {
        return request.ok() ? TraceReply(*request, *repository, tracer)
                            : StatusReply(request.status());
      });
    });
  }
}

}  // namespace

void AddSettingsRoutes(LogSwitch* log, const Repository* repository, Tracer* tracer,
                       MemoryBudget* parsing, Router& router) {
  AddLogging(log, parsing, router);
  AddTraceSettings(repository, tracer, parsing, router);
}

}  // namespace reprise
