// reprise stats: the server's counters since its start.

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "client/cli/timestamp.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

struct StatsFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  bool json = false;
  bool metrics = false;
};

// "3 first_request, 5 new_shape".
template <typename Counts, typename Name>
std::string Counted(const Counts& counts, Name name) {
  std::string text;
  for (const auto& entry : counts) {
    if (entry.count() == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", Count(entry.count()), " ", name(entry));
  }
  return text.empty() ? "-" : text;
}

double Mean(double sum, uint64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

void PrintProcess(const v1::GetStatsResponse& stats) {
  Table table({{"server"}, {"value"}});
  table.AddRow({"version", stats.server_version()});
  if (stats.has_started()) table.AddRow({"started", Ago(stats.started())});
  table.AddRow({"device", stats.device()});
  table.AddRow({"streams", absl::StrFormat("%d, up to %d threads each", stats.streams(),
                                           stats.threads_per_stream())});
  table.AddRow({"resident memory", Bytes(stats.resident_bytes())});
  const auto& cache = stats.cache();
  table.AddRow({"recipes", absl::StrFormat("%d, %s of %s", cache.recipes(), Bytes(cache.bytes()),
                                           Bytes(cache.max_bytes()))});
  table.AddRow({"evictions", Counted(cache.evictions(), [](const auto& e) { return e.reason(); })});
  std::printf("%s", table.Text().c_str());
}

void PrintModel(const v1::ModelStats& model) {
  std::printf("\nmodel %s version %s: %s\n", model.model().c_str(), model.version().c_str(),
              model.state().c_str());
  Table table({{"what"}, {"value"}});
  table.AddRow(
      {"requests", Counted(model.requests_by_code(), [](const auto& c) { return c.code(); })});
  table.AddRow({"rows", Count(model.rows())});
  table.AddRow({"rows/replay", Fixed(Mean(static_cast<double>(model.rows()), model.replays()), 2)});
  table.AddRow(
      {"compiles", Counted(model.compiles_by_reason(), [](const auto& r) { return r.reason(); })});
  table.AddRow({"time in compiles", Seconds(model.compile_seconds())});
  table.AddRow({"cache hits", absl::StrCat(Percent(static_cast<double>(model.cache().hits()),
                                                   static_cast<double>(model.cache().hits() +
                                                                       model.cache().misses())),
                                           ", ", Count(model.cache().misses()), " misses")});
  table.AddRow({"mean request", Seconds(Mean(model.request_seconds(), model.requests()))});
  table.AddRow({"mean queue", Seconds(Mean(model.queue_seconds(), model.requests()))});
  table.AddRow({"queued now", Count(model.queue_depth())});
  table.AddRow({"parameters", Bytes(model.parameter_bytes())});
  for (const auto& axis : model.axes()) {
    const auto valid = static_cast<double>(axis.valid_elements());
    const auto padded = static_cast<double>(axis.padded_elements());
    table.AddRow({absl::StrCat("padding, ", axis.axis()), Percent(padded, valid + padded)});
  }
  std::printf("%s", table.Text().c_str());

  Table buckets({{"bucket"}, {"replays", kRight}, {"share", kRight}, {"ms/replay", kRight}});
  for (const auto& bucket : model.replays_by_bucket()) {
    if (bucket.replays() == 0) continue;
    buckets.AddRow(
        {bucket.bucket(), Count(bucket.replays()),
         Percent(static_cast<double>(bucket.replays()), static_cast<double>(model.replays())),
         Fixed(1e3 * Mean(bucket.compute_seconds(), bucket.replays()), 2)});
  }
  if (!buckets.empty()) std::printf("\n%s", buckets.Text().c_str());
}

absl::Status RunStats(const StatsFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto stats, client->GetStats(flags.model, flags.version, flags.metrics));
  if (flags.metrics) {
    std::printf("%s", stats.metrics_json().c_str());
    return absl::OkStatus();
  }
  if (flags.json) return PrintJson(stats);
  PrintProcess(stats);
  for (const auto& model : stats.models()) PrintModel(model);
  return absl::OkStatus();
}

}  // namespace

void AddStats(CLI::App& app, Action& action) {
  auto flags = std::make_shared<StatsFlags>();
  CLI::App* command = app.add_subcommand("stats", "Show the server's counters");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Only this model");
  command->add_option("--version", flags->version, "Only this version");
  AddJson(*command, flags->json);
  command->add_flag(
      "--metrics", flags->metrics,
      "Print all metrics and captures as JSON instead, as --metrics-file writes them");
  command->callback([flags, &action] { action = [flags] { return RunStats(*flags); }; });
}

}  // namespace reprise::cli
