#include "runtime/ranks/hello.h"

#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/device/collective.h"

namespace reprise {
namespace {

constexpr char kFirstLine[] = "reprise ranks 1";

}  // namespace

std::string RankHello::Text() const {
  return absl::StrCat(kFirstLine, "\nlink ", is_watched ? "watched" : "messages", "\ntoken ", token,
                      "\nrank ", rank, "\nranks ", ranks, "\nmodel ", identity.model, "\nbinary ",
                      identity.binary, "\nisa ", identity.isa, "\nparallelism ",
                      ParallelismName(identity.parallelism), "\nplan ", identity.plan);
}

absl::StatusOr<RankHello> RankHello::Parse(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kFirstLine) {
    return absl::InvalidArgumentError(
        absl::StrCat("no hello of a rank begins with '", lines[0].substr(0, 32), "'"));
  }
  std::map<absl::string_view, std::string> members;
  for (const absl::string_view line : absl::MakeConstSpan(lines).subspan(1)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    members[parts.first] = std::string(parts.second);
  }
  RankHello hello = {.is_watched = members["link"] == "watched",
                     .token = members["token"],
                     .identity = {.model = members["model"],
                                  .binary = members["binary"],
                                  .isa = members["isa"],
                                  .plan = members["plan"]}};
  for (const Parallelism one : {Parallelism::kTensor, Parallelism::kPipeline}) {
    if (members["parallelism"] == ParallelismName(one)) hello.identity.parallelism = one;
  }
  if (!absl::SimpleAtoi(members["rank"], &hello.rank) ||
      !absl::SimpleAtoi(members["ranks"], &hello.ranks)) {
    return absl::InvalidArgumentError("a hello without its rank");
  }
  return hello;
}

}  // namespace reprise
