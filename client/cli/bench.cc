// reprise bench: closed-loop load, throughput, percentiles, and which bucket served how much.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/generate_report.h"
#include "client/cli/lengths.h"
#include "client/cli/load.h"
#include "client/cli/load_report.h"
#include "client/cli/random_inputs.h"
#include "command_line/progress.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

// Drawn once; a longer run starts over.
constexpr size_t kDrawnLengths = 1 << 14;

struct BenchFlags {
  ServerFlags server;
  LoadOptions load;
  std::string lengths = "uniform:1-128";
  std::string texts;
  double duration_s = 0;
  int64_t warmup_requests = 0;
  bool profile = false;
  bool json = false;
  std::string metrics_file;
  bool generate = false;
  std::string output_lengths = "64";
  GenerateLoadOptions tokens;
};

absl::StatusOr<LoadResult> RunWithBar(client::Client& client, const LoadOptions& options,
                                      const std::string& label) {
  command_line::Progress bar(label);
  const auto start = std::chrono::steady_clock::now();
  return RunLoad(client, options, [&](int64_t finished) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double limit_s = std::chrono::duration<double>(options.duration).count();
    const double by_count =
        options.requests > 0 ? static_cast<double>(finished) / static_cast<double>(options.requests)
                             : 0;
    const double by_time = limit_s > 0 ? took.count() / limit_s : 0;
    bar.Show(std::max(by_count, by_time),
             absl::StrFormat("%d requests, %.0f/s", finished,
                             static_cast<double>(finished) / std::max(took.count(), 1e-3)));
  });
}

// Returns the lines of a file that are not empty.
absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) texts.push_back(line);
  }
  if (texts.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " has no text"));
  return texts;
}

absl::Status Failures(int64_t failed, size_t all) {
  if (failed == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrFormat("%d of %d requests failed", failed, all));
}

// Writes the server's metrics and captures, as --metrics-file of the server writes them.
absl::Status WriteMetrics(client::Client& client, const std::string& path) {
  ASSIGN_OR_RETURN(const auto stats, client.GetStats("", "", /*metrics=*/true));
  const std::string part = absl::StrCat(path, ".part");
  std::ofstream file(part, std::ios::binary);
  file << stats.metrics_json();
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  if (file && !error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write '", path, "'"));
}

// Requests for tokens in the place of inferences.
absl::Status RunGenerate(BenchFlags flags) {
  ASSIGN_OR_RETURN(const Lengths prompts, Lengths::Parse(flags.lengths));
  ASSIGN_OR_RETURN(const Lengths outputs, Lengths::Parse(flags.output_lengths));
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  GenerateLoadOptions& load = flags.tokens;
  load.model = flags.load.model;
  load.version = flags.load.version;
  load.concurrency = flags.load.concurrency;
  load.seed = flags.load.seed;
  load.max_id = flags.load.max_id;
  load.requests = flags.load.requests;
  load.duration = std::chrono::milliseconds(static_cast<int64_t>(flags.duration_s * 1000));
  if (load.requests == 0 && load.duration.count() == 0) load.requests = 100;
  load.prompts = prompts.Draw(kDrawnLengths, load.seed);
  load.outputs = outputs.Draw(kDrawnLengths, load.seed + 1);
  std::fprintf(flags.json ? stderr : stdout,
               "%s at %s: concurrency %d, %s, prompts %s, answers %s, seed %d\n",
               load.model.c_str(), client->target().c_str(), load.concurrency,
               load.rate > 0 ? absl::StrFormat("%g requests/s", load.rate).c_str() : "closed loop",
               flags.lengths.c_str(), flags.output_lengths.c_str(), static_cast<int>(load.seed));
  const auto run = [&](const std::string& label) {
    command_line::Progress bar(label);
    return RunGenerateLoad(*client, load, [&](int64_t finished) {
      bar.Show(load.requests > 0
                   ? static_cast<double>(finished) / static_cast<double>(load.requests)
                   : 0,
               absl::StrFormat("%d requests", finished));
    });
  };
  if (flags.warmup_requests > 0) {
    const GenerateLoadOptions measured = load;
    load.requests = flags.warmup_requests;
    load.duration = {};
    load.rate = 0;
    load.seed += 2;  // other prompts, which the measurement finds no pages of
    RETURN_IF_ERROR(run("warm-up").status());
    load = measured;
  }
  ASSIGN_OR_RETURN(const GenerateLoadResult result, run("bench"));
  std::printf("%s",
              flags.json ? GenerateJson(result, load).c_str() : GenerateReport(result).c_str());
  if (!flags.metrics_file.empty()) RETURN_IF_ERROR(WriteMetrics(*client, flags.metrics_file));
  return Failures(std::count_if(result.samples.begin(), result.samples.end(),
                                [](const GenerateSample& sample) { return !sample.error.empty(); }),
                  result.samples.size());
}

absl::Status RunBench(BenchFlags flags) {
  ASSIGN_OR_RETURN(const Lengths lengths, Lengths::Parse(flags.lengths));
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  LoadOptions& load = flags.load;
  load.duration = std::chrono::milliseconds(static_cast<int64_t>(flags.duration_s * 1000));
  if (load.requests == 0 && load.duration.count() == 0) load.requests = 1000;
  const size_t draws = load.requests > 0 ? static_cast<size_t>(load.requests) : kDrawnLengths;
  load.lengths = lengths.Draw(std::min(draws, kDrawnLengths), load.seed);
  ASSIGN_OR_RETURN(const auto metadata, client->ModelMetadata(load.model, load.version));
  std::string drawn = HasLength(metadata) ? absl::StrCat("lengths ", flags.lengths) : "no lengths";
  if (!flags.texts.empty()) {
    ASSIGN_OR_RETURN(load.texts, ReadTexts(flags.texts));
    drawn = absl::StrCat(load.texts.size(), " texts of ", flags.texts);
  }
  // Notes are kept out of the JSON.
  std::FILE* const notes = flags.json ? stderr : stdout;
  std::fprintf(notes, "%s at %s: concurrency %d, batch %d, %s, seed %d\n", load.model.c_str(),
               client->target().c_str(), load.concurrency, static_cast<int>(load.batch),
               drawn.c_str(), static_cast<int>(load.seed));
  if (flags.warmup_requests > 0) {
    LoadOptions warmup = load;
    warmup.requests = flags.warmup_requests;
    warmup.duration = {};
    ASSIGN_OR_RETURN(const LoadResult ignored, RunWithBar(*client, warmup, "warm-up"));
    std::fprintf(notes, "after %d requests of warm-up\n", static_cast<int>(ignored.samples.size()));
  }
  ASSIGN_OR_RETURN(const LoadResult result, RunWithBar(*client, load, "bench"));
  std::printf("%s", flags.json ? LoadJson(result, load).c_str() : LoadReport(result).c_str());
  if (!flags.metrics_file.empty()) RETURN_IF_ERROR(WriteMetrics(*client, flags.metrics_file));
  const auto failed = std::count_if(result.samples.begin(), result.samples.end(),
                                    [](const Sample& sample) { return !sample.error.empty(); });
  return Failures(failed, result.samples.size());
}

void AddGenerateFlags(CLI::App& command, BenchFlags& flags) {
  CLI::Option* generate = command.add_flag(
      "--generate", flags.generate,
      "Ask a decoder for tokens: --lengths are the lengths of prompts; prints percentiles of the "
      "time to the first token and of the time between tokens");
  AddOption(command, "-o,--output-lengths", flags.output_lengths, "DISTRIBUTION",
            "Numbers of new tokens in an answer, in the form of --lengths")
      ->check([](const std::string& text) {
        return std::string(Lengths::Parse(text).status().message());
      })
      ->needs(generate)
      ->capture_default_str();
  AddOption(command, "--rate", flags.tokens.rate, "R",
            "Requests each second at random times, whether or not others are answered; at "
            "most --concurrency are in flight. 0: each client sends its next request when "
            "the last one is answered")
      ->needs(generate)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddOption(command, "--shared-prefix", flags.tokens.shared_prefix, "N",
            "First tokens that all prompts have in common")
      ->needs(generate)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--temperature", flags.tokens.temperature,
                  "Sampling temperature; 0 takes "
                  "the best token")
      ->needs(generate)
      ->capture_default_str();
}

}  // namespace

