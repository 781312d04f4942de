// reprise dump: one recipe in full: launches, kernels, operands with offsets and bytes.

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using recipe::v1::Launch;
using recipe::v1::Operand;
using recipe::v1::Recipe;

struct DumpFlags {
  ServerFlags server;
  std::string key;
  bool arena = false;
  bool graph = false;
  bool constants = false;
  bool json = false;
};

const char* SpaceName(recipe::v1::Space space) {
  switch (space) {
    case recipe::v1::SPACE_ARENA:
      return "arena";
    case recipe::v1::SPACE_PARAMETER:
      return "param";
    case recipe::v1::SPACE_CONSTANT:
      return "const";
    case recipe::v1::SPACE_INPUT:
      return "input";
    case recipe::v1::SPACE_OUTPUT:
      return "output";
    default:
      return "?";
  }
}

// "arena[4096+98304]": offset and bytes; "param[3,98304]": slot and bytes; "_" if it is left out.
std::string OperandText(const Operand& operand) {
  if (operand.space() == recipe::v1::SPACE_UNSPECIFIED) return "_";
  const bool slot = operand.space() == recipe::v1::SPACE_PARAMETER;
  return absl::StrCat(SpaceName(operand.space()), "[", operand.offset(), slot ? "," : "+",
                      operand.bytes(), "]");
}

template <typename Operands>
std::string OperandsText(const Operands& operands) {
  return absl::StrJoin(operands, " ", [](std::string* out, const Operand& operand) {
    absl::StrAppend(out, OperandText(operand));
  });
}

std::string Marks(const Launch& launch) {
  std::string marks;
  if (launch.takes_live_rows()) absl::StrAppend(&marks, "live-rows ");
  if (launch.foreign()) absl::StrAppend(&marks, "foreign ");
  if (!marks.empty()) marks.pop_back();
  return marks;
}

void PrintHead(const v1::RecipeInfo& info, const Recipe& recipe) {
  std::printf("recipe %s\n", info.key().c_str());
  Table table({{"what"}, {"value"}});
  table.AddRow({"model", absl::StrCat(info.model(), " version ", info.version())});
  table.AddRow({"bucket", absl::StrCat(info.bucket(), " (", info.binding(), ")")});
  table.AddRow({"captured", absl::StrFormat("%s, in %.1f ms", info.reason(), info.capture_ms())});
  table.AddRow({"tuned", info.tuned() ? info.tuning() : "no"});
  table.AddRow({"device", recipe.key().device()});
  table.AddRow({"precision", recipe.key().precision()});
  table.AddRow({"compiler", recipe.key().compiler()});
  table.AddRow({"launches", absl::StrCat(recipe.launches_size())});
  const auto foreign = std::count_if(recipe.launches().begin(), recipe.launches().end(),
                                     [](const Launch& launch) { return launch.foreign(); });
  table.AddRow({"foreign launches", absl::StrCat(foreign)});
  table.AddRow({"arena", absl::StrCat(recipe.arena().bytes(), " bytes (",
                                      Bytes(recipe.arena().bytes()), ")")});
  table.AddRow({"replays", Count(info.replays())});
  std::printf("%s\n", table.Text().c_str());
}

void PrintSlots(const Recipe& recipe) {
  Table table({{"slot"}, {"name"}, {"dtype"}, {"shape"}, {"place"}});
  auto add = [&table](const char* kind, const recipe::v1::Slot& slot) {
    table.AddRow({kind, slot.name(), slot.operand().dtype(),
                  absl::StrJoin(slot.operand().shape(), "x"), OperandText(slot.operand())});
  };
  for (const auto& slot : recipe.inputs()) add("input", slot);
  for (const auto& slot : recipe.outputs()) add("output", slot);
  std::printf("%s\n", table.Text().c_str());
}

