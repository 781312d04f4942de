// reprise explain: why recipes were captured and which requests waited; which parts of a model may
// be padded and why.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "client/cli/timestamp.h"
#include "command_line/similar_names.h"
#include "command_line/text_width.h"
#include "proto/message_json.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

constexpr std::chrono::milliseconds kFollowInterval(300);

struct ExplainFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  bool follow = false;
  bool json = false;
};

std::string SignedBytes(int64_t bytes) {
  return bytes < 0 ? absl::StrCat("-", Bytes(-bytes)) : absl::StrCat("+", Bytes(bytes));
}

// "    because  WORDS", within the terminal.
void PrintLine(const char* label, const std::string& words) {
  constexpr size_t kIndent = 13, kAnyWidth = size_t{1} << 20;
  const size_t first = std::max(kIndent, 5 + command_line::WidthOf(label));
  const size_t width = command_line::TerminalWidth(kAnyWidth);
  std::printf("    %-8s %s\n", label, command_line::Wrap(words, width, kIndent, first).c_str());
}

// A binding of more characters, and the fields of one beyond the first, are cut: --json has all.
constexpr size_t kWidestBinding = 120, kWidestSize = 40, kMostDifferences = 8;

// Returns the sizes of a capture, of many axes those that no ready recipe had.
std::string SizesOfMiss(const v1::MissRecord& miss) {
  if (miss.binding().size() <= kWidestBinding) return miss.binding();
  std::vector<std::string> differing;
  for (const auto& one : miss.differences()) {
    if (differing.size() == kMostDifferences) break;
    differing.push_back(absl::StrCat(one.field(), "=", Shorten(one.wanted(), kWidestSize)));
  }
  if (differing.empty()) return Shorten(miss.binding(), kWidestBinding);
  return absl::StrCat(absl::StrJoin(differing, " "), " …");
}

// Returns the differences from the nearest ready recipe.
std::string DifferencesOf(const v1::MissRecord& miss) {
  std::vector<std::string> differences;
  for (const auto& one : miss.differences()) {
    if (differences.size() == kMostDifferences) {
      differences.push_back(
          absl::StrCat("and ", miss.differences_size() - kMostDifferences, " more"));
      break;
    }
    differences.push_back(absl::StrCat(one.field(), " ", Shorten(one.had(), kWidestSize),
                                       ", needed ", Shorten(one.wanted(), kWidestSize)));
  }
  return absl::StrJoin(differences, "; ");
}

void PrintMiss(const v1::MissRecord& miss) {
  command_line::Print(absl::StrCat("#", miss.sequence(), "  ", Ago(miss.time()), "  ", miss.model(),
                                   "  ", miss.bucket(), "  (", SizesOfMiss(miss), ")  ",
                                   miss.reason(), miss.behind() ? ", in background" : "", "\n"));
  std::printf("    recipe   %s\n", miss.recipe().c_str());
  if (!miss.section().empty()) std::printf("    section  %s\n", miss.section().c_str());
  if (!miss.cause().empty()) std::printf("    changed  %s\n", miss.cause().c_str());
  if (miss.nearest().empty()) {
    std::printf("    nearest  none was ready\n");
  } else {
    PrintLine("nearest",
              absl::StrCat(Shorten(miss.nearest(), kWidestBinding), ": ", DifferencesOf(miss)));
  }
  std::vector<std::string> phases;
  int64_t rss_bytes = 0;
  for (const auto& phase : miss.phases()) {
    std::string text = absl::StrCat(phase.name(), " ", Fixed(phase.ms(), 1));
    if (phase.rss_bytes() != 0) absl::StrAppend(&text, " (", SignedBytes(phase.rss_bytes()), ")");
    rss_bytes += phase.rss_bytes();
    phases.push_back(std::move(text));
  }
  PrintLine("cost", absl::StrCat(Fixed(miss.total_ms(), 1), " ms: ", absl::StrJoin(phases, ", ")));
  PrintLine("memory",
            absl::StrCat("recipe ", Bytes(miss.recipe_bytes()), ", replay ",
                         Bytes(miss.frame_bytes()), ", process ", SignedBytes(rss_bytes)));
  if (miss.num_waiters() == 0) {
    std::printf("    waited   no request\n");
  } else {
    std::vector<std::string> who;
    for (const auto& waiter : miss.waiters()) {
      if (waiter.request_id().empty()) continue;
      who.push_back(absl::StrCat(waiter.request_id(), " ", Fixed(waiter.waited_ms(), 1), " ms"));
    }
    PrintLine("waited",
              absl::StrCat(miss.num_waiters(), miss.num_waiters() == 1 ? " request" : " requests",
                           ", at most ", Fixed(miss.longest_wait_ms(), 1), " ms",
                           who.empty() ? "" : ": ", absl::StrJoin(who, ", ")));
  }
  if (!miss.suggestion().empty()) PrintLine("avoid", miss.suggestion());
  std::printf("\n");
}

