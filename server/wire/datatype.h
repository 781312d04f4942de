// Names of element types in the protocol ("INT64", TYPE_INT64) and in the engine.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "proto/model_config.pb.h"
#include "runtime/graph/dtype.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

// "FP32"; "" for kUndefined.
absl::string_view ProtocolName(DType dtype);
std::optional<DType> ParseProtocolName(absl::string_view name);

inference::DataType ConfigType(DType dtype);

// The same for an input or output, which may be text.
inline constexpr char kTextDatatype[] = "BYTES";
absl::string_view ProtocolName(const ModelIo& io);
inference::DataType ConfigType(const ModelIo& io);

}  // namespace reprise
