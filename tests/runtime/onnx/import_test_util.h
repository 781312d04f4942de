// Helpers of the importer's tests: a model in memory, imported, as text or as its error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "runtime/onnx/importer.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

inline constexpr char kClassicDomain[] = "ai.onnx.ml";

// x [batch, 3] -> y, by the node 'relu'.
inline ModelBuilder ReluModel() {
  ModelBuilder builder;
  builder.Input("x", {"batch", "3"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"}, "relu");
  return builder;
}

inline absl::StatusOr<ImportedModel> Import(const ModelBuilder& builder) {
  const std::string bytes = builder.Bytes();
  return ImportOnnxBytes(absl::string_view(bytes.data(), bytes.size()));
}

// Returns the imported graph as text; a failure shows its message.
inline std::string Text(const ModelBuilder& builder) {
  auto model = Import(builder);
  if (!model.ok()) return std::string(model.status().ToString());
  EXPECT_TRUE(Verify(model->graph, false).ok()) << Verify(model->graph, false);
  return Print(model->graph);
}

inline std::string Error(const ModelBuilder& builder, absl::StatusCode code) {
  auto model = Import(builder);
  EXPECT_EQ(model.status().code(), code) << model.status();
  return std::string(model.status().message());
}
inline std::string InvalidArgument(const ModelBuilder& builder) {
  return Error(builder, absl::StatusCode::kInvalidArgument);
}
inline std::string Unimplemented(const ModelBuilder& builder) {
  return Error(builder, absl::StatusCode::kUnimplemented);
}

}  // namespace reprise