std::string BoundariesText(const google::protobuf::RepeatedPtrField<v1::AxisBoundaries>& sets) {
  return absl::StrJoin(sets, "; ", [](std::string* out, const v1::AxisBoundaries& one) {
    absl::StrAppend(out, one.axis(), " ", absl::StrJoin(one.sizes(), ","));
  });
}

void PrintBuckets(const v1::BucketLearning& buckets) {
  if (buckets.in_force().empty()) return;
  std::printf("buckets: %s\n", buckets.policy() == "apply"     ? "follow the traffic"
                               : buckets.policy() == "suggest" ? "stay; better ones are shown"
                                                               : "stay");
  PrintLine("in force", BoundariesText(buckets.in_force()));
  if (buckets.policy() == "off") {
    std::printf("    padding  %.1f%% of the computed elements\n\n", 100 * buckets.actual_waste());
    return;
  }
  std::printf("    learnt   from %llu requests, changed %llu times\n",
              static_cast<unsigned long long>(buckets.requests()),
              static_cast<unsigned long long>(buckets.changes()));
  PrintLine("padding",
            absl::StrFormat("%.1f%% of the computed elements; %.1f%% expected, %.1f%% at best",
                            100 * buckets.actual_waste(), 100 * buckets.expected_waste(),
                            100 * buckets.best_waste()));
  std::printf("    drift    %.2f\n", buckets.drift());
  if (!buckets.suggestion().empty()) {
    PrintLine("better",
              absl::StrFormat("%s: saves %.1f%% of the computing time, pays in %.0f s%s",
                              BoundariesText(buckets.suggestion()),
                              100 * buckets.suggested_saving(), buckets.suggested_payback_seconds(),
                              buckets.changing() ? "; being captured" : ""));
  }
  std::printf("\n");
}

void PrintCuts(const v1::ExplainModelResponse& model) {
  for (const auto& cut : model.cuts()) {
    std::printf("cut at %s '%s'\n", cut.op().c_str(), cut.node().c_str());
    PrintLine("because", cut.reason());
    PrintLine(
        "so",
        "it runs by itself for each request, and the nodes after it at the sizes that it finds");
    std::printf("\n");
  }
  for (const auto& section : model.sections()) {
    std::printf("section %s\n", section.section().c_str());
    for (const std::string& size : section.sizes()) std::printf("    size     %s\n", size.c_str());
    std::printf("\n");
  }
}

void PrintEagerCache(const v1::EagerCacheUse& use) {
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("eager runs: %llu\n", number(use.hits() + use.misses()));
  std::printf("    prepared %llu times, found prepared %llu times\n", number(use.misses()),
              number(use.hits()));
  PrintLine("kept", absl::StrFormat("%d, %.1f kB; %d went because room was needed", use.ops(),
                                    static_cast<double>(use.bytes()) / 1e3, use.evictions()));
  std::printf("\n");
}

// Prints the slowest requests of the last minutes, each by the stage that took longest.
void PrintSlowRequests(const v1::ExplainModelResponse& model) {
  if (model.slow_requests().empty()) return;
  std::printf("slowest requests of the last 10 minutes:\n");
  for (const auto& request : model.slow_requests()) {
    std::vector<std::string> stages;
    for (const auto& stage : request.stages()) {
      stages.push_back(absl::StrCat(stage.name(), " ", Fixed(stage.ms(), 2)));
    }
    command_line::Print(absl::StrCat(
        "    ", Fixed(request.total_ms(), 2), " ms, most of it in ", request.stage(), ": ",
        absl::StrJoin(stages, ", "), " (", request.bucket(), ", ", request.capture(),
        request.id().empty() ? "" : absl::StrCat(", id ", request.id()), ", ", Ago(request.time()),
        ")\n"));
  }
  std::printf("\n");
}

// Returns the axes along which requests share recipes, and those along which each size has its own.
std::string VerdictOf(const v1::ExplainModelResponse& model) {
  if (!model.generation().empty()) return "it makes tokens, with keys and values in pages";
  std::vector<std::string> padded, exact;
  for (const auto& axis : model.axes()) {
    (axis.certified() ? padded : exact).push_back(axis.axis());
  }
  std::vector<std::string> words;
  if (!padded.empty()) {
    words.push_back(absl::StrCat("requests share recipes along ", absl::StrJoin(padded, ", ")));
  }
  if (!exact.empty()) {
    words.push_back(
        absl::StrCat("each size has a recipe of its own along ", absl::StrJoin(exact, ", ")));
  }
  if (model.cuts_size() > 0) words.push_back("it is cut where data decide shapes");
  return absl::StrJoin(words, "; ");
}

