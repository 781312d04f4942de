// reprise warmup: captures buckets before traffic needs them, with a progress bar.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "client/files/recorded_file.h"
#include "command_line/progress.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

constexpr std::chrono::milliseconds kProgressInterval(100);

struct WarmupFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  std::string buckets;
  std::vector<std::string> sizes;
  std::string requests_file;
  bool all = false;
  bool json = false;
};

// Returns the most elements of one replay: rows times lengths.
absl::StatusOr<int64_t> MostTokens(client::Client& client, const WarmupFlags& flags) {
  constexpr int64_t kUsual = 4096;
  ASSIGN_OR_RETURN(const auto config, client.ModelConfig(flags.model, flags.version));
  const auto& parameters = config.config().parameters();
  const auto it = parameters.find("reprise.max_batch_tokens");
  int64_t most = kUsual;
  if (it != parameters.end() && !absl::SimpleAtoi(it->second.string_value(), &most)) return kUsual;
  return most;
}

// Returns the sizes to capture for requests like the recorded ones: their buckets, and where rows
// of several requests share a replay, those of more rows.
absl::StatusOr<std::set<std::string>> SizesOfRecorded(client::Client& client,
                                                      const WarmupFlags& flags) {
  ASSIGN_OR_RETURN(const auto shapes, client::ReadRecordedFile(flags.requests_file, flags.model));
  ASSIGN_OR_RETURN(const v1::ExplainModelResponse model,
                   client.ExplainModel(flags.model, flags.version));
  ASSIGN_OR_RETURN(const int64_t most_tokens, MostTokens(client, flags));
  std::set<std::string> all;
  const auto add = [&all](const std::map<std::string, int64_t>& sizes) {
    all.insert(absl::StrJoin(sizes, ",", absl::PairFormatter("=")));
  };
  for (const client::RecordedShape& shape : shapes) {
    std::map<std::string, int64_t> sizes = shape.sizes;
    const v1::AxisExplanation* batch = nullptr;
    int64_t row = 1;  // elements
    for (const v1::AxisExplanation& axis : model.axes()) {
      const auto size = sizes.find(axis.axis());
      if (size == sizes.end()) continue;  // The server names it.
      if (axis.axis() == "batch") {
        if (axis.certified() && !axis.buckets().empty()) batch = &axis;
        continue;
      }
      const auto bucket =
          std::lower_bound(axis.buckets().begin(), axis.buckets().end(), size->second);
      if (axis.certified() && bucket != axis.buckets().end()) size->second = *bucket;
      row = size->second > most_tokens / row ? most_tokens : row * size->second;
    }
    if (batch == nullptr) {
      add(sizes);
      continue;
    }
    const int64_t rows = sizes["batch"];
    bool any = false;
    for (const int64_t bucket : batch->buckets()) {
      const bool fits = bucket * row <= most_tokens || bucket == batch->buckets(0);
      if (!fits || bucket < rows) continue;
      sizes["batch"] = bucket;
      add(sizes);
      any = true;
    }
    if (any) continue;
    // More rows than a replay has: they are split into parts of the most.
    for (const int64_t bucket : batch->buckets()) {
      if (bucket * row <= most_tokens || bucket == batch->buckets(0)) sizes["batch"] = bucket;
    }
    add(sizes);
  }
  return all;
}

absl::Status RunWarmup(const WarmupFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  v1::WarmupRequest request;
  request.set_model(flags.model);
  request.set_version(flags.version);
  request.set_all(flags.all);
  if (!flags.buckets.empty()) {
    for (absl::string_view bucket : absl::StrSplit(flags.buckets, ',')) {
      request.add_buckets(std::string(bucket));
    }
  }
  for (const std::string& sizes : flags.sizes) request.add_sizes(sizes);
  if (!flags.requests_file.empty()) {
    ASSIGN_OR_RETURN(const auto recorded, SizesOfRecorded(*client, flags));
    for (const std::string& sizes : recorded) request.add_sizes(sizes);
  }
  ASSIGN_OR_RETURN(v1::WarmupResponse state, client->Warmup(request));
  const google::protobuf::RepeatedPtrField<std::string> notes = state.notes();
  request.clear_buckets();
  request.clear_sizes();
  request.set_all(false);
  {
    command_line::Progress progress(absl::StrCat("warming up ", flags.model));
    while (state.done() + state.failed() < state.wanted() && state.stopped().empty()) {
      progress.Show(static_cast<double>(state.done()) / state.wanted(),
                    absl::StrCat(state.done(), " of ", state.wanted(), " recipes"));
      std::this_thread::sleep_for(kProgressInterval);
      ASSIGN_OR_RETURN(state, client->Warmup(request));
    }
  }
  *state.mutable_notes() = notes;
  if (flags.json) {
    RETURN_IF_ERROR(PrintJson(state));
  } else {
    std::printf("%s version %s: %u of %u recipes are ready\n", state.model().c_str(),
                state.version().c_str(), state.done(), state.wanted());
    for (const std::string& note : notes) std::printf("    %s\n", note.c_str());
  }
  if (!state.stopped().empty()) {
    return absl::ResourceExhaustedError(absl::StrCat("the rest is left out: ", state.stopped()));
  }
  if (state.failed() > 0) {
    return absl::InternalError(
        absl::StrCat(state.failed(), " recipes could not be captured; the server's log says why"));
  }
  return absl::OkStatus();
}

}  // namespace

void AddWarmup(CLI::App& app, Action& action) {
  auto flags = std::make_shared<WarmupFlags>();
  CLI::App* command = app.add_subcommand(
      "warmup",
      "Capture buckets before traffic needs them; without a bucket, follow the warm-up "
      "that is running");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Name of the model")->required();
  command->add_option("--version", flags->version, "Version; the newest if left out");
  command->add_option("--buckets", flags->buckets, "Buckets, as in reprise.bucket: b1_s16,b8_s128");
  command
      ->add_option("--sizes", flags->sizes,
                   "Recipe of exactly these sizes, also after graph breaks; may be given more "
                   "than once")
      ->allow_extra_args(false)
      ->type_name("AXIS=SIZE,...");
  command
      ->add_option("--requests", flags->requests_file,
                   "Recipes that requests need like those in this file, which `record` wrote")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command->add_flag("--all", flags->all,
                    "Every bucket of the model; along axes without buckets the sizes of past "
                    "requests");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunWarmup(*flags); }; });
}

}  // namespace reprise::cli
