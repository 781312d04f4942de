// Initializers: the weights and constants of a file become values of the graph.
//
// Those of int4 and uint4 become int8 and uint8: there is no dtype of four bits after the
// importer, and nodes that would round to one are refused.
//
// Ownership: borrows all it is made with. Threads: one caller.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/file/slim_model.h"
#include "runtime/onnx/file/tensors.h"
#include "runtime/onnx/file_values.h"

namespace reprise {

class Initializers {
 public:
  explicit Initializers(FileValues& values) : values_(values) {}

  // Adds them; one that cannot be read is a reason, and defined so that the walk can go on. Errors:
  // names that are missing or defined twice; data that `tensors` cannot get from the disk.
  absl::Status Add(const onnx::GraphProto& graph, const SlimModel& slim, TensorReader& tensors);

  // Returns whether `name` is one that could not be read.
  bool IsUnread(const std::string& name) const { return unread_.contains(name); }

 private:
  absl::Status Define(const std::string& name, absl::StatusOr<Tensor> tensor);
  absl::Status AddNibbles(const onnx::TensorProto& proto, absl::string_view raw,
                          TensorReader& tensors);
  absl::Status DefineUnread(const std::string& name);

  FileValues& values_;
  HashSet<std::string> unread_;
};

}  // namespace reprise
