// Parameters of a request for tokens, by the names that users of other servers know.
//
// They come one by one, lists and maps as JSON in a text, or all of them as one JSON object.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/sequences/beam_search.h"
#include "runtime/sequences/sampling.h"
#include "server/chat/text_wishes.h"
#include "server/protocol/request_parameters.h"

namespace simdjson::dom {
class element;
}

namespace reprise {

class SamplingParameters {
 public:
  // Sets the parameter `name`. INVALID_ARGUMENT for one that is not known, is given twice, or has a
  // value of another kind.
  absl::Status Set(const std::string& name, const ParameterValue& value);
  // Sets the members of a JSON object.
  absl::Status SetAll(absl::string_view json);
  absl::Status SetAll(const simdjson::dom::element& json);
  // Sets a member of such an object; null sets nothing.
  absl::Status SetOne(const std::string& name, const simdjson::dom::element& json);
  // Returns whether `name` is a parameter.
  static bool Knows(absl::string_view name);
  // INVALID_ARGUMENT naming a parameter that was given and does not apply with the others: one of
  // draws where answers are searched for by beams, or vice versa.
  absl::Status CheckTogether() const;

  SamplingOptions sampling;
  BeamOptions beams;
  TextWishes texts;
  std::optional<int64_t> timeout_us;
  uint64_t priority = 0;
  // In front of the first new token, where the prompt goes to an encoder; empty: the model's own.
  std::vector<int64_t> decoder_ids;
  std::string cache_salt;  // keeps the pages of the request apart from other requests' pages

 private:
  // Returns the row of the table of parameters for one that is given now.
  absl::StatusOr<size_t> Begin(const std::string& name);

  std::set<std::string> given_;
};

}  // namespace reprise
