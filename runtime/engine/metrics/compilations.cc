#include "runtime/engine/metrics/compilations.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace reprise {
namespace {

constexpr double kMsPerNs = 1e-6;

std::string TimeText(std::chrono::system_clock::time_point time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

uint64_t Sum(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

void WriteCounts(absl::string_view name, const std::map<std::string, uint64_t>& counts,
                 JsonWriter& json) {
  json.Object(name, [&] {
    for (const auto& [key, count] : counts) json.Member(key, count);
  });
}

// Writes the phases: for the steps up to `bind`, memory is known only of all of them together.
void WritePhases(const MissRecord& record, JsonWriter& json) {
  const auto phase = [&](const char* name, int64_t ns, int64_t rss_bytes) {
    json.Object([&] {
      json.Member("name", name);
      json.Member("ms", static_cast<double>(ns) * kMsPerNs);
      json.Member("rss_bytes", rss_bytes);
    });
  };
  phase("specialise", record.phases.specialize_ns, 0);
  phase("passes", record.phases.passes_ns, 0);
  phase("plan", record.phases.plan_ns, 0);
  phase("bind", record.phases.bind_ns, record.compile_rss_bytes);
  phase("prepare", record.phases.prepare_ns, record.prepare_rss_bytes);
  phase("prime", record.phases.prime_ns, record.prime_rss_bytes);
}

void WriteCapture(const MissRecord& record, JsonWriter& json) {
  json.Object([&] {
    json.Member("sequence", record.sequence);
    json.Member("time", TimeText(record.time));
    json.Member("recipe", record.recipe);
    json.Member("bucket", record.bucket);
    json.Member("binding", record.binding);
    json.Member("section", record.section);
    json.Member("reason", CompileReasonName(record.reason));
    json.Member("cause", record.cause);
    json.Member("nearest", record.nearest);
    json.List("inputs", record.inputs);
    json.List("outputs", record.outputs);
    json.Member("behind", record.behind);
    json.Member("total_ms", static_cast<double>(record.phases.total_ns()) * kMsPerNs);
    json.Array("phases", [&] { WritePhases(record, json); });
    json.Member("recipe_bytes", record.recipe_bytes);
    json.Member("frame_bytes", record.frame_bytes);
    json.Member("requests_waited", record.num_waiters);
    json.Member("longest_wait_ms", static_cast<double>(record.longest_wait_ns) * kMsPerNs);
    json.Member("suggestion", record.suggestion);
  });
}

}  // namespace

void WriteCompilations(const ModelCounts& counts, absl::Span<const MissRecord> captures,
                       JsonWriter& json) {
  json.Object([&] {
    json.Member("model", counts.model);
    json.Member("version", counts.version);
    json.Member("compiles", Sum(counts.compiles_by_reason));
    json.Member("compile_seconds", counts.compile_seconds);
    WriteCounts("compiles_by_reason", counts.compiles_by_reason, json);
    json.Member("replays", Sum(counts.replays_by_bucket));
    WriteCounts("replays_by_bucket", counts.replays_by_bucket, json);
    WriteCounts("cache",
                {{"hits", counts.hits},
                 {"misses", counts.misses},
                 {"store_hits", counts.store_hits},
                 {"store_misses", counts.store_misses}},
                json);
    json.Object("padding", [&] {
      for (const auto& [axis, padding] : counts.padding) {
        WriteCounts(axis, {{"valid", padding.valid}, {"padded", padding.padded}}, json);
      }
    });
    WriteCounts("memory", {{"recipes", counts.recipes}, {"recipe_bytes", counts.recipe_bytes}},
                json);
    json.Array("captures", [&] {
      for (const MissRecord& record : captures) {
        if (record.model.name != counts.model) continue;
        if (absl::StrCat(record.model.version) == counts.version) WriteCapture(record, json);
      }
    });
  });
}

std::string CompilationsText(const ModelCounts& counts, absl::Span<const MissRecord> captures) {
  JsonWriter json(JsonForm::kIndented);
  WriteCompilations(counts, captures, json);
  return json.Take();
}

void WriteModels(absl::Span<const ModelCounts> models, absl::Span<const MissRecord> captures,
                 JsonWriter& json) {
  json.Member("time", TimeText(std::chrono::system_clock::now()));
  json.Array("models", [&] {
    for (const ModelCounts& counts : models) WriteCompilations(counts, captures, json);
  });
}

std::string ModelsText(absl::Span<const ModelCounts> models,
                       absl::Span<const MissRecord> captures) {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] { WriteModels(models, captures, json); });
  return json.Take();
}

}  // namespace reprise
