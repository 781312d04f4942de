// Entities: the tokens of a text with their labels, one by one or joined where neighbours have the
// same one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hub/text_model.h"
#include "server/tasks/text_call.h"

namespace reprise {

struct Entity {
  std::string label;  // "B-PER"; joined: "PER"
  float score = 0;    // the mean, where joined
  int64_t index = 0;  // the token's; -1 where joined
  std::string word;
  int64_t start = 0, end = 0;  // characters of the text, [start, end)
};

// Which tokens are one entity, as the strategies of transformers name it.
enum class Grouping {
  kNone,     // each token is one
  kSimple,   // neighbours of one label are, as "B-" and "I-" say where labels have them
  kFirst,    // the same of words, with the label of their first token
  kAverage,  // the best of their tokens' mean
  kMax,      // the same, with the label of their surest token
};

// Special tokens have none, and neither have tokens with the label "O". `text`: UTF-8, as it was
// sent, for groupings of words; `index`: its number. Errors as of CheckFinite.
absl::StatusOr<std::vector<Entity>> EntitiesOf(const TextModel& model, const TextAnswer& answer,
                                               size_t index, absl::string_view text,
                                               Grouping grouping);

}  // namespace reprise
