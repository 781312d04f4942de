// Models in float32 whose weights are all numbers of a half, from file to answer: products read the
// halves, and not a bit of an answer differs.
#include <gtest/gtest.h>

#include <random>

#include "runtime/graph/parameter_expr.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;

class NarrowedWeightsTest : public testing::TestWithParam<std::tuple<DType, Isa>> {
 protected:
  static constexpr int64_t kWords = 140, kHidden = 130, kInner = 170;

  static DType half() { return std::get<0>(GetParam()); }
  static Isa isa() { return std::get<1>(GetParam()); }
  static float Rounded(float value) {
    return half() == DType::kFloat16 ? HalfToFloat(FloatToHalf(value))
                                     : BFloat16ToFloat(FloatToBFloat16(value));
  }

  // Rows of a table, times a matrix as it is, and times one that is turned. `spoilt`: the last row
  // of each matrix, which meets zeros alone, has a number that no half has.
  static std::string ModelOf(bool spoilt) {
    std::mt19937 random(9);
    std::normal_distribution<float> normal(0, 0.1f);
    ModelBuilder b(17);
    b.Input("ids", {"batch"}, TensorProto::INT64);
    const auto weights = [&](const std::string& name, int64_t k, int64_t n, bool turned) {
      std::vector<float> values(k * n);
      for (float& value : values) value = Rounded(normal(random));
      if (spoilt) values[turned ? k - 1 : (k - 1) * n] = 1.0001f;
      b.Floats(name, turned ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}, values);
    };
    std::vector<float> table(kWords * kHidden);
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = i % kHidden == kHidden - 1 ? 0 : Rounded(normal(random));
    }
    b.Floats("table", {kWords, kHidden}, table);
    weights("w", kHidden, kInner, false);
    weights("turned", kHidden, kInner, true);
    b.Node("Gather", {"table", "ids"}, {"x"});
    b.Node("MatMul", {"x", "w"}, {"y0"});
    b.Output("y0");
    SetAttribute(b.Node("Gemm", {"x", "turned"}, {"y1"}), "transB", int64_t{1});
    b.Output("y1");
    return b.Bytes();
  }

  std::shared_ptr<Model> Load(bool spoilt) {
    const std::string name = spoilt ? "spoilt" : "exact";
    auto model = fixture_.engine.Load(
        {.id = {name, 1}, .path = folder_.Write(name + ".onnx", ModelOf(spoilt))});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  int HalfProducts(Model& model) {
    const auto recipe = fixture_.engine.CompileAt(model, {4});
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    int count = 0;
    for (const Launch& launch : (*recipe)->launches) {
      count += launch.kernel.rfind("gemm_half", 0) == 0;
    }
    // Tables are read as they lie in the file, and so are weights that no kernel reads as halves.
    for (const ParameterExprPtr& parameter : (*recipe)->parameters) {
      if (parameter->text().find("reprise.exact") == std::string::npos) continue;
      EXPECT_NE(parameter->text().find("cpu.PackHalfPanels"), std::string::npos)
          << parameter->text();
    }
    return count;
  }

  const TempFolder folder_;
  EngineFixture fixture_{1, isa()};
};

TEST_P(NarrowedWeightsTest, AnswersHaveTheBitsThatTheFloatsGive) {
  const auto exact = Load(false), spoilt = Load(true);
  ASSERT_TRUE(exact != nullptr && spoilt != nullptr);
  EXPECT_EQ(HalfProducts(*exact), isa().Covers(Isa::kAvx2) ? 2 : 0);
  EXPECT_EQ(HalfProducts(*spoilt), 0);
  for (const int64_t rows : {1, 5, 9, 40, 150}) {
    std::vector<int64_t> ids(rows);
    for (int64_t i = 0; i < rows; ++i) ids[i] = (i * 37 + rows) % kWords;
    Request request;
    request.inputs = {{{rows}, ids.data()}};
    const Response a = fixture_.engine.RunOne(*exact, request, *fixture_.stream);
    const Response b = fixture_.engine.RunOne(*spoilt, request, *fixture_.stream);
    ASSERT_TRUE(a.status.ok() && b.status.ok()) << a.status << b.status;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(a.outputs[i].bytes, b.outputs[i].bytes) << rows << " rows, output " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, NarrowedWeightsTest,
                         testing::Combine(testing::Values(DType::kFloat16, DType::kBFloat16),
                                          testing::ValuesIn(cpu::TestedTiers())),
                         [](const auto& info) {
                           return std::string(DTypeName(std::get<0>(info.param))) + "_" +
                                  std::string(IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace reprise
