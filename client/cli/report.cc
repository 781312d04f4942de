// reprise report: the captures of a server, with their reasons and costs, as one HTML file.

#include <cstdio>
#include <ctime>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "client/files/html_page.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using client::HtmlPage;

struct ReportFlags {
  ServerFlags server;
  std::string model;
  std::string out;
  uint64_t graphs = 16;
  bool json = false;
};

std::string Milliseconds(double ms) { return absl::StrCat(Fixed(ms, ms < 10 ? 2 : 1), " ms"); }

// Returns UTC, to the second.
std::string TimeText(const google::protobuf::Timestamp& time) {
  const std::time_t seconds = time.seconds();
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

void PutServer(const v1::GetStatsResponse& stats, HtmlPage& page) {
  page.AddHeading(2, "Server");
  page.AddTable(
      {"", ""},
      {{"version", stats.server_version()},
       {"device", stats.device()},
       {"started", absl::StrCat(TimeText(stats.started()), " UTC")},
       {"streams",
        absl::StrCat(stats.streams(), " of at most ", stats.threads_per_stream(), " threads")},
       {"resident memory", Bytes(stats.resident_bytes())},
       {"recipes", absl::StrCat(Count(stats.cache().recipes()), ", ", Bytes(stats.cache().bytes()),
                                " of ", Bytes(stats.cache().max_bytes()))}});
}

void PutStats(const v1::ModelStats& stats, HtmlPage& page) {
  const auto counts = [](const auto& list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const v1::ReasonCount& one) {
      absl::StrAppend(out, one.reason(), " ", Count(one.count()));
    });
  };
  page.AddTable(
      {"requests", "rows", "replays", "captures", "by reason", "time of captures",
       "time of requests"},
      {{Count(stats.requests()), Count(stats.rows()), Count(stats.replays()),
        Count(stats.compiles()), counts(stats.compiles_by_reason()),
        Seconds(stats.compile_seconds()),
        stats.requests() == 0
            ? "-"
            : Seconds(stats.request_seconds() / static_cast<double>(stats.requests())) + " mean"}});
  page.AddHeading(3, "Padding and times");
  std::vector<HtmlPage::Row> axes;
  for (const v1::AxisStats& axis : stats.axes()) {
    const auto padded = static_cast<double>(axis.padded_elements());
    const double all = padded + static_cast<double>(axis.valid_elements());
    axes.push_back({axis.axis(), Count(axis.valid_elements()), Count(axis.padded_elements()),
                    all > 0 ? Percent(padded, all) : "-"});
  }
  page.AddTable({"axis", "sent", "padded", "share of padding"}, axes);
  std::vector<HtmlPage::Bar> bars;
  for (const v1::BucketStats& bucket : stats.replays_by_bucket()) {
    if (bucket.replays() == 0) continue;
    const double mean = bucket.compute_seconds() / static_cast<double>(bucket.replays());
    bars.push_back({bucket.bucket(), bucket.compute_seconds(),
                    absl::StrCat(Count(bucket.replays()), " x ", Seconds(mean))});
  }
  page.AddBars(bars);
}

void PutGuards(const v1::ExplainModelResponse& model, HtmlPage& page) {
  page.AddHeading(3, "Guards");
  std::vector<HtmlPage::Row> rows;
  for (const v1::AxisExplanation& axis : model.axes()) {
    const std::string guards =
        absl::StrJoin(axis.guards(), ", ", [](std::string* out, const v1::GuardInput& guard) {
          absl::StrAppend(out, guard.input(), " filled with ", guard.fill());
        });
    rows.push_back({axis.axis(), axis.certified() ? "may be padded" : "may not be padded",
                    axis.reason(), guards.empty() ? "-" : guards,
                    absl::StrJoin(axis.free_inputs(), ", "),
                    absl::StrCat(" ", absl::StrJoin(axis.buckets(), ", "))});
  }
  page.AddTable({"axis", "padding", "why", "guards", "free inputs", "buckets"}, rows);
  rows.clear();
  for (const v1::CutExplanation& cut : model.cuts()) {
    rows.push_back({absl::StrCat(cut.op(), " '", cut.node(), "'"), cut.reason()});
  }
  page.AddTable({"graph break", "why"}, rows);
  rows.clear();
  for (const v1::SlowRequest& slow : model.slow_requests()) {
    const std::string stages =
        absl::StrJoin(slow.stages(), ", ", [](std::string* out, const v1::StageTime& stage) {
          absl::StrAppend(out, stage.name(), " ", Milliseconds(stage.ms()));
        });
    rows.push_back({slow.id().empty() ? "-" : slow.id(), TimeText(slow.time()),
                    Milliseconds(slow.total_ms()), slow.bucket(), slow.capture(), stages});
  }
  page.AddTable({"slow request", "time", "took", "bucket", "capture", "stages"}, rows);
}

