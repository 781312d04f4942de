// Promotion: constants of a model become optional inputs.
//
// A promoted constant is a parameter: no pass reads its bytes, and no key has them. A request that
// leaves it out gets the file's value. One that sends a value is padded and batched as usual, with
// requests of the same value (RequestShape::own_values); nothing is captured for it.
//
// A constant is not promoted where its value decides a shape, where passes read it to join nodes,
// or where the certificate of padding depends on it.
//
// Threads: one caller, the load.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/model/model_options.h"
#include "runtime/engine/model/model_proof.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"

namespace reprise {

// The most elements that a promoted constant may have: each request may send them.
inline constexpr int64_t kMostPromoted = 1024;

// Returns why `name` cannot be promoted in `imported`: INVALID_ARGUMENT. Looks at shapes and, at
// some size, at the graph that passes make.
absl::Status CheckPromotion(const ImportedModel& imported, const std::string& name);

// Returns the constants that `reprise.promote: auto` means: initialisers that the file lists as
// inputs, and constants that differ from another version of the model or from `before`, the graph
// that was served under its name. Constants that cannot be promoted are left out, with a line to
// `log`.
std::vector<std::string> FindPromotable(const ImportedModel& imported, const ModelOptions& options,
                                        const Graph* before,
                                        const std::function<void(const std::string&)>& log);

// Makes the constants `names` of `imported` parameters and optional inputs. INVALID_ARGUMENT with
// the reason of the first that cannot be.
absl::Status Promote(ImportedModel& imported, const std::vector<std::string>& names);

// Returns the first axis that may be padded in `without`, the same model with nothing promoted, and
// not in `with`, and why. Empty where nothing is lost.
std::string CertificateLost(const ModelProof& without, const ModelProof& with);

}  // namespace reprise
