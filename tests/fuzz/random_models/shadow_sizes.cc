// Compares readings of random models and of cases (passes/read) with specialising them, at 20
// sizes each.
//
//   shadow_sizes [--seed N] [--count N] [CASE...]
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/fuzz/random_models/case_text.h"
#include "tests/fuzz/random_models/draw_model.h"
#include "tests/testing/shadow/shadow.h"

namespace reprise::fuzz {
namespace {

constexpr size_t kSizes = 20;

// Returns the sizes of the requests, and such around them.
std::vector<Binding> BindingsFor(const TestCase& test, uint64_t seed) {
  Chance chance(seed);
  std::vector<Binding> bindings;
  for (const Sizes& request : test.requests) bindings.push_back({.axes = request});
  while (bindings.size() < kSizes && !test.requests.empty()) {
    const Sizes request = test.requests[static_cast<size_t>(
        chance.Between(0, static_cast<int64_t>(test.requests.size()) - 1))];
    // Symbols of one size are one axis, mostly.
    std::map<int64_t, int64_t> moved;
    for (const auto& [symbol, size] : request) {
      if (!moved.contains(size)) moved[size] = std::max<int64_t>(0, size + chance.Between(-4, 9));
    }
    Binding binding;
    for (const auto& [symbol, size] : request) {
      binding.axes[symbol] = chance.OneIn(20) ? chance.Between(0, 40) : moved[size];
    }
    bindings.push_back(binding);
  }
  return bindings;
}

int Run(uint64_t seed, int64_t count, const std::vector<std::string>& cases) {
  ShadowCounts counts;
  int64_t models = 0, wrong = 0;
  const auto check = [&](const TestCase& test, uint64_t draw, const std::string& name) {
    ++models;
    const std::string difference = ShadowDifference(test.graph, BindingsFor(test, draw), counts);
    if (difference.empty()) return;
    ++wrong;
    std::printf("%s: %s\n%s\n", name.c_str(), difference.c_str(), CaseText(test).c_str());
  };
  for (const std::string& path : cases) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const auto test = ParseCase(text.str());
    if (!test.ok()) {
      std::printf("%s: %s\n", path.c_str(), test.status().ToString().c_str());
      return 2;
    }
    check(*test, 1, path);
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t draw = seed + static_cast<uint64_t>(i);
    check(DrawCase(draw), draw, "seed " + std::to_string(draw));
  }
  std::printf("%ld models, %ld differ: %s\n", static_cast<long>(models), static_cast<long>(wrong),
              counts.ToString().c_str());
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) {
  uint64_t seed = 1;
  int64_t count = 0;
  std::vector<std::string> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seed" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &seed)) return 2;
    } else if (argument == "--count" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &count)) return 2;
    } else {
      cases.push_back(argument);
    }
  }
  return reprise::fuzz::Run(seed, count, cases);
}
