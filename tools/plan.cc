// reprise plan: the best buckets for a set of lengths, and the cost of others; the number of
// servers that a rate of them needs.

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "command_line/text_width.h"
#include "proto/model_config.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/boundaries.h"
#include "tools/command.h"
#include "tools/files/file_bytes.h"
#include "tools/files/length_file.h"
#include "tools/reports/plan_report.h"
#include "tools/reports/replica_plan.h"
#include "tools/server_lengths.h"

namespace reprise::cli {
namespace {

constexpr int kMostBuckets = 16;

struct PlanFlags {
  std::string file;
  std::string from;
  TlsFlags tls;
  std::string model;
  std::string version;
  std::string svg;
  std::string check;
  int64_t batch = 1;
  int buckets = kAutoBoundaries;
  std::string axis = "sequence";
  bool json = false;
  bool replicas = false;
  double rate = 0;  // requests a second
  double p99_ms = 0;
  std::string times;     // "LENGTH:MS,..."; empty: the server's
  int streams = 1;       // streams of each server
  double memory_mb = 0;  // one server's; 0: not known
  int servers = 0;       // whose load is asked for; 0: the fewest for `p99_ms`
  double overhead_ms = 0;
  int cores = 0;
  double slowdown = 1;
  double latency_ms = 0;
};

// The first error of a text, and where it is.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ": ", absl::CHexEscape(message));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Returns the rule that config.pbtxt has for the axis; without one, the default of a
// server.
absl::StatusOr<BoundaryRule> RuleOf(const std::string& path, const std::string& axis) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  inference::ModelConfig config;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &config)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not a config.pbtxt: ", error.text()));
  }
  for (const std::string& key :
       {absl::StrCat("reprise.buckets.", axis), absl::StrCat("reprise.", axis, "_buckets")}) {
    const auto it = config.parameters().find(key);
    if (it == config.parameters().end()) continue;
    absl::StatusOr<BoundaryRule> rule = ParseBoundaryRule(it->second.string_value());
    if (rule.ok()) return rule;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": parameter ", key, ": ", rule.status().message()));
  }
  return BoundaryRule{};
}

std::string CheckText(const PlannedLengths& lengths, const BoundaryRule& rule,
                      const BoundaryCost& cost, const std::string& path) {
  using Kind = BoundaryRule::Kind;
  std::vector<int64_t> sizes = rule.sizes;
  std::string what = absl::StrCat("the buckets of ", path);
  if (rule.kind == Kind::kAuto) {
    sizes = SolveBoundaries(lengths.longest, rule.most, cost).sizes;
    what = absl::StrCat(path, " lets the server find at most ", rule.most,
                        " buckets; on these lengths they");
  } else if (rule.kind == Kind::kPercentile) {
    sizes = PercentileBoundaries(lengths.replays, rule.most);
    what = absl::StrCat("the ", rule.most, " percentiles of ", path);
  }
  const Judgement now = Judge(lengths, sizes, cost);
  const int k = static_cast<int>(sizes.size());
  const Judgement best = Judge(lengths, SolveBoundaries(lengths.longest, k, cost).sizes, cost);
  std::string text =
      absl::StrFormat("\n%s (%s) waste %.1f %% and take %.3f of the time of exact lengths.\n", what,
                      JoinSizes(sizes), 100 * now.waste, now.time_ratio);
  if (now.beyond > 0) {
    absl::StrAppendFormat(&text,
                          "%.1f %% of the rows are longer than %d: each such length is a capture "
                          "of its own.\n",
                          100 * now.beyond, sizes.empty() ? 0 : sizes.back());
  }
  const double more = best.time > 0 ? now.time / best.time - 1 : 0;
  absl::StrAppendFormat(&text, "The best %d waste %.1f %%", k, 100 * best.waste);
  if (more > 0.02) {
    absl::StrAppendFormat(&text, ": change them, they cost %.1f %% more time than need be.\n",
                          100 * more);
  } else {
    absl::StrAppend(&text, ": keep them.\n");
  }
  return text;
}

