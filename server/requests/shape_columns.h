// The shape of a request as ShapeRecorder counts it: a number an axis of the model, and one for the
// values of inputs that decide shapes where it has such inputs.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bucket/shape_recorder.h"
#include "runtime/engine/model/model.h"

namespace reprise {

// Returns the names of the columns.
std::vector<std::string> ShapeColumns(const Model& model);

std::vector<int64_t> ShapeOf(const Model& model, const RequestShape& shape);

// Returns the shape of `input` in a request of the shape `columns`: "2x128"; "scalar". A dim that
// no axis has is its symbol.
std::string InputShapeText(const Model& model, const ModelIo& input,
                           const std::vector<int64_t>& columns);

ShapeService ServiceOf(const Response& response);

}  // namespace reprise
