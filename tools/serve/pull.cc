// reprise pull: brings a model from elsewhere into the cache that reprised reads.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/status_macros.h"
#include "tools/serve/commands.h"
#include "tools/serve/fetching.h"

namespace reprise::cli {
namespace {

struct PullFlags {
  FetchingFlags fetching;
  bool json = false;
};

absl::Status RunPull(const PullFlags& flags) {
  ASSIGN_OR_RETURN(const FetchedModel model, flags.fetching.Fetch());
  if (!flags.json) {
    std::printf("%s\n", model.path.c_str());
    return absl::OkStatus();
  }
  const nlohmann::ordered_json json = {{"url", model.shown},
                                       {"version", model.version},
                                       {"path", model.path},
                                       {"stale", model.is_stale}};
  return PrintJson(json);
}

}  // namespace

void AddPull(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App* command =
      app.add_subcommand("pull", "Fetch a model into the cache, and print where it is");
  flags->fetching.Add(*command,
                      "hf://ORG/REPO[@REVISION][:FILE], s3://BUCKET/KEY, gs://BUCKET/KEY or "
                      "https://HOST/FILE");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunPull(*flags); }; });
}

}  // namespace reprise::cli