// Asks a server for the lengths that it received, a row of a request each, and the costs of
// replays and recipes there.
absl::StatusOr<PlannedLengths> AskServer(const PlanFlags& flags, PlanFacts& facts,
                                         BoundaryCost& cost) {
  const ServerFlags server = {.server = flags.from, .tls = flags.tls};
  ASSIGN_OR_RETURN(auto client, server.Connect());
  ASSIGN_OR_RETURN(const ServerLengths found,
                   FindServerLengths(*client, flags.model, flags.version, flags.axis));
  facts.source = absl::StrCat(found.model, " version ", found.version, " at ", flags.from);
  facts.bytes_per_element = found.bytes_per_element;
  facts.capture_ms = found.capture_ms;
  facts.measured = found.cost.replays() > 0;
  if (facts.measured) {
    cost = [measured = found.cost](int64_t size) { return measured.Ns(1, size); };
  }
  return PlanCounts(found.lengths);
}

absl::StatusOr<PlannedLengths> ReadFile(const PlanFlags& flags, PlanFacts& facts) {
  facts.source = std::filesystem::path(flags.file).filename().string();
  ASSIGN_OR_RETURN(const std::vector<int64_t> read, ReadLengths(flags.file));
  return PlanLengths(read, flags.batch);
}

absl::Status WriteSvg(const std::string& path, const std::string& picture) {
  std::ofstream out(path, std::ios::binary);
  out << picture;
  out.flush();
  if (out) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write '", path, "'"));
}

// Finds how many servers the rate of such requests needs.
absl::Status RunReplicas(const PlanFlags& flags) {
  PlanFacts facts = {.axis = flags.axis};
  BoundaryCost cost;
  ASSIGN_OR_RETURN(const PlannedLengths lengths,
                   flags.from.empty() ? ReadFile(flags, facts) : AskServer(flags, facts, cost));
  ReplicaTraffic traffic = {.rate = flags.rate,
                            .streams = flags.streams,
                            .overhead_ms = flags.overhead_ms,
                            .latency_ms = flags.latency_ms,
                            .cores = flags.cores,
                            .slowdown = flags.slowdown};
  if (!flags.times.empty()) {
    ASSIGN_OR_RETURN(traffic.ms, ParseTimes(flags.times));
  } else if (facts.measured) {
    traffic.ms = [cost](int64_t size) { return cost(size) * 1e-6; };
  } else {
    return absl::InvalidArgumentError(
        "the times of requests are not known: --times LENGTH:MILLISECONDS,... gives them, as "
        "`reprise bench --profile` measures them");
  }
  traffic.lengths = lengths.replays;
  std::vector<ReplicaLoad> loads;
  if (flags.servers > 0) {
    loads.push_back(SimulateReplicas(traffic, flags.servers));
  } else {
    ASSIGN_OR_RETURN(loads, PlanReplicas(traffic, flags.p99_ms));
  }
  const ReplicaQuestion question = {.p99_ms = flags.p99_ms, .memory_mb = flags.memory_mb};
  if (flags.json) {
    std::printf("%s", ReplicaJson(loads, traffic, question).c_str());
  } else {
    command_line::Print(ReplicaText(loads, traffic, question));
  }
  return absl::OkStatus();
}