void PutCaptures(const v1::ExplainMissesResponse& misses, const std::string& model,
                 HtmlPage& page) {
  page.AddHeading(3, "Captures");
  std::vector<HtmlPage::Row> rows;
  for (const v1::MissRecord& miss : misses.misses()) {
    if (miss.model() != model) continue;
    const std::string differences =
        absl::StrJoin(miss.differences(), "; ", [](std::string* out, const v1::KeyDifference& one) {
          absl::StrAppend(out, one.field(), " ", one.had(), ", needed ", one.wanted());
        });
    const std::string phases =
        absl::StrJoin(miss.phases(), ", ", [](std::string* out, const v1::CapturePhase& phase) {
          absl::StrAppend(out, phase.name(), " ", Milliseconds(phase.ms()));
        });
    rows.push_back({Count(miss.sequence()), TimeText(miss.time()), miss.bucket(),
                    absl::StrCat(miss.binding(), miss.section().empty() ? "" : " ", miss.section()),
                    absl::StrCat(miss.reason(), miss.cause().empty() ? "" : ": ", miss.cause()),
                    miss.nearest().empty() ? "-" : absl::StrCat(miss.nearest(), ": ", differences),
                    Milliseconds(miss.total_ms()), phases,
                    miss.num_waiters() == 0 ? "-"
                                            : absl::StrCat(Count(miss.num_waiters()), ", at most ",
                                                           Milliseconds(miss.longest_wait_ms())),
                    miss.suggestion().empty() ? "-" : miss.suggestion()});
  }
  if (rows.empty()) page.AddParagraph("Nothing was captured.");
  page.AddTable({"#", "time", "bucket", "sizes", "reason", "nearest recipe", "took", "phases",
                 "requests that waited", "what avoids it"},
                rows);
}

void PutRecompilations(const v1::ModelRecompilations& model, HtmlPage& page) {
  page.AddHeading(3, "New shapes");
  page.AddParagraph(absl::StrCat("A graph of fixed shapes would have been compiled again at ",
                                 Count(model.recompiled()), " of ", Count(model.steps()),
                                 " requests; ", Count(model.captured()), " recipes serve them."));
  std::vector<HtmlPage::Row> rows;
  for (const v1::RecompileRow& row : model.rows()) {
    rows.push_back({Count(row.step()), row.request_id().empty() ? "-" : row.request_id(),
                    row.module(), row.op(), row.new_in(), row.new_out(), row.cause(),
                    row.location().empty() ? "-" : row.location(), row.comment()});
  }
  page.AddTable(
      {"request", "id", "module", "op", "new in", "new out", "cause", "source", "served by"}, rows);
}

std::string LaunchLines(const reprise::recipe::v1::Recipe& recipe) {
  std::string text;
  for (int i = 0; i < recipe.launches_size(); ++i) {
    const auto& launch = recipe.launches(i);
    absl::StrAppend(&text, i, "  ", launch.kernel(), "  ", launch.node(), "  ", launch.detail(),
                    "\n");
  }
  return text;
}

