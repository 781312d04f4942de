#include "server/page/overview.h"

#include <prometheus/metric_family.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/engine/engine.h"
#include "server/tasks/offers.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using nlohmann::ordered_json;

// THE list of metrics that the page reads.
constexpr const char* kShownMetrics[] = {"reprise_requests_total",
                                         "reprise_request_duration_seconds",
                                         "reprise_queue_duration_seconds",
                                         "reprise_queue_depth",
                                         "reprise_replays_total",
                                         "reprise_compiles_total",
                                         "reprise_elements_total",
                                         "reprise_text_tokens_total",
                                         "reprise_tokens_total",
                                         "reprise_pages",
                                         "reprise_sequences",
                                         "reprise_time_to_first_token_seconds",
                                         "reprise_time_per_output_token_seconds",
                                         "reprise_cache_recipes",
                                         "reprise_cache_bytes",
                                         "reprise_memory_bytes",
                                         "reprise_connections",
                                         "reprise_requests_waiting",
                                         "reprise_requests_running",
                                         "reprise_utilization",
                                         "process_resident_memory_bytes"};

constexpr std::chrono::hours kRemembered(1);

int64_t Milliseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

ordered_json ServerObject(const OverviewContext& context,
                          std::chrono::system_clock::time_point now) {
  const PageContext& pages = context.pages;
  const Readiness readiness = pages.readiness->Now();
  ordered_json server = {
      {"version", pages.version},
      {"device", pages.device},
      {"state", pages.state->name()},
      {"ready", readiness.ready},
      {"uptime_seconds", std::chrono::duration<double>(now - context.started).count()}};
  if (!readiness.ready) server["reason"] = Printable(readiness.why);
  return server;
}

// Inputs or outputs that clients see.
ordered_json TensorList(const std::vector<ModelIo>& ios, const std::vector<bool>& hidden) {
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < ios.size(); ++i) {
    if (!hidden.empty() && hidden[i]) continue;
    list.push_back({{"name", ios[i].name},
                    {"datatype", std::string(ProtocolName(ios[i]))},
                    {"shape", MetadataShape(ios[i])}});
  }
  return list;
}

ordered_json AxisList(const Model& model) {
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const AxisCertificate certificate = model.CertificateOf(i);
    ordered_json axis = {{"axis", model.axes()[i].label},
                         {"padded", certificate.certified},
                         {"packed", model.packing() != nullptr}};
    if (!certificate.certified) axis["reason"] = Printable(certificate.reason);
    list.push_back(std::move(axis));
  }
  return list;
}

ordered_json OffersObject(const Offers& offers) {
  ordered_json object = {{"task", offers.task}};
  if (offers.texts) object["texts"] = true;
  if (offers.chats) object["chats"] = true;
  if (offers.pictures) object["pictures"] = true;
  if (offers.context > 0) object["context"] = offers.context;
  return object;
}

ordered_json ModelObject(const Repository::Listed& listed, const TextModels& texts) {
  ordered_json model = {{"name", listed.version->name},
                        {"version", listed.version->version},
                        {"state", ModelStateName(listed.state)}};
  if (!listed.why.ok()) model["reason"] = Printable(listed.why.message());
  if (const WarmupProgress::State warmup = listed.version->warmup->state(); warmup.wanted > 0) {
    model["warmup"] = {{"done", warmup.done}, {"wanted", warmup.wanted}, {"failed", warmup.failed}};
  }
  if (listed.servable == nullptr || listed.servable->model == nullptr) return model;
  const Servable& servable = *listed.servable;
  model["offers"] = OffersObject(OffersOf(servable, texts));
  model["inputs"] = TensorList(servable.signature.inputs, servable.signature.hidden.inputs);
  model["outputs"] = TensorList(servable.signature.outputs, servable.signature.hidden.outputs);
  model["axes"] = AxisList(*servable.model);
  return model;
}

ordered_json CaptureObject(const MissRecord& record) {
  ordered_json differences = ordered_json::array();
  for (const KeyDifference& difference : record.differences) {
    differences.push_back(
        {{"field", difference.field}, {"wanted", difference.wanted}, {"had", difference.had}});
  }
  return {{"sequence", record.sequence},
          {"time_ms", Milliseconds(record.time)},
          {"model", record.model.name},
          {"version", absl::StrCat(record.model.version)},
          {"bucket", record.bucket},
          {"binding", record.binding},
          {"recipe", record.recipe},
          {"reason", std::string(CompileReasonName(record.reason))},
          {"cause", record.cause},
          {"in_background", record.behind},
          {"nearest", record.nearest},
          {"differences", std::move(differences)},
          {"total_ms", static_cast<double>(record.phases.total_ns()) * 1e-6},
          {"requests_waited", record.num_waiters},
          {"longest_wait_ms", static_cast<double>(record.longest_wait_ns) * 1e-6},
          {"suggestion", record.suggestion}};
}

ordered_json CaptureList(const Engine& engine, std::chrono::system_clock::time_point now) {
  ordered_json list = ordered_json::array();
  for (const MissRecord& record : engine.misses().Since(0)) {
    if (record.time >= now - kRemembered) list.push_back(CaptureObject(record));
  }
  return list;
}

ordered_json SeriesObject(const prometheus::MetricFamily& family,
                          const prometheus::ClientMetric& metric) {
  ordered_json labels = ordered_json::object();
  for (const auto& label : metric.label) labels[label.name] = label.value;
  ordered_json series = {{"labels", std::move(labels)}};
  switch (family.type) {
    case prometheus::MetricType::Counter:
      series["value"] = metric.counter.value;
      break;
    case prometheus::MetricType::Histogram: {
      ordered_json bounds = ordered_json::array(), counts = ordered_json::array();
      for (const auto& bucket : metric.histogram.bucket) {
        // The last bound is infinite, which no number of JSON is: `count` stands for it.
        if (!std::isfinite(bucket.upper_bound)) continue;
        bounds.push_back(bucket.upper_bound);
        counts.push_back(bucket.cumulative_count);
      }
      series["count"] = metric.histogram.sample_count;
      series["sum"] = metric.histogram.sample_sum;
      series["bounds"] = std::move(bounds);
      series["counts"] = std::move(counts);
      break;
    }
    default:
      series["value"] = metric.gauge.value;
  }
  return series;
}

ordered_json MetricsObject(const Catalogue& catalogue) {
  ordered_json metrics = ordered_json::object();
  for (const prometheus::MetricFamily& family : catalogue.CollectAll()) {
    if (!absl::c_linear_search(kShownMetrics, family.name)) continue;
    ordered_json& list = metrics[family.name] = ordered_json::array();
    for (const auto& metric : family.metric) list.push_back(SeriesObject(family, metric));
  }
  return metrics;
}

}  // namespace

std::string OverviewJson(const OverviewContext& context) {
  const auto now = std::chrono::system_clock::now();
  ordered_json models = ordered_json::array();
  for (const Repository::Listed& listed : context.pages.repository->List()) {
    models.push_back(ModelObject(listed, *context.texts));
  }
  const ordered_json body = {{"time_ms", Milliseconds(now)},
                             {"server", ServerObject(context, now)},
                             {"models", std::move(models)},
                             {"captures", CaptureList(*context.pages.engine, now)},
                             {"metrics", MetricsObject(*context.pages.catalogue)}};
  // Names come from folders and clients: bytes that are no UTF-8 are replaced.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace reprise