absl::Status RunPlan(const PlanFlags& flags) {
  PlanFacts facts = {.chosen = flags.buckets, .axis = flags.axis};
  BoundaryCost cost = [](int64_t size) { return static_cast<double>(size); };
  ASSIGN_OR_RETURN(const PlannedLengths lengths,
                   flags.from.empty() ? ReadFile(flags, facts) : AskServer(flags, facts, cost));
  const PlanTable table = MakePlan(lengths, std::max(kMostBuckets, flags.buckets), cost);
  if (flags.json) {
    if (!flags.svg.empty()) RETURN_IF_ERROR(WriteSvg(flags.svg, PlanSvg(lengths, table, facts)));
    std::printf("%s", PlanJson(lengths, table, facts).c_str());
    return absl::OkStatus();
  }
  command_line::Print(PlanText(lengths, table, facts));
  if (!flags.svg.empty()) {
    RETURN_IF_ERROR(WriteSvg(flags.svg, PlanSvg(lengths, table, facts)));
    std::printf("\npicture: %s\n", flags.svg.c_str());
  }
  if (!flags.check.empty()) {
    ASSIGN_OR_RETURN(const BoundaryRule rule, RuleOf(flags.check, flags.axis));
    command_line::Print(CheckText(lengths, rule, cost, flags.check));
  }
  std::printf("\nfor config.pbtxt:\n%s",
              PlanConfig(lengths, table.at(flags.buckets, Strategy::kSolver), facts).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddPlan(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Find buckets for lengths, and the waste of each strategy; or how many servers they need");
  command->footer(
      "A text file has a length a line; a CSV file a column `length` and, optionally, `count`.\n"
      "The report ends with the lines to paste into config.pbtxt.");
  CLI::Option* file =
      AddOption(*command, "lengths", flags->file, "FILE", "File of lengths, .txt or .csv");
  CLI::Option* from = AddOption(*command, "--from", flags->from, "HOST:PORT",
                                "Use the lengths of the requests that this "
                                "server received")
                          ->excludes(file);
  flags->tls.Add(*command);
  AddOption(*command, "--model", flags->model, "NAME",
            "Of the server; may be left out if it has one")
      ->needs(from);
  command->add_option("--version", flags->version, "Of the model; the newest if left out")
      ->needs(from);
  AddOption(*command, "-b,--batch", flags->batch, "N",
            "Rows that are padded together, to the longest, in the order of the file")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->excludes(from)
      ->capture_default_str();
  AddOption(*command, "-k,--buckets", flags->buckets, "K", "Buckets of the lines to paste")
      ->check(CLI::Range(1, static_cast<int>(kMostBoundaries)))
      ->capture_default_str();
  AddOption(*command, "--svg", flags->svg, "FILE", "Write a picture");
  CLI::Option* check = AddOption(*command, "--check", flags->check, "FILE",
                                 "Judge this config.pbtxt against the lengths");
  command
      ->add_flag("--json", flags->json,
                 "Print the cost of each strategy as JSON, whose fields docs/cli.md describes")
      ->excludes(check);
  AddOption(*command, "--axis", flags->axis, "NAME", "The axis that the lengths are of")
      ->capture_default_str();
  CLI::Option* replicas = command->add_flag(
      "--replicas", flags->replicas,
      "Find how many servers the lengths need, at --rate, for --p99-ms, instead of buckets");
  CLI::Option* rate =
      AddOption(*command, "--rate", flags->rate, "R", "Requests a second of all servers")
          ->check(CLI::Range(1e-3, 1e9))
          ->needs(replicas);
  CLI::Option* p99 = AddOption(*command, "--p99-ms", flags->p99_ms, "MS",
                               "Time within which 99 of 100 are answered")
                         ->check(CLI::Range(1e-3, 1e9))
                         ->needs(replicas);
  replicas->needs(rate);
  AddOption(*command, "--servers", flags->servers, "N",
            "Print the load of so many servers, and look for no number")
      ->check(CLI::Range(1, 1024))
      ->needs(replicas)
      ->excludes(p99);
  AddOption(*command, "--times", flags->times, "LENGTH:MS,...",
            "Milliseconds of a request by its length, 8:0.9,128:11.8,512:53.8; without it "
            "those that the server of --from measured")
      ->needs(replicas);
  AddOption(*command, "--streams", flags->streams, "N", "Streams of each server, a core each")
      ->check(CLI::Range(1, 1024))
      ->needs(replicas)
      ->capture_default_str();
  AddOption(*command, "--cores", flags->cores, "N",
            "Cores that all servers share, where they run on one machine; without it each "
            "stream has one")
      ->check(CLI::Range(1, 4096))
      ->needs(replicas);
  AddOption(*command, "--slowdown", flags->slowdown, "X",
            "How many times longer a request takes while all of --cores are busy than while "
            "one is: they share memory, and may be threads of one core")
      ->check(CLI::Range(1.0, 100.0))
      ->needs(replicas)
      ->capture_default_str();
  AddOption(*command, "--overhead-ms", flags->overhead_ms, "MS",
            "Core time of a request outside of streams: proxy, protocol, and a client on "
            "the same machine")
      ->check(CLI::Range(0.0, 1e6))
      ->needs(replicas);
  AddOption(*command, "--latency-ms", flags->latency_ms, "MS",
            "Time of a request outside of servers that takes no core: the network")
      ->check(CLI::Range(0.0, 1e6))
      ->needs(replicas);
  AddOption(*command, "--memory-mb", flags->memory_mb, "MB",
            "Memory of one server, as `reprise check` says it")
      ->check(CLI::Range(1.0, 1e9))
      ->needs(replicas);
  command->callback([flags, &action] {
    if (flags->file.empty() && flags->from.empty()) {
      throw CLI::RequiredError("a file of lengths, or --from HOST:PORT,");
    }
    if (flags->replicas && flags->p99_ms == 0 && flags->servers == 0) {
      throw CLI::RequiredError("--p99-ms or --servers");
    }
    action = [flags] { return flags->replicas ? RunReplicas(*flags) : RunPlan(*flags); };
  });
}

}  // namespace reprise::cli
