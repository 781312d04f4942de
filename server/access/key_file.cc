#include "server/access/key_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr size_t kLeastKeyBytes = 16;
constexpr int64_t kMostRequests = int64_t{1} << 40;
constexpr double kLeastWeight = 0.001, kMostWeight = 1000;

absl::Status ReadRights(absl::string_view text, Key& key) {
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    bool known = false;
    for (const Right right : {Right::kInfer, Right::kObserve, Right::kAdmin, Right::kMetrics}) {
      if (word != RightName(right)) continue;
      key.rights.insert(right);
      known = true;
    }
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat(
          "right ", QuotedText(word), " is not known; there are infer, observe, admin, metrics"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadLimit(absl::string_view text, KeyLimits& limits) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto& [name, value] = parts;
  const auto integer = [&, value = value](int64_t& target) {
    return absl::SimpleAtoi(value, &target) && target > 0 && target <= kMostRequests;
  };
  bool read = false;
  if (name == "rate") {
    read = absl::SimpleAtod(value, &limits.rate) && std::isfinite(limits.rate) && limits.rate > 0 &&
           limits.rate <= static_cast<double>(kMostRequests);
  } else if (name == "burst") {
    read = integer(limits.burst);
  } else if (name == "concurrent") {
    read = integer(limits.concurrent);
  } else if (name == "weight") {
    read = absl::SimpleAtod(value, &limits.weight) && limits.weight >= kLeastWeight &&
           limits.weight <= kMostWeight;
  } else if (name == "pages") {
    limits.pages = std::string(value);
    if (!value.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("pages= needs a name, which other keys may have as well");
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("limit ", QuotedText(name),
                     " is not known; there are rate=, burst=, concurrent=, weight=, pages="));
  }
  if (read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", QuotedText(value), ", it must be a number above 0"));
}

absl::StatusOr<Key> ReadKey(const std::vector<absl::string_view>& fields) {
  if (fields.size() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", fields.size(), " fields; a name, a key and rights are required"));
  }
  Key key = {.name = std::string(fields[0]), .secret = std::string(fields[1])};
  if (key.secret.size() < kLeastKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the key of ", QuotedText(key.name), " has ",
                                                   key.secret.size(), " characters, at least ",
                                                   kLeastKeyBytes, " are required"));
  }
  if (!std::all_of(key.secret.begin(), key.secret.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key of ", QuotedText(key.name), " has a character that is not ASCII"));
  }
  RETURN_IF_ERROR(ReadRights(fields[2], key));
  for (size_t i = 3; i < fields.size(); ++i) RETURN_IF_ERROR(ReadLimit(fields[i], key.limits));
  if (key.limits.rate > 0 && key.limits.burst == 0) {
    key.limits.burst = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(key.limits.rate)));
  }
  if (key.limits.rate == 0 && key.limits.burst > 0) {
    return absl::InvalidArgumentError("burst= needs rate=");
  }
  return key;
}

}  // namespace

absl::StatusOr<std::vector<Key>> ParseKeys(absl::string_view text) {
  std::vector<Key> keys;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty() || absl::StartsWith(fields[0], "#")) continue;
    const auto error = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", why));
    };
    absl::StatusOr<Key> key = ReadKey(fields);
    if (!key.ok()) return error(key.status().message());
    for (const Key& other : keys) {
      if (other.name == key->name) {
        return error(absl::StrCat("the name ", QuotedText(key->name), " is there already"));
      }
      if (other.secret == key->secret) {
        return error(
            absl::StrCat(QuotedText(key->name), " has the key of ", QuotedText(other.name)));
      }
    }
    keys.push_back(*std::move(key));
  }
  return keys;
}

}  // namespace reprise
