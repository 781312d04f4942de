// reprise warmup: captures buckets before traffic needs them, with a progress bar.

#include <chrono>
#include <cstdio>
#include <thread>

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
    ASSIGN_OR_RETURN(const auto shapes, client::ReadRecordedFile(flags.requests_file, flags.model));
    for (const client::RecordedShape& shape : shapes) {
      request.add_requests(absl::StrJoin(shape.sizes, ",", absl::PairFormatter("=")));
    }
  }
  ASSIGN_OR_RETURN(v1::WarmupResponse state, client->Warmup(request));
  const google::protobuf::RepeatedPtrField<std::string> notes = state.notes();
  request.clear_buckets();
  request.clear_sizes();
  request.clear_requests();
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
  AddOption(*command, "--sizes", flags->sizes, "AXIS=SIZE,...",
            "Recipe of exactly these sizes, also after graph breaks; may be given more "
            "than once")
      ->allow_extra_args(false);
  AddOption(*command, "--requests", flags->requests_file, "FILE",
            "Recipes that requests need like those in this file, which `record` wrote")
      ->check(CLI::ExistingFile);
  command->add_flag("--all", flags->all,
                    "Every bucket of the model; along axes without buckets the sizes of past "
                    "requests");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunWarmup(*flags); }; });
}

}  // namespace reprise::cli
