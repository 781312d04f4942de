#include "tests/fuzz/random_models/case_text.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/text.h"

namespace reprise::fuzz {

std::string CaseText(const TestCase& test) {
  std::string text;
  for (const Sizes& request : test.requests) {
    absl::StrAppend(&text, "# request");
    for (const auto& [symbol, size] : request) absl::StrAppend(&text, " ", symbol, "=", size);
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [output, dims] : test.declared) {
    absl::StrAppend(&text, "# declared ", output);
    for (const Dim& dim : dims) {
      absl::StrAppend(&text, " ", dim.is_constant() ? absl::StrCat(dim.size) : dim.symbol);
    }
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "# contents ", test.contents, test.packed ? ", packed" : "",
                  test.wild ? ", wild" : "", "\n");
  return text + Print(test.graph);
}

absl::StatusOr<TestCase> ParseCase(const std::string& text) {
  TestCase test;
  std::string graph;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "# request")) {
      Sizes& request = test.requests.emplace_back();
      for (const absl::string_view size : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
        const std::pair<std::string, std::string> parts = absl::StrSplit(size, '=');
        if (!absl::SimpleAtoi(parts.second, &request[parts.first])) {
          return absl::InvalidArgumentError(absl::StrCat("'", size, "' is no size"));
        }
      }
    } else if (absl::ConsumePrefix(&line, "# declared ")) {
      const std::vector<std::string> parts = absl::StrSplit(line, ' ');
      std::vector<Dim>& dims = test.declared[parts[0]];
      for (size_t i = 1; i < parts.size(); ++i) {
        int64_t size = 0;
        dims.push_back(absl::SimpleAtoi(parts[i], &size) ? Dim{.size = size}
                                                         : Dim{.symbol = parts[i]});
      }
    } else if (absl::ConsumePrefix(&line, "# contents ")) {
      test.wild = absl::StrContains(line, "wild");
      test.packed = absl::StrContains(line, "packed");
      const std::vector<std::string> parts = absl::StrSplit(line, ',');
      if (!absl::SimpleAtoi(parts[0], &test.contents)) {
        return absl::InvalidArgumentError(absl::StrCat("'", parts[0], "' is no seed"));
      }
    } else if (!absl::StartsWith(line, "#")) {
      absl::StrAppend(&graph, line, "\n");
    }
  }
  ASSIGN_OR_RETURN(test.graph, Parse(graph));
  return test;
}

}  // namespace reprise::fuzz