void AddBench(CLI::App& app, Action& action, const Profiler& profiler) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure throughput and latency under load");
  command->footer(kRandomInputsHelp);
  flags->server.Add(*command);
  command
      ->add_option("model", flags->load.model,
                   "Name of the model; with --profile the path of a model.onnx")
      ->required();
  CLI::Option* profile = command->add_flag("--profile", flags->profile,
                                           "No server and no load: time one replay launch by "
                                           "launch, compared with this machine's roofline");
  const ProfileAction run_profile = profiler(*command, profile);
  AddJson(*command, flags->json);
  AddOption(*command, "--metrics-file", flags->metrics_file, "FILE",
            "Write compiles, captures and replays as JSON, in the form of reprised "
            "--metrics-file");
  AddGenerateFlags(*command, *flags);
  command->add_option("--version", flags->load.version, "Version; the newest if not given");
  AddOption(*command, "-c,--concurrency", flags->load.concurrency, "N",
            "Clients; each sends its next request when the last one is answered")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  AddOption(*command, "-n,--requests", flags->load.requests, "N",
            "Stop after this many requests (1000 if --duration is not given either; 100 with "
            "--generate)")
      ->check(CLI::PositiveNumber);
  AddOption(*command, "-d,--duration", flags->duration_s, "SECONDS", "Stop after this many seconds")
      ->check(CLI::PositiveNumber);
  AddOption(*command, "-l,--lengths", flags->lengths, "DISTRIBUTION", kLengthsHelp)
      ->check([](const std::string& text) {
        return std::string(Lengths::Parse(text).status().message());
      })
      ->capture_default_str();
  AddOption(*command, "--texts", flags->texts, "FILE",
            "Send texts, one line of this file each, which the server tokenizes")
      ->check(CLI::ExistingFile)
      ->excludes("--lengths");
  AddOption(*command, "-b,--batch", flags->load.batch, "N", "Rows of a request")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  AddOption(*command, "--warmup", flags->warmup_requests, "N", "Requests before the measurement")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddOption(*command, "--seed", flags->load.seed, "N", "Seed of lengths and inputs")
      ->capture_default_str();
  AddOption(*command, "--max-id", flags->load.max_id, "N", "Largest made-up id")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([flags, run_profile, &action] {
    action = [flags, run_profile] {
      if (flags->generate) return RunGenerate(*flags);
      if (!flags->profile) return RunBench(*flags);
      return run_profile({.path = flags->load.model,
                          .max_id = flags->load.max_id,
                          .json = flags->json,
                          .metrics_file = flags->metrics_file});
    };
  });
}

}  // namespace reprise::cli
