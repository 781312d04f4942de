// Parameters of a request for tokens, by the names that users of other servers know.
//
// They come one by one, lists and maps as JSON in a text, or all of them as one JSON object.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/sequences/sampling.h"
#include "server/protocol/request_parameters.h"

namespace reprise {

class SamplingParameters {
 public:
  // Sets what `name` stands for. INVALID_ARGUMENT for one that is not known, is given twice, or has
  // a value of another kind.
  absl::Status Set(const std::string& name, const ParameterValue& value);
  // The members of a JSON object.
  absl::Status SetAll(absl::string_view json);

  SamplingOptions sampling;
  std::optional<int64_t> timeout_us;
  uint64_t priority = 0;
  std::string cache_salt;  // keeps the pages of the request apart from those of others

 private:
  std::set<std::string> given_;
};

}  // namespace reprise
