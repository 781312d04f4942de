#include "runtime/generate/step_runner.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status_macros.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/passes/paged/place_values.h"

namespace reprise {
namespace {

// Writes each token's position in its sequence.
void FillPositions(const PlannedStep& step, int64_t* next) {
  for (const StepItem& item : step.items) {
    for (int64_t i = 0; i < item.count; ++i) *next++ = item.sequence->computed + i;
  }
}

// Writes the address of the table of pages of each token's sequence.
void FillTables(const PlannedStep& step, int64_t* next) {
  for (const StepItem& item : step.items) {
    next =
        std::fill_n(next, item.count, reinterpret_cast<intptr_t>(item.sequence->addresses.data()));
  }
}

// Fills the same for the pages of an encoder's result, and its positions.
void FillCrossTables(const PlannedStep& step, int64_t* next) {
  for (const StepItem& item : step.items) {
    const CrossPages& cross = *item.sequence->request->cross;
    next = std::fill_n(next, item.count, reinterpret_cast<intptr_t>(cross.addresses.data()));
  }
}
void FillCrossLengths(const PlannedStep& step, int64_t* next) {
  for (const StepItem& item : step.items) {
    next = std::fill_n(next, item.count, *item.sequence->request->cross->length);
  }
}

// Fills one bound after each token whose scores are requested; `count` of them, the last one
// repeated.
void FillBounds(const PlannedStep& step, int32_t* bounds, size_t count) {
  int32_t at = 0, *next = bounds + 1;
  for (const StepItem& item : step.items) {
    at += static_cast<int32_t>(item.count);
    for (int64_t behind = item.picks - 1; behind >= 0; --behind) {
      *next++ = at - static_cast<int32_t>(behind);
    }
  }
  // Without any, the first token stands in: no scores at all would mean all of them.
  if (next == bounds + 1) *next++ = 1;
  std::fill(next, bounds + count, next[-1]);
}

template <class Id>
void FillIds(const PlannedStep& step, Id* next) {
  for (const StepItem& item : step.items) {
    for (int64_t i = 0; i < item.count; ++i) {
      *next++ = static_cast<Id>(item.sequence->IdToCompute(i));
    }
  }
}

}  // namespace

void StepRunner::FillInputs(const PlannedStep& step, const StepRecipe& recipe) {
  std::byte* const base = stream_->inputs();
  for (const TensorSlot& slot : recipe.recipe->inputs) {
    std::byte* const to = base + slot.offset;
    std::memset(to, 0, slot.bytes);
    if (slot.name == kPositionsInput) {
      FillPositions(step, reinterpret_cast<int64_t*>(to));
    } else if (slot.name == kTablesInput) {
      FillTables(step, reinterpret_cast<int64_t*>(to));
    } else if (slot.name == kCrossTablesInput) {
      FillCrossTables(step, reinterpret_cast<int64_t*>(to));
    } else if (slot.name == kCrossLengthsInput) {
      FillCrossLengths(step, reinterpret_cast<int64_t*>(to));
    } else if (slot.name == kSegmentsInput) {
      FillBounds(step, reinterpret_cast<int32_t*>(to), slot.bytes / sizeof(int32_t));
    } else if (slot.dtype == DType::kInt32) {
      FillIds(step, reinterpret_cast<int32_t*>(to));
    } else {
      FillIds(step, reinterpret_cast<int64_t*>(to));
    }
  }
}

absl::StatusOr<absl::Span<float>> StepRunner::Run(const PlannedStep& step, Collective* collective) {
  const StepRecipe& recipe = recipes_.For(step.tokens);
  int64_t picks = 0;
  for (const StepItem& item : step.items) picks += item.picks;
  RETURN_IF_ERROR(stream_->Reserve(*recipe.recipe));
  ASSIGN_OR_RETURN(const auto parameters, recipes_.ParametersOf(recipe));
  FirstDataError errors(*recipe.recipe);
  Frame frame = stream_->MakeFrame(*recipe.recipe, parameters->addresses(), &errors);
  FillInputs(step, recipe);
  frame.collective = collective;
  frame.live_rows = step.tokens;
  frame.live_segments = std::max<int64_t>(picks, 1);
  stream_->Replay(*recipe.recipe, frame);
  if (errors.any()) return absl::InternalError("a step met data that it could not use");
  return absl::Span<float>(reinterpret_cast<float*>(frame.outputs[0]),
                           static_cast<size_t>(picks * vocabulary_));
}

}  // namespace reprise
