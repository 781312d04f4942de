// reprise recipes: the recipes that are in memory.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "client/cli/timestamp.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

struct RecipesFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  bool json = false;
  bool eager = false;
};

// "f32[1,17,384] weight f32[384,1536]".
std::string ShapesText(const google::protobuf::RepeatedPtrField<v1::ShapedTensor>& tensors) {
  std::vector<std::string> parts;
  for (const v1::ShapedTensor& tensor : tensors) {
    parts.push_back(absl::StrCat(tensor.weight() ? "weight " : "", tensor.dtype(), "[",
                                 absl::StrJoin(tensor.shape(), ","), "]"));
  }
  return absl::StrJoin(parts, " ");
}

// Lists the weights of eager runs by op and shape, whichever model asked for them first.
absl::Status RunEager(const RecipesFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto response, client->ListEager(flags.model, flags.version));
  if (flags.json) return PrintJson(response);
  Table table({{"key"},
               {"op"},
               {"shapes"},
               {"first of model"},
               {"launches", kRight},
               {"bytes", kRight},
               {"hits", kRight},
               {"last used", kRight}});
  for (const auto& recipe : response.recipes()) {
    table.AddRow({recipe.key(), recipe.op(),
                  absl::StrCat(ShapesText(recipe.inputs()), " -> ", ShapesText(recipe.outputs())),
                  recipe.model(), absl::StrCat(recipe.launches()), Bytes(recipe.bytes()),
                  Count(recipe.replays()), recipe.has_last_used() ? Ago(recipe.last_used()) : "-"});
  }
  if (table.empty()) {
    std::printf("nothing yet: an op is prepared when an eager run meets it with enough data\n");
  } else {
    std::printf("%s", table.Text().c_str());
  }
  return absl::OkStatus();
}

absl::Status RunRecipes(const RecipesFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto response, client->ListRecipes(flags.model, flags.version));
  if (flags.json) return PrintJson(response);
  Table table({{"recipe"},
               {"model"},
               {"version"},
               {"bucket"},
               {"binding"},
               {"reason"},
               {"precision"},
               {"tuned"},
               {"launches", kRight},
               {"arena", kRight},
               {"capture ms", kRight},
               {"replays", kRight},
               {"last used", kRight}});
  for (const auto& recipe : response.recipes()) {
    table.AddRow({recipe.key(), recipe.model(), recipe.version(), recipe.bucket(), recipe.binding(),
                  recipe.reason(), recipe.precision(), recipe.tuned() ? "yes" : "no",
                  absl::StrCat(recipe.launches()), Bytes(recipe.arena_bytes()),
                  Fixed(recipe.capture_ms(), 1), Count(recipe.replays()),
                  recipe.has_last_used() ? Ago(recipe.last_used()) : "-"});
  }
  if (table.empty()) {
    std::printf("no recipes yet: the first request of each shape captures one\n");
  } else {
    std::printf("%s", table.Text().c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecipes(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RecipesFlags>();
  CLI::App* command = app.add_subcommand("recipes", "List the recipes that are in memory");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Only this model");
  command->add_option("--version", flags->version, "Only this version");
  AddJson(*command, flags->json);
  command->add_flag("--eager", flags->eager,
                    "List the kernels that eager runs keep, by op and "
                    "shape");
  command->callback([flags, &action] {
    action = [flags] { return flags->eager ? RunEager(*flags) : RunRecipes(*flags); };
  });
}

}  // namespace reprise::cli
