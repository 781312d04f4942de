// StepRecipes: the recipes of a decoder's steps, one a number of new tokens.
//
// All of them are captured when a generator is made. No length of a sequence, no number of
// sequences and no mixture of prompts and answers asks for another one.
//
// Threads: immutable after Make.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/model/model_owner.h"
#include "runtime/passes/paged/paged_form.h"

namespace reprise {

struct StepRecipe {
  std::shared_ptr<const Recipe> recipe;
  int64_t tokens = 0;  // that it has room for
  int64_t picks = 0;   // tokens whose scores it gives, at most
};

std::string StepLabel(int64_t tokens);  // "g16"

class StepRecipes {
 public:
  // Powers of two up to `most_tokens`; scores for up to `most_picks` tokens of a step. `shard`: the
  // part of the model that they compute.
  static absl::StatusOr<StepRecipes> Make(const Engine& engine, const Model& model, PagedForm& form,
                                          int64_t most_tokens, int64_t most_picks, Stream& stream,
                                          const Shard& shard = {});

  // Returns the addresses of the parameters of one, which are prepared again where the model was
  // asleep. Errors: as ParameterStore::TableFor.
  absl::StatusOr<std::shared_ptr<const ParameterTable>> ParametersOf(const StepRecipe& one) const {
    return owner_->parameters().TableFor(one.recipe);
  }
  // Returns the smallest one for `tokens` new tokens.
  const StepRecipe& For(int64_t tokens) const;
  int64_t most_tokens() const { return recipes_.back().tokens; }
  const std::vector<StepRecipe>& all() const { return recipes_; }

 private:
  std::shared_ptr<ModelOwner> owner_;
  std::vector<StepRecipe> recipes_;
};

}  // namespace reprise
