// Entities: the tokens of a text with their labels, one by one or joined where neighbours have the
// same one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// Special tokens have none, and neither have those of the label "O". `join`: neighbours of one
// label are one entity, as "B-" and "I-" say where labels have them (the strategy "simple" of
// transformers).
std::vector<Entity> EntitiesOf(const TextModel& model, const TextAnswer& answer, bool join);

}  // namespace reprise
