// Operands that an op does not take are refused although its steps would take them.
#include <gmock/gmock.h>

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr int kU8 = onnx::TensorProto::UINT8;

// Returns a model with a scale `s` and a zero point `z`.
ModelBuilder Quantized() {
  ModelBuilder b(13);
  b.model().add_opset_import()->set_domain("com.microsoft");
  b.model().mutable_opset_import(1)->set_version(1);
  b.Floats("s", {}, {0.5f});
  b.Initializer<uint8_t>("z", kU8, {}, {7});
  return b;
}

TEST(RewriteRefusalTest, HalfAnOperandIsNotConcatenated) {
  for (const auto& [inputs, count] : {std::pair(std::vector<std::string>{"s", "z"}, 2),
                                      {{"s", "z", "x", "s"}, 4},
                                      {{"s", "z", "x", "s", "z", "x"}, 6},
                                      {{"s", "z", "x", "s", "z", "x", "s"}, 7}}) {
    ModelBuilder b = Quantized();
    b.Input("x", {"n"}, kU8).Output("y");
    b.Node("QLinearConcat", inputs, {"y"}, "both", "com.microsoft");
    EXPECT_THAT(InvalidArgument(b), HasSubstr(absl::StrCat("has ", count, " inputs, takes")));
  }
  ModelBuilder whole = Quantized();
  whole.Input("x", {"n"}, kU8).Output("y");
  whole.Node("QLinearConcat", {"s", "z", "x", "s", "z", "x", "s", "z"}, {"y"}, "both",
             "com.microsoft");
  EXPECT_TRUE(Import(whole).ok()) << Import(whole).status();
}

TEST(RewriteRefusalTest, ABiasOfFloatsIsNoBiasOfAQuantizedConvolution) {
  const auto with_bias = [](int type) {
    ModelBuilder b = Quantized();
    b.Input("x", {"1", "1", "4", "4"}, kU8).Output("y");
    b.Initializer<uint8_t>("w", kU8, {1, 1, 1, 1}, {3});
    b.Initializer<int32_t>("bias", type, {1}, {0});
    b.Node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z", "bias"}, {"y"}, "c");
    return b;
  };
  EXPECT_TRUE(Import(with_bias(onnx::TensorProto::INT32)).ok());
  EXPECT_THAT(InvalidArgument(with_bias(onnx::TensorProto::FLOAT)),
              AllOf(HasSubstr("op 'QLinearConv'"), HasSubstr("node 'c'"),
                    HasSubstr("its bias (input 8) is f32, it must be i32")));
}

TEST(RewriteRefusalTest, NoTransformRunsOverThePartsOfANumber) {
  for (const auto& [dims, axis] : {std::pair(std::vector<std::string>{"2", "8", "1"}, 2),
                                   {{"2", "8", "2"}, 2},
                                   {{"2", "8", "2"}, -1},
                                   {{"2", "8", "1"}, 3},
                                   {{"2", "8", "1"}, 1 << 30}}) {
    ModelBuilder b(20);
    b.Input("x", dims).Output("y");
    b.Initializer<int64_t>("length", onnx::TensorProto::INT64, {}, {8});
    b.Initializer<int64_t>("axis", onnx::TensorProto::INT64, {}, {axis});
    b.Node("DFT", {"x", "length", "axis"}, {"y"}, "d");
    auto model = Import(b);
    ASSERT_TRUE(model.ok()) << model.status();
    absl::Status status;
    for (const NodeId id : model->graph.NodeIds()) {
      if (status.ok()) status = InferNode(model->graph, id);
    }
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("DFT 'd'("),
                      HasSubstr(absl::StrCat("axis ", axis, " of a signal of rank 3"))));
  }
}

}  // namespace
}  // namespace reprise
