// obligations: draws models of single ops, pads them with the worst, compares; see README.md.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "tests/fuzz/obligations/map_check.h"
#include "tests/fuzz/obligations/obligation.h"
#include "tests/fuzz/obligations/planted.h"
#include "tests/fuzz/random_models/case_text.h"

namespace reprise::obligations {
namespace {

constexpr char kHelp[] =
    "obligations [--draws N] [--seed N] [--row OP] [--unpadded FILE] [--max-isa ISA] [--print]\n"
    "obligations --case FILE...\n"
    "obligations --maps [--draws N] [--seed N] [--row OP]\n"
    "obligations --planted\n"
    "\n"
    "  --draws N        models of each row (100); of one that none pads, more\n"
    "  --seed N         of the first model of each row (1)\n"
    "  --row OP         this one alone\n"
    "  --unpadded FILE  names the rows that no draw pads: any other fails, and one that is padded\n"
    "  --max-isa ISA    of the fast kernels\n"
    "  --print          each model before it runs, and why it is not padded\n"
    "  --case FILE...   runs models that were printed\n"
    "  --maps           holds each row to its index map: places by themselves, beside the whole\n"
    "  --planted        lets each rule pass everything, and fails where that is not seen\n";
constexpr int64_t kMostDrawsUntilPadded = 400;

struct Flags {
  int64_t draws = 100;
  uint64_t seed = 1;
  std::string row, unpadded, isa;
  bool print = false, maps = false, planted = false;
  std::vector<std::string> cases;
};

bool ParseFlags(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    if (flag == "--print") {
      flags.print = true;
      continue;
    }
    if (flag == "--maps") {
      flags.maps = true;
      continue;
    }
    if (flag == "--planted") {
      flags.planted = true;
      continue;
    }
    if (++i >= argc) return false;
    const char* value = argv[i];
    bool ok = true;
    if (flag == "--draws") {
      ok = absl::SimpleAtoi(value, &flags.draws);
    } else if (flag == "--seed") {
      ok = absl::SimpleAtoi(value, &flags.seed);
    } else if (flag == "--row") {
      flags.row = value;
    } else if (flag == "--unpadded") {
      flags.unpadded = value;
    } else if (flag == "--max-isa") {
      flags.isa = value;
    } else if (flag == "--case") {
      for (; i < argc; ++i) flags.cases.emplace_back(argv[i]);
    } else {
      ok = false;
    }
    if (!ok) return false;
  }
  return true;
}

bool MayPad(const OpRow& row) { return row.axis != ops::UnknownAxis && row.axis != ops::KnownAxis; }

// The seed is told where a run ends by a signal.
char now_running[128] = "";
void TellSeed(int signal_number) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, now_running, sizeof(now_running));
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

struct RowCounts {
  int64_t draws = 0, refused = 0, padded = 0, packed = 0, answers = 0, wrong = 0, loud = 0;
};

// All rows, one after another.
class Rows {
 public:
  explicit Rows(const Flags& flags) : flags_(flags) {}

  int Run() {
    std::set<std::string> unpadded = ReadUnpadded();
    std::vector<std::string> faults;
    Obligations obligations(flags_.isa.empty() ? DetectIsa() : *ParseIsa(flags_.isa));
    for (const OpRow& row : AllOps()) {
      const std::string op(row.name);
      if (!MayPad(row) || (!flags_.row.empty() && op != flags_.row)) continue;
      if (CasesOf(op).empty()) {
        faults.push_back(absl::StrCat(op, " has no case"));
        continue;
      }
      const RowCounts counts = RunRow(obligations, op, unpadded.contains(op));
      Print(op, counts);
      if (counts.wrong > 0)
        faults.push_back(absl::StrCat(op, " has ", counts.wrong, " wrong answers"));
      const bool padded = counts.padded + counts.packed > 0;
      if (!flags_.unpadded.empty() && !padded && !unpadded.contains(op)) {
        faults.push_back(absl::StrCat("no draw of ", op, " is padded"));
      }
      if (padded && unpadded.contains(op))
        faults.push_back(absl::StrCat(op, " is padded: take it from the list"));
    }
    for (const std::string& op : OpsOfCases()) {
      const OpRow* row = FindOp(op);
      if (row == nullptr || !MayPad(*row))
        faults.push_back(absl::StrCat("a case of ", op, ", which is no row with a rule"));
    }
    for (const std::string& fault : faults) std::cout << "FAULT: " << fault << std::endl;
    return faults.empty() ? 0 : 1;
  }