void PrintLaunches(const Recipe& recipe) {
  Table table({{"#", kRight},
               {"kernel"},
               {"detail"},
               {"reads"},
               {"writes"},
               {"workspace"},
               {"marks"},
               {"node"}});
  for (int i = 0; i < recipe.launches_size(); ++i) {
    const Launch& launch = recipe.launches(i);
    table.AddRow({absl::StrCat(i), launch.kernel(), Shorten(launch.detail(), 60),
                  OperandsText(launch.inputs()), OperandsText(launch.outputs()),
                  launch.has_workspace() ? OperandText(launch.workspace()) : "", Marks(launch),
                  Shorten(launch.node(), 48)});
  }
  std::printf("%s", table.Text().c_str());
}

void PrintParameters(const Recipe& recipe) {
  if (recipe.parameters().empty()) return;
  Table table({{"param", kRight}, {"dtype"}, {"shape"}, {"bytes", kRight}, {"made by"}});
  for (int i = 0; i < recipe.parameters_size(); ++i) {
    const auto& parameter = recipe.parameters(i);
    table.AddRow({absl::StrCat(i), parameter.result().dtype(),
                  absl::StrJoin(parameter.result().shape(), "x"),
                  absl::StrCat(parameter.result().bytes()), Shorten(parameter.expression(), 100)});
  }
  std::printf("\n%s", table.Text().c_str());
}

void PrintArena(const Recipe& recipe) {
  if (recipe.arena().values().empty()) return;
  Table table({{"offset", kRight}, {"bytes", kRight}, {"launches", kRight}, {"value"}});
  for (const auto& value : recipe.arena().values()) {
    table.AddRow({absl::StrCat(value.offset()), absl::StrCat(value.bytes()),
                  absl::StrCat(value.first_launch(), "..", value.last_launch()), value.name()});
  }
  std::printf("\n%s", table.Text().c_str());
}

// Lines that begin with // are no part of a graph: the text between them can be read again.
void PrintGraphs(const v1::DumpRecipeResponse& response) {
  std::printf("// recipe %s of model %s, %s (%s)\n// the graph before it got its sizes\n",
              response.info().key().c_str(), response.info().model().c_str(),
              response.info().bucket().c_str(), response.info().binding().c_str());
  std::printf("%s", response.symbolic_graph().c_str());
  if (response.graph().empty()) {
    std::printf("// the graph after the passes cannot be made again\n");
    return;
  }
  std::printf("// the graph after the passes, that kernels were chosen for\n");
  std::printf("%s", response.graph().c_str());
}

absl::Status RunDump(const DumpFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto response,
                   client->DumpRecipe(flags.key, {.graphs = flags.graph || flags.constants,
                                                  .constants = flags.constants}));
  if (flags.json) return PrintJson(response);
  if (flags.graph || flags.constants) {
    PrintGraphs(response);
    return absl::OkStatus();
  }
  PrintHead(response.info(), response.recipe());
  PrintSlots(response.recipe());
  PrintLaunches(response.recipe());
  PrintParameters(response.recipe());
  if (flags.arena) PrintArena(response.recipe());
  return absl::OkStatus();
}

}  // namespace

void AddDump(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DumpFlags>();
  CLI::App* command = app.add_subcommand("dump", "Show one recipe: launches, kernels, offsets");
  command->footer(
      "An operand is SPACE[OFFSET+BYTES], or param[SLOT,BYTES]: where a launch reads or writes.");
  flags->server.Add(*command);
  AddOption(*command, "-r,--recipe", flags->key, "KEY",
            "Key of the recipe, as `reprise recipes` lists it")
      ->required();
  command->add_flag("--arena", flags->arena, "Also list the values in the arena by offset");
  command->add_flag("--graph", flags->graph,
                    "Show its graph as text instead: symbolic, and after the passes");
  command->add_flag("--constants", flags->constants, "As --graph, with the bytes of all constants");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunDump(*flags); }; });
}

}  // namespace reprise::cli
