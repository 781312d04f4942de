#include "server/load_reports.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr char kFormat[] = "endpoint-load-metrics-format";
constexpr char kField[] = "endpoint-load-metrics";
constexpr char kBinaryField[] = "endpoint-load-metrics-bin";
constexpr char kInferenceCalls[] = "/inference.GRPCInferenceService/";

struct Number {
  const char* name;
  double (LoadReports::Report::*value)() const;
};

constexpr Number kNumbers[] = {
    {"cpu_utilization", &LoadReports::Report::cpu_utilization},
    {"mem_utilization", &LoadReports::Report::mem_utilization},
    {"rps_fractional", &LoadReports::Report::rps_fractional},
    {"eps", &LoadReports::Report::eps},
    {"application_utilization", &LoadReports::Report::application_utilization},
};

std::map<std::string, double> NamedMetrics(const LoadReports::Report& report) {
  return {report.named_metrics().begin(), report.named_metrics().end()};
}

}  // namespace

std::string LoadReportText(const LoadReports::Report& report) {
  std::string text;
  const auto add = [&text](absl::string_view name, double value) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, "=", value);
  };
  for (const Number& number : kNumbers) add(number.name, (report.*number.value)());
  for (const auto& [name, value] : NamedMetrics(report)) {
    add(absl::StrCat("named_metrics.", name), value);
  }
  return text;
}

std::string LoadReportJson(const LoadReports::Report& report) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const Number& number : kNumbers) object[number.name] = (report.*number.value)();
  const std::map<std::string, double> named = NamedMetrics(report);
  if (!named.empty()) object["named_metrics"] = named;
  return object.dump();
}

bool LoadReports::IsWanted(absl::string_view format) const {
  return mode_ == LoadReportMode::kAlways || (mode_ == LoadReportMode::kRequest && !format.empty());
}

std::shared_ptr<const LoadReports::Rendered> LoadReports::NowRendered() {
  MutexLock lock(mutex_);
  const int64_t now_ns = clock_.NowNs();
  if (rendered_ != nullptr &&
      now_ns - rendered_->at_ns < std::chrono::nanoseconds(kFresh).count()) {
    return rendered_;
  }
  auto made = std::make_shared<Rendered>();
  made->at_ns = now_ns;
  made->report = std::make_shared<const Report>(measure_());
  made->base64 = absl::Base64Escape(made->report->SerializeAsString());
  made->text = absl::StrCat("TEXT ", LoadReportText(*made->report));
  made->json = absl::StrCat("JSON ", LoadReportJson(*made->report));
  rendered_ = std::move(made);
  return rendered_;
}

void LoadReports::AddTo(const CallHead& head, Http2Fields& trailers) {
  if (!absl::StartsWith(head.path, kInferenceCalls) || !IsWanted(head.Field(kFormat))) return;
  trailers.emplace_back(kBinaryField, NowRendered()->base64);
}

void LoadReports::AddTo(const HttpRequest& request, HttpFields& fields) {
  const absl::string_view format = request.Field(kFormat);
  if (request.method != "POST" || !IsWanted(format)) return;
  const std::shared_ptr<const Rendered> now = NowRendered();
  if (absl::EqualsIgnoreCase(format, "bin")) {
    fields.emplace_back(kBinaryField, now->base64);
  } else {
    fields.emplace_back(kField, absl::EqualsIgnoreCase(format, "json") ? now->json : now->text);
  }
}

}  // namespace reprise