void PrintModel(const v1::ExplainModelResponse& model) {
  const std::string verdict = VerdictOf(model);
  command_line::Print(absl::StrCat(model.model(), " version ", model.version(),
                                   verdict.empty() ? "" : ": ", verdict, "\n\n"));
  if (!model.precision().empty()) {
    command_line::Print(absl::StrCat("precision: ", model.precision(), "\n\n"));
  }
  if (model.axes().empty()) std::printf("The model has no axis: there is one shape.\n\n");
  if (!model.generation().empty()) {
    std::printf("pages\n");
    PrintLine("form", model.generation());
    command_line::Print("\nrequests of tensors, which bring keys and values themselves:\n\n");
  }
  // Most of a decoder's requests meet no padding: its axes are no fault.
  const char* const refused =
      model.generation().empty() ? "NOT safe to pad" : "each size has a recipe of its own";
  for (const auto& axis : model.axes()) {
    command_line::Print(
        absl::StrCat("axis ", axis.axis(),
                     axis.symbol() == axis.axis() ? "" : absl::StrCat(" (", axis.symbol(), ")"),
                     ": ", axis.certified() ? "safe to pad" : refused, "\n"));
    PrintLine("because", axis.reason());
    PrintLine("so", axis.consequence());
    for (const auto& guard : axis.guards()) {
      PrintLine("guard",
                absl::StrFormat("%s: padding is filled with %g", guard.input(), guard.fill()));
    }
    if (!axis.free_inputs().empty()) {
      PrintLine("free", absl::StrCat(command_line::JoinSimilar(std::vector<std::string>(
                                         axis.free_inputs().begin(), axis.free_inputs().end())),
                                     ": whatever the padding holds, answers are the same"));
    }
    if (!axis.buckets().empty()) {
      PrintLine("buckets", absl::StrJoin(axis.buckets(), ", "));
    }
    std::printf("\n");
  }
  PrintCuts(model);
  PrintSlowRequests(model);
  if (model.has_eager_cache()) PrintEagerCache(model.eager_cache());
  if (model.has_buckets()) PrintBuckets(model.buckets());
}

// Prints how the kernels of the recipes in memory were chosen.
void PrintTuning(const v1::ListRecipesResponse& recipes) {
  if (recipes.recipes().empty()) return;
  std::printf("kernels:\n");
  for (const auto& recipe : recipes.recipes()) {
    const std::string name =
        recipe.bucket() == "exact" ? Shorten(recipe.binding(), kWidestBinding) : recipe.bucket();
    PrintLine(name.c_str(),
              recipe.tuned() ? absl::StrCat("tuned: ", recipe.tuning()) : "as captured, not tuned");
  }
  std::printf("\n");
}

// Prints one object: "model" where one was asked for, and "captures".
absl::Status ExplainAsJson(client::Client& client, const ExplainFlags& flags) {
  std::string model;
  if (!flags.model.empty()) {
    ASSIGN_OR_RETURN(const auto explained, client.ExplainModel(flags.model, flags.version));
    model = absl::StrCat("\"model\": ", MessageToJson(explained, 2), ",\n");
  }
  ASSIGN_OR_RETURN(const auto misses, client.ExplainMisses(flags.model, flags.version, 0));
  std::printf("{%s\"captures\": %s}\n", model.c_str(), MessageToJson(misses, 2).c_str());
  return absl::OkStatus();
}

absl::Status RunExplain(const ExplainFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  if (flags.json) return ExplainAsJson(*client, flags);
  if (!flags.model.empty()) {
    ASSIGN_OR_RETURN(const auto model, client->ExplainModel(flags.model, flags.version));
    PrintModel(model);
    ASSIGN_OR_RETURN(const auto recipes, client->ListRecipes(flags.model, model.version()));
    PrintTuning(recipes);
  }
  uint64_t seen = 0;
  bool any = false;
  while (true) {
    ASSIGN_OR_RETURN(const auto misses, client->ExplainMisses(flags.model, flags.version, seen));
    for (const auto& miss : misses.misses()) PrintMiss(miss);
    any = any || !misses.misses().empty();
    seen = misses.last_sequence();
    if (!any && seen == 0 && !flags.follow) std::printf("nothing was captured yet\n");
    std::fflush(stdout);
    if (!flags.follow) return absl::OkStatus();
    std::this_thread::sleep_for(kFollowInterval);
  }
}

}  // namespace

void AddExplain(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand(
      "explain",
      "Show why recipes were captured and which requests waited, or how a model may be "
      "padded and why");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "This model: its certificate, and its captures");
  command->add_option("--version", flags->version, "Only this version");
  CLI::Option* follow =
      command->add_flag("--follow", flags->follow, "Keep printing captures as they happen");
  command->add_flag("--json", flags->json, "Print JSON, whose fields docs/cli.md describes")
      ->excludes(follow);
  command->callback([flags, &action] { action = [flags] { return RunExplain(*flags); }; });
}

}  // namespace reprise::cli
