// How a dynamicity report looks, and how one comes of a file of shapes.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "proto/admin.pb.h"
#include "tools/files/length_file.h"

namespace reprise::cli {

// Returns the verdict, its evidence, the axes, the most frequent shapes, nodes, and advice.
// `server`: the report comes from one, which knows of recipes.
std::string DynamicityText(const v1::ModelDynamicity& report, bool server);

// Returns a line a shape: model, version, a column an input, counts; `dynamicity --file` reads it.
std::string DynamicityCsv(const v1::ModelDynamicity& report);

// Returns the same judgement of shapes that were written down, in their order of arrival unless the
// file counts them. `most_shapes`: listed, 0: all.
v1::ModelDynamicity JudgeShapeFile(const ShapeColumns& shapes, absl::string_view source,
                                   int most_shapes);

}  // namespace reprise::cli
