// Options of axes go by the labels of the axes, or by the names that the model's file has for them.
#pragma once

#include "absl/status/status.h"
#include "runtime/engine/load/model_draft.h"

namespace reprise {

// Has every option of an axis of `model` go by the label of the axis. INVALID_ARGUMENT names an
// axis that the model does not have, two names of one axis, and a bucket that is outside of the
// range of its axis.
absl::Status NameAxes(ModelDraft& model);

}  // namespace reprise
