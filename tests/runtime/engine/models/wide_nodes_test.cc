// Concat and Split of more pieces than a launch has operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

void AlongLast(onnx::NodeProto& node) {
  onnx::AttributeProto& axis = *node.add_attribute();
  axis.set_name("axis");
  axis.set_type(onnx::AttributeProto::INT);
  axis.set_i(-1);
}

class WideNodesTest : public testing::TestWithParam<int> {
 protected:
  // x of [n, pieces * width] is split, the pieces are doubled every other one, and joined again.
  Response Run(int width, std::vector<float>& x) {
    const int pieces = GetParam();
    ModelBuilder b;
    b.Input("x", {"n", absl::StrCat(pieces * width)}).Output("y");
    std::vector<std::string> parts;
    std::vector<int64_t> sizes(pieces, width);
    for (int i = 0; i < pieces; ++i) parts.push_back(absl::StrCat("p", i));
    b.Initializer("sizes", onnx::TensorProto::INT64, {pieces}, sizes);
    b.Floats("two", {1}, {2});
    AlongLast(b.Node("Split", {"x", "sizes"}, parts, "split"));
    for (int i = 0; i < pieces; i += 2) {
      const std::string doubled = absl::StrCat("d", i);
      b.Node("Mul", {parts[i], "two"}, {doubled});
      parts[i] = doubled;
    }
    AlongLast(b.Node("Concat", parts, {"y"}, "concat"));
    const auto model =
        fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b.Bytes())});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return {.status = model.status()};
    x.resize(3 * pieces * width);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1009) - 500;
    return fixture_.engine.RunOne(**model, {.inputs = {{{3, pieces * width}, x.data()}}},
                                  *fixture_.stream);
  }

  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_P(WideNodesTest, AnyNumberOfPieces) {
  for (const int width : {1, 3}) {
    std::vector<float> x;
    const Response response = Run(width, x);
    ASSERT_TRUE(response.status.ok()) << response.status;
    ASSERT_EQ(response.outputs[0].shape, Shape({3, GetParam() * width}));
    const auto* y = reinterpret_cast<const float*>(response.outputs[0].bytes.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t piece = i % (GetParam() * width) / width;
      ASSERT_EQ(y[i], piece % 2 == 0 ? 2 * x[i] : x[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pieces, WideNodesTest,
                         testing::Values(2, 59, 60, 61, 64, 65, 120, 121, 500, 3700));

}  // namespace
}  // namespace reprise
