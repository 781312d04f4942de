// random_models: draws models, asks them, compares the answers; see README.md.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/case_text.h"
#include "tests/fuzz/random_models/coverage.h"
#include "tests/fuzz/random_models/draw_model.h"
#include "tests/fuzz/random_models/shrink.h"
#include "tests/fuzz/random_models/trial.h"

namespace reprise::fuzz {
namespace {

constexpr char kHelp[] =
    "random_models [--seed N] [--count N] [--seconds N] [--print] [--no-shrink] [--goes-on]\n"
    "              [--least-ops N]\n"
    "random_models --case FILE\n"
    "\n"
    "  --seed N       of the first model (1); the next model has the next seed\n"
    "  --count N      models (no limit)\n"
    "  --seconds N    of time (60)\n"
    "  --print        prints each case before it runs\n"
    "  --no-shrink    prints what fails as it was drawn\n"
    "  --goes-on      behind a failure too\n"
    "  --least-ops N  goes on, up to five times the seconds, until so many percent of the ops and\n"
    "                 every verdict were drawn, and fails where they were not\n"
    "  --case FILE    runs a case that was printed\n";
constexpr int kShrinkTries = 400;
constexpr int64_t kModelsALine = 10000;  // tell how far a long run has come

struct Flags {
  uint64_t seed = 1;
  int64_t count = INT64_MAX, seconds = 60, least_ops = 0;
  bool print = false, shrink = true, goes_on = false;
  std::string case_file;
};

bool ParseFlags(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    bool ok = true, has_value = true;
    if (flag == "--seed")
      ok = absl::SimpleAtoi(value, &flags.seed);
    else if (flag == "--count")
      ok = absl::SimpleAtoi(value, &flags.count);
    else if (flag == "--seconds")
      ok = absl::SimpleAtoi(value, &flags.seconds);
    else if (flag == "--least-ops")
      ok = absl::SimpleAtoi(value, &flags.least_ops);
    else if (flag == "--case")
      flags.case_file = value;
    else
      has_value = false;
    if (flag == "--print")
      flags.print = true;
    else if (flag == "--no-shrink")
      flags.shrink = false;
    else if (flag == "--goes-on")
      flags.goes_on = true;
    else
      ok = ok && has_value;
    if (!ok) return false;
    i += has_value;
  }
  return true;
}

// The seed is told where a run ends by a signal.
char now_running[64] = "";
void TellSeed(int signal_number) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, now_running, sizeof(now_running));
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void Tell(const TestCase& test, const Verdict& verdict, const std::string& which) {
  std::cout << "\nFAULT (" << FaultName(verdict.fault) << ") " << which << ": " << verdict.words
            << "\n"
            << CaseText(test) << std::endl;
}

int RunCase(const Flags& flags) {
  std::ifstream file(flags.case_file);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto test = ParseCase(text);
  if (!test.ok()) {
    std::cerr << flags.case_file << ": " << test.status() << "\n";
    return 2;
  }
  Trials trials;
  Verdict verdict = trials.Run(*test);
  if (verdict.fault != Fault::kNone && flags.shrink) {
    const Fault fault = verdict.fault;
    *test = Shrink(
        *std::move(test),
        [&](const TestCase& smaller) { return trials.Run(smaller).fault == fault; }, kShrinkTries);
    verdict = trials.Run(*test);
  }
  Coverage coverage;
  coverage.Add(*test, verdict);
  std::cout << coverage.Report() << std::endl;
  if (verdict.fault == Fault::kNone) return 0;
  Tell(*test, verdict, flags.case_file);
  return 1;
}

bool DrewEnough(const Coverage& coverage, const Flags& flags) {
  return flags.least_ops == 0 ||
         (coverage.ShareOfOps() * 100 >= static_cast<double>(flags.least_ops) &&
          coverage.MissingVerdicts().empty());
}

int RunMany(const Flags& flags) {
  Trials trials;
  Coverage coverage;
  const SteadyClock clock;
  const int64_t start = clock.NowNs();
  int64_t faults = 0, models = 0;
  const auto has_time = [&] {
    const int64_t seconds = (clock.NowNs() - start) / 1'000'000'000;
    return seconds < flags.seconds || (seconds < 5 * flags.seconds && !DrewEnough(coverage, flags));
  };
  for (; models < flags.count && has_time(); ++models) {
    const uint64_t seed = flags.seed + static_cast<uint64_t>(models);
    std::snprintf(now_running, sizeof(now_running), "while running seed %llu\n",
                  static_cast<unsigned long long>(seed));
    TestCase test = DrawCase(seed);
    if (test.graph.outputs().empty()) continue;
    if (flags.print) std::cout << "seed " << seed << "\n" << CaseText(test) << std::endl;
    const std::clock_t began = std::clock();
    Verdict verdict = trials.Run(test);
    const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    if (seconds > 5) {
      std::cout << "seed " << seed << " took " << seconds << " s, loading " << verdict.loading
                << ", asking " << verdict.asking << std::endl;
    }
    for (const std::string& refusal : verdict.refusals) {
      std::cout << "seed " << seed << " is refused what can be answered: " << refusal << std::endl;
    }
    coverage.Add(test, verdict);
    if ((models + 1) % kModelsALine == 0) {
      std::cout << models + 1 << " models, " << faults << " faults" << std::endl;
    }
    if (verdict.fault == Fault::kNone) continue;
    ++faults;
    if (flags.shrink) {
      const Fault fault = verdict.fault;
      test = Shrink(
          std::move(test),
          [&](const TestCase& smaller) { return trials.Run(smaller).fault == fault; },
          kShrinkTries);
      const Verdict smallest = trials.Run(test);
      if (smallest.fault == fault) verdict = smallest;
    }
    Tell(test, verdict, absl::StrCat("seed ", seed));
    if (!flags.goes_on) break;
  }
  const double seconds = static_cast<double>(clock.NowNs() - start) / 1e9;
  std::cout << coverage.Report() << "\nfaults: " << faults << "; "
            << static_cast<int64_t>(static_cast<double>(models) / seconds * 60)
            << " models a minute; seeds " << flags.seed << " to " << flags.seed + models - 1
            << std::endl;
  if (faults > 0) return 1;
  if (DrewEnough(coverage, flags)) return 0;
  std::cout << "too little was drawn; verdicts missing: "
            << absl::StrJoin(coverage.MissingVerdicts(), ", ") << std::endl;
  return 1;
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) {
  reprise::fuzz::Flags flags;
  if (!reprise::fuzz::ParseFlags(argc, argv, flags)) {
    std::cerr << reprise::fuzz::kHelp;
    return 2;
  }
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) {
    signal(number, reprise::fuzz::TellSeed);
  }
  return flags.case_file.empty() ? reprise::fuzz::RunMany(flags) : reprise::fuzz::RunCase(flags);
}
