// The findings that loading a model made, as a record of the recipe store.
//
// The findings hold for the same graph, the same weights (they may be tables of positions), the
// same settings, device and compiler: all of them are in the key, and compared in full.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/types/observer.h"
#include "runtime/graph/dtype.h"
#include "runtime/recipe/record_name.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/output_shapes.h"

namespace reprise {

namespace recipe::v1 {
class ModelKey;
}  // namespace recipe::v1

// Raised when the findings change.
inline constexpr int kCertifyVersion = 19;

struct StoredModelKey {
  std::string graph;       // digest of the canonical text
  std::string parameters;  // digest of the weights
  std::string settings;    // the part of the configuration that the findings depend on
  std::string device;
  std::string compiler;

  RecordName NameOf(const ModelId& id) const;
  void Put(recipe::v1::ModelKey& stored) const;
  // Returns FAILED_PRECONDITION where `stored` is another key.
  absl::Status Check(const recipe::v1::ModelKey& stored) const;
};

// The findings, in the order of the model's axes and outputs.
struct ModelFindings {
  std::vector<AxisCertificate> axes;
  std::vector<int64_t> smallest;        // per axis: the smallest size that the model takes
  std::vector<SizeDecision> decisions;  // one per axis
  std::vector<int64_t> opens_to;        // one per axis: see ModelAxis
  std::vector<OutputShape> outputs;     // empty where no axis could be fitted
  std::vector<DType> output_dtypes;
  std::string packing_refusal;  // empty: nothing prevents packing
};

std::string EncodeFindings(const StoredModelKey& key, const ModelId& id,
                           const ModelFindings& findings, int64_t measure_ns);

// Returns DATA_LOSS for bytes that are no findings, or none for a model of these axis labels and
// input names; FAILED_PRECONDITION for findings of another key.
absl::StatusOr<ModelFindings> DecodeFindings(absl::string_view bytes, const StoredModelKey& key,
                                             const std::vector<std::string>& axis_labels,
                                             const std::vector<std::string>& input_names,
                                             size_t outputs);

}  // namespace reprise
