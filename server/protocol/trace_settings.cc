#include "server/protocol/trace_settings.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using TraceValue = inference::TraceSettingRequest::SettingValue;

constexpr char kLevel[] = "trace_level", kRate[] = "trace_rate", kCount[] = "trace_count";
constexpr char kMode[] = "trace_mode", kOpenTelemetry[] = "opentelemetry";

absl::StatusOr<int64_t> NumberOf(const std::string& name, const TraceValue& value, int64_t least) {
  int64_t number = 0;
  if (value.value_size() == 1 && absl::SimpleAtoi(value.value(0), &number) && number >= least) {
    return number;
  }
  return absl::InvalidArgumentError(absl::StrCat("trace setting '", name,
                                                 "' must be a number from ", least, " on, it is ",
                                                 QuotedText(absl::StrJoin(value.value(), ","))));
}

// Clients name a level twice and more; OFF among others is a contradiction.
absl::Status SetLevel(const TraceValue& value, TraceSettings& settings) {
  const auto& levels = value.value();
  const auto is = [&](const char* level) {
    return !levels.empty() && std::all_of(levels.begin(), levels.end(),
                                          [&](const std::string& one) { return one == level; });
  };
  if (is("OFF") || is("TIMESTAMPS")) {
    settings.on = is("TIMESTAMPS");
    return absl::OkStatus();
  }
  if (std::find(levels.begin(), levels.end(), "TENSORS") != levels.end()) {
    return absl::UnimplementedError(
        "trace setting 'trace_level' is TENSORS; spans hold times, never tensors: TIMESTAMPS or "
        "OFF");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("trace setting 'trace_level' must be TIMESTAMPS or OFF, it is ",
                   QuotedText(absl::StrJoin(levels, ","))));
}

absl::Status ApplyTrace(const std::string& name, const TraceValue& value,
                        const TraceSettings& defaults, TraceSettings& settings) {
  const bool resets = value.value().empty();
  if (name == kLevel) {
    if (!resets) return SetLevel(value, settings);
    settings.on = defaults.on;
  } else if (name == kRate) {
    settings.share = defaults.share;
    if (resets) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t rate, NumberOf(name, value, 1));
    settings.share = 1 / static_cast<double>(rate);
  } else if (name == kCount) {
    settings.count = defaults.count;
    if (resets) return absl::OkStatus();
    ASSIGN_OR_RETURN(settings.count, NumberOf(name, value, -1));
  } else if (name == kMode && value.value_size() == 1 && value.value(0) == kOpenTelemetry) {
    return absl::OkStatus();
  } else if (name == kMode || name == "trace_file" || name == "log_frequency") {
    if (resets) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("trace setting '", name,
                     "' cannot be changed: spans go to --trace-endpoint by OTLP, none to a file"));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no trace setting ", QuotedText(name),
                     ", only trace_level, trace_rate, trace_count, trace_mode"));
  }
  return absl::OkStatus();
}

std::string RateText(double share) {
  if (share <= 0) return "0";
  return absl::StrCat(std::llround(std::min(1e18, 1 / share)));
}

}  // namespace

absl::StatusOr<inference::TraceSettingResponse> AnswerTraceSettings(
    const inference::TraceSettingRequest& request, const Repository& repository, Tracer* tracer) {
  if (!request.model_name().empty()) {
    if (repository.FindListed(request.model_name(), "") == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("there is no model ", QuotedText(request.model_name())));
    }
    if (!request.settings().empty()) {
      return absl::UnimplementedError(
          "trace settings hold for all models together: change them without the name of a model");
    }
  }
  TraceSettings settings =
      tracer == nullptr ? TraceSettings{.on = false, .share = 0} : tracer->settings();
  if (!request.settings().empty()) {
    if (tracer == nullptr) {
      return absl::FailedPreconditionError(
          "nothing is traced: the server was started without --trace-endpoint");
    }
    for (const auto& [name, value] : request.settings()) {
      RETURN_IF_ERROR(ApplyTrace(name, value, tracer->defaults(), settings));
    }
    tracer->Set(settings);
  }
  inference::TraceSettingResponse response;
  const auto tell = [&](const char* name, const std::string& value) {
    (*response.mutable_settings())[name].add_value(value);
  };
  tell(kLevel, settings.on ? "TIMESTAMPS" : "OFF");
  tell(kRate, RateText(settings.share));
  tell(kCount, absl::StrCat(settings.count));
  tell(kMode, kOpenTelemetry);
  tell("trace_file", "");
  tell("log_frequency", "0");
  return response;
}

}  // namespace reprise