 private:
  std::set<std::string> ReadUnpadded() const {
    std::set<std::string> names;
    std::ifstream file(flags_.unpadded);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line[0] != '#') names.insert(line.substr(0, line.find(' ')));
    }
    return names;
  }

  RowCounts RunRow(Obligations& obligations, const std::string& op, bool is_unpadded) {
    RowCounts counts;
    const int64_t most = flags_.unpadded.empty() || is_unpadded
                             ? flags_.draws
                             : std::max(flags_.draws, kMostDrawsUntilPadded);
    for (int64_t i = 0; i < most; ++i) {
      if (i >= flags_.draws && counts.padded + counts.packed > 0) break;
      const uint64_t seed = flags_.seed + static_cast<uint64_t>(i);
      std::snprintf(now_running, sizeof(now_running), "while running %s, seed %llu\n", op.c_str(),
                    static_cast<unsigned long long>(seed));
      const fuzz::TestCase test = DrawRow(op, seed);
      ++counts.draws;
      if (test.graph.outputs().empty()) {
        ++counts.refused;
        continue;
      }
      if (flags_.print)
        std::cout << "# op " << op << ", seed " << seed << "\n"
                  << fuzz::CaseText(test) << std::endl;
      const Findings findings = obligations.Check(test, op);
      if (flags_.print) std::cout << findings.verdicts << "\n" << std::endl;
      counts.refused += findings.refused;
      counts.answers += findings.answers;
      counts.padded += findings.padded && findings.has_op;
      counts.packed += findings.packed && findings.has_op;
      counts.loud += !findings.loud.empty();
      if (flags_.print && !findings.loud.empty())
        std::cout << "LOUD: " << findings.loud << std::endl;
      if (findings.wrong.empty()) continue;
      ++counts.wrong;
      std::cout << "\nWRONG " << op << " seed " << seed << ": " << findings.wrong << "\n"
                << findings.verdicts << "\n# op " << op << "\n"
                << fuzz::CaseText(test) << std::endl;
    }
    return counts;
  }

  static void Print(const std::string& op, const RowCounts& counts) {
    std::printf(
        "%-50s draws %6lld refused %5lld padded %6lld packed %5lld answers %8lld loud %lld wrong "
        "%lld\n",
        op.c_str(), static_cast<long long>(counts.draws), static_cast<long long>(counts.refused),
        static_cast<long long>(counts.padded), static_cast<long long>(counts.packed),
        static_cast<long long>(counts.answers), static_cast<long long>(counts.loud),
        static_cast<long long>(counts.wrong));
    std::fflush(stdout);
  }

  const Flags& flags_;
};

int RunMaps(const Flags& flags) {
  int faults = 0;
  const auto fault = [&](const std::string& what) {
    std::cout << "FAULT: " << what << std::endl;
    ++faults;
  };
  for (const OpRow& row : AllOps()) {
    const std::string op(row.name);
    std::vector<RowCase> cases = CasesOf(op);
    absl::c_copy_if(MapCases(), std::back_inserter(cases),
                    [&](const RowCase& one) { return one.op == op; });
    if (cases.empty() || (!flags.row.empty() && op != flags.row)) continue;
    bool has_op = false, has_map = false;
    int64_t dims = 0;
    for (int64_t i = 0; i < flags.draws; ++i) {
      const uint64_t seed = flags.seed + static_cast<uint64_t>(i);
      std::snprintf(now_running, sizeof(now_running), "while running %s, seed %llu\n", op.c_str(),
                    static_cast<unsigned long long>(seed));
      const fuzz::TestCase test = DrawBareRow(cases, op, seed);
      if (test.graph.outputs().empty()) continue;
      if (flags.print) std::cout << fuzz::CaseText(test) << std::endl;
      const MapFindings findings = CheckMap(test, op, seed);
      has_op = has_op || findings.has_op;
      has_map = has_map || findings.has_map;
      dims += findings.dims;
      if (!findings.wrong.empty()) {
        fault(absl::StrCat(op, ", seed ", seed, ": ", findings.wrong));
        break;
      }
    }
    std::printf("%-50s %s %6lld dims\n", op.c_str(), has_map ? "map" : "-  ",
                static_cast<long long>(dims));
    if (has_op && !has_map && FactsOf(row).map != nullptr)
      fault(absl::StrCat("no draw of ", op, " has a map"));
    if (has_map && dims == 0) fault(absl::StrCat("no draw of ", op, " has a parallel dim"));
  }
  return faults == 0 ? 0 : 1;
}

int RunPlanted() {
  const std::vector<std::string> unseen = UnseenPlantedFaults();
  for (const std::string& fault : unseen) std::cout << "NOT SEEN: " << fault << std::endl;
  return unseen.empty() ? 0 : 1;
}

int RunCases(const std::vector<std::string>& files) {
  Obligations obligations(DetectIsa());
  int wrong = 0;
  for (const std::string& name : files) {
    std::ifstream file(name);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto test = fuzz::ParseCase(text);
    if (!test.ok()) {
      std::cerr << name << ": " << test.status() << std::endl;
      return 2;
    }
    const Findings findings = obligations.Check(*test, "");
    std::cout << name << ": "
              << (findings.padded   ? "padded"
                  : findings.packed ? "packed"
                                    : "exact")
              << ", " << findings.answers << " answers " << findings.wrong << "\n"
              << findings.verdicts << std::endl;
    wrong += !findings.wrong.empty();
  }
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace reprise::obligations

int main(int argc, char** argv) {
  using namespace reprise::obligations;
  Flags flags;
  if (!ParseFlags(argc, argv, flags)) {
    std::cerr << kHelp;
    return 2;
  }
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) signal(number, TellSeed);
  if (flags.maps) return RunMaps(flags);
  if (flags.planted) return RunPlanted();
  if (!flags.cases.empty()) return RunCases(flags.cases);
  return Rows(flags).Run();
}
