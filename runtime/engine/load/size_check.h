// CheckSomeSizes: whether a model can run at any size at all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

// `specialize(sizes)`: the status of specialising at these sizes of all symbols of `inputs`.
// Returns INVALID_ARGUMENT when it fails in a way that no sizes can change: by a rank, or by a part
// that does not depend on the sizes. The message says which dims the file declares. OK for failures
// at the few sizes that are tried here alone.
absl::Status CheckSomeSizes(
    absl::Span<const ModelIo> inputs,
    const std::function<absl::Status(const std::map<std::string, int64_t>&)>& specialize);

}  // namespace reprise