absl::Status PutRecipes(client::Client& client, const std::string& model, uint64_t& graphs_left,
                        HtmlPage& page) {
  ASSIGN_OR_RETURN(const v1::ListRecipesResponse recipes, client.ListRecipes(model));
  page.AddHeading(3, "Recipes and graphs");
  std::vector<HtmlPage::Row> rows;
  for (const v1::RecipeInfo& one : recipes.recipes()) {
    rows.push_back({one.key(), one.bucket(), one.binding(), Count(one.launches()),
                    Bytes(one.bytes()), Bytes(one.arena_bytes()), Count(one.replays()),
                    Milliseconds(one.capture_ms()), one.reason(),
                    one.tuning().empty() ? "-" : one.tuning()});
  }
  page.AddTable({"recipe", "bucket", "sizes", "launches", "bytes", "arena", "replays", "capture",
                 "reason", "tuning"},
                rows);
  for (const v1::RecipeInfo& one : recipes.recipes()) {
    if (graphs_left == 0) {
      page.AddParagraph("The graphs of further recipes are left out: see --graphs.");
      break;
    }
    --graphs_left;
    const auto dump = client.DumpRecipe(one.key(), {.graphs = true});
    if (absl::IsNotFound(dump.status())) continue;  // It left the cache meanwhile.
    RETURN_IF_ERROR(dump.status());
    const std::string who = absl::StrCat(one.key(), " (", one.bucket(), ")");
    page.AddFolded(absl::StrCat("launches of ", who), LaunchLines(dump->recipe()));
    if (!dump->graph().empty()) page.AddFolded(absl::StrCat("graph of ", who), dump->graph());
  }
  return absl::OkStatus();
}

absl::Status RunReport(const ReportFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const v1::GetStatsResponse stats, client->GetStats(flags.model));
  if (!flags.model.empty() && stats.models().empty()) {
    return absl::NotFoundError(absl::StrCat("the server has no model '", flags.model, "'"));
  }
  ASSIGN_OR_RETURN(const v1::ExplainMissesResponse misses,
                   client->ExplainMisses(flags.model, "", 0));
  HtmlPage page(flags.model.empty() ? "Reprise: what was compiled, and why"
                                    : absl::StrCat("Reprise: what was compiled for ", flags.model));
  PutServer(stats, page);
  uint64_t graphs_left = flags.graphs;
  for (const v1::ModelStats& model : stats.models()) {
    page.AddHeading(2, absl::StrCat(model.model(), model.version().empty() ? "" : " version ",
                                    model.version()));
    if (model.state() != "READY") {
      page.AddParagraph(absl::StrCat("The version is ", model.state(), "."));
      continue;
    }
    PutStats(model, page);
    ASSIGN_OR_RETURN(const v1::ExplainModelResponse explained,
                     client->ExplainModel(model.model(), model.version()));
    PutGuards(explained, page);
    PutCaptures(misses, model.model(), page);
    ASSIGN_OR_RETURN(const v1::GetRecompilationsResponse recompilations,
                     client->GetRecompilations(model.model(), model.version()));
    for (const auto& one : recompilations.models()) PutRecompilations(one, page);
    RETURN_IF_ERROR(PutRecipes(*client, model.model(), graphs_left, page));
  }
  const std::string text = page.Text();
  std::ofstream file(flags.out);
  file << text;
  file.flush();
  if (!file)
    return absl::PermissionDeniedError(absl::StrCat("'", flags.out, "' cannot be written"));
  if (flags.json) {
    return PrintJson({{"file", flags.out},
                      {"bytes", text.size()},
                      {"models", stats.models_size()},
                      {"captures", misses.misses_size()}});
  }
  std::printf("%s: %s, %d models, %d captures\n", flags.out.c_str(), Bytes(text.size()).c_str(),
              stats.models_size(), misses.misses_size());
  return absl::OkStatus();
}

}  // namespace

void AddReport(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand(
      "report", "Write captures, reasons, guards, padding, times and graphs as one HTML file");
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Name of the model; all if left out");
  AddOption(*command, "--out", flags->out, "FILE.html", "File to write")->required();
  command->add_option("--graphs", flags->graphs, "Most recipes whose launches and graphs are shown")
      ->capture_default_str();
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunReport(*flags); }; });
}

}  // namespace reprise::cli
