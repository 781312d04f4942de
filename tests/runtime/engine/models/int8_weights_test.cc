// Models that store weights as int8 with factors, in the forms that exporters write, from file to
// answer: against the plain loops of the reference device, on every tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/device/reference/reference_device.h"
#include "runtime/engine/silent_observer.h"
#include "runtime/graph/parameter_expr.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr int64_t kRows = 37;     // rows of the weights
constexpr int64_t kColumns = 50;  // no multiple of a vector

class WeightBuilder {
 public:
  ModelBuilder b;

  void Values(const std::string& name, int64_t rows, int64_t columns) {
    std::vector<int8_t> values(rows * columns);
    for (int8_t& value : values) value = static_cast<int8_t>(random_() % 255 - 127);
    b.Initializer(name, TensorProto::INT8, {rows, columns}, values);
  }
  void Scales(const std::string& name, std::vector<int64_t> dims) {
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    std::vector<float> values(elements);
    for (float& value : values) value = 0.001f * static_cast<float>(1 + random_() % 20);
    b.Floats(name, dims, values);
  }
  void Cast(const std::string& from, const std::string& to) {
    SetAttribute(b.Node("Cast", {from}, {to}), "to", int64_t{TensorProto::FLOAT});
  }

 private:
  std::mt19937 random_{3};
};

struct WeightForm {
  const char* name;
  void (*build)(WeightBuilder&);  // x [rows, kRows] to y
  bool int8 = true;               // the int8 kernel takes it
};

void PrintTo(const WeightForm& c, std::ostream* out) { *out << c.name; }

const WeightForm kWeightForms[] = {
    {"CastAndFactorOfColumns",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Scales("s", {1, kColumns});
       w.Cast("q", "f");
       w.b.Node("Mul", {"f", "s"}, {"weight"});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     }},
    {"OneFactorForAll",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Scales("s", {});
       w.Cast("q", "f");
       w.b.Node("Mul", {"s", "f"}, {"weight"});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     }},
    {"NoFactor",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Cast("q", "weight");
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     }},
    {"FactorOfRowsIsNoFactorOfColumns",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Scales("s", {kRows, 1});
       w.Cast("q", "f");
       w.b.Node("Mul", {"f", "s"}, {"weight"});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     },
     false},
    {"DequantizeLinearByColumn",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Scales("s", {kColumns});
       w.b.Initializer("z", TensorProto::INT8, {kColumns}, std::vector<int8_t>(kColumns, 0));
       w.b.Node("DequantizeLinear", {"q", "s", "z"}, {"weight"});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     }},
    {"DequantizeLinearWithAZeroPoint",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Scales("s", {});
       w.b.Initializer("z", TensorProto::INT8, {}, std::vector<int8_t>{3});
       w.b.Node("DequantizeLinear", {"q", "s", "z"}, {"weight"});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     },
     false},
    {"TransposedGemmByRowOfTheFile",
     [](WeightBuilder& w) {
       w.Values("q", kColumns, kRows);
       w.Scales("s", {kColumns});
       SetAttribute(w.b.Node("DequantizeLinear", {"q", "s"}, {"weight"}), "axis", int64_t{0});
       w.Scales("bias", {kColumns});
       auto& gemm = w.b.Node("Gemm", {"x", "weight", "bias"}, {"y"});
       SetAttribute(gemm, "transB", int64_t{1});
       SetAttribute(gemm, "alpha", 0.5f);
     }},
    {"TransposedBeforeTheProduct",
     [](WeightBuilder& w) {
       w.Values("q", kColumns, kRows);
       w.Scales("s", {kColumns, 1});
       w.Cast("q", "f");
       w.b.Node("Mul", {"f", "s"}, {"turned"});
       SetAttribute(w.b.Node("Transpose", {"turned"}, {"weight"}), "perm",
                    std::vector<int64_t>{1, 0});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     }},
    {"TwoFactorsAndAnActivation",
     [](WeightBuilder& w) {
       w.Values("q", kRows, kColumns);
       w.Scales("s", {kColumns});
       w.Scales("t", {1});
       w.Cast("q", "f");
       w.b.Node("Mul", {"f", "s"}, {"once"});
       w.b.Node("Mul", {"once", "t"}, {"weight"});
       w.b.Node("MatMul", {"x", "weight"}, {"product"});
       w.Scales("bias", {kColumns});
       w.b.Node("Add", {"product", "bias"}, {"sum"});
       w.b.Node("Relu", {"sum"}, {"y"});
     }},
    {"PiecesSideBySide",
     [](WeightBuilder& w) {
       for (const char* piece : {"1", "2"}) {
         const std::string p = piece;
         w.Values("q" + p, kRows, kColumns);
         w.Scales("s" + p, {1, kColumns});
         w.Cast("q" + p, "f" + p);
         w.b.Node("Mul", {"f" + p, "s" + p}, {"weight" + p});
       }
       SetAttribute(w.b.Node("Concat", {"weight1", "weight2"}, {"weight"}), "axis", int64_t{1});
       w.b.Node("MatMul", {"x", "weight"}, {"y"});
     }},
};

// One model on the fast device, and on the one of plain loops.
struct Both {
  Both(const std::string& path, Isa isa)
      : fast({.max_isa = isa, .gemm_provider = GemmProvider::kOwn}),
        engine({.device = &fast, .clock = &clock, .cores = &cores}, observer),
        reference({.device = &plain, .clock = &clock, .cores = &cores}, observer),
        stream(*Stream::Create({.cores = &cores})) {
    const auto loaded = engine.Load({.id = {"m", 1}, .path = path});
    const auto expected = reference.Load({.id = {"m", 1}, .path = path});
    EXPECT_TRUE(loaded.ok() && expected.ok()) << loaded.status();
    if (loaded.ok()) model = *loaded;
    if (expected.ok()) expected_model = *expected;
  }

  void ExpectSame(const Request& request) {
    const Response response = engine.RunOne(*model, request, *stream);
    const Response expected = reference.RunOne(*expected_model, request, *stream);
    ASSERT_TRUE(response.status.ok()) << response.status;
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    ASSERT_EQ(response.outputs[0].shape, expected.outputs[0].shape);
    const auto* got = reinterpret_cast<const float*>(response.outputs[0].bytes.data());
    const auto* want = reinterpret_cast<const float*>(expected.outputs[0].bytes.data());
    const size_t count = expected.outputs[0].bytes.size() / sizeof(float);
    float largest = 0;
    for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(want[i]));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-5 * largest)
          << ShapeToString(request.inputs[0].shape) << ", element " << i;
    }
  }

  SteadyClock clock;
  HelperPool cores{1};
  SilentObserver observer;
  const CpuDevice fast;
  const ReferenceDevice plain;
  Engine engine;
  Engine reference;
  std::unique_ptr<Stream> stream;
  std::shared_ptr<Model> model, expected_model;
};

class Int8WeightsTest : public testing::TestWithParam<std::tuple<WeightForm, Isa>> {};

TEST_P(Int8WeightsTest, AnswersAreThoseOfTheWidenedWeights) {
  const auto& [form, isa] = GetParam();
  WeightBuilder weights;
  weights.b.Input("x", {"batch", std::to_string(kRows)});
  form.build(weights);
  weights.b.Output("y");
  const TempFolder folder;
  Both both(folder.Write("model.onnx", weights.b.Bytes()), isa);
  ASSERT_TRUE(both.model != nullptr && both.expected_model != nullptr);
  for (const int64_t rows : {1, 64}) {
    const auto recipe = both.engine.CompileAt(*both.model, {rows});
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    std::vector<std::string> products;
    for (const Launch& launch : (*recipe)->launches) {
      if (launch.kernel.rfind("gemm_int8", 0) == 0) products.push_back(launch.kernel);
    }
    ASSERT_EQ(products.size(), form.int8 ? 1u : 0u);
    // Weights that are bytes are multiplied as such where there is a way.
    if (form.int8 && (isa == Isa::kAvx512Vnni || isa == Isa::kAvx2Vnni)) {
      EXPECT_EQ(products[0], "gemm_int8_vnni");
    }
  }

  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 13, 17, 32, 61}) {
    std::vector<float> x(rows * kRows);
    for (float& value : x) value = uniform(random);
    Request request;
    request.inputs = {{{rows, kRows}, x.data()}};
    both.ExpectSame(request);
    if (HasFatalFailure()) return;
  }
}

class Int8TablesTest : public testing::TestWithParam<Isa> {};

TEST_P(Int8TablesTest, RowsAreThoseOfTheWidenedTables) {
  constexpr int64_t kWidth = 37, kEntries = 23, kPositions = 11;
  WeightBuilder weights;
  ModelBuilder& b = weights.b;
  b.Input("ids", {"batch", "sequence"}, TensorProto::INT64);
  b.Input("places", {"batch", "sequence"}, TensorProto::INT64);
  weights.Values("q1", kEntries, kWidth);
  weights.Scales("s1", {kEntries, 1});
  weights.Cast("q1", "f1");
  b.Node("Mul", {"f1", "s1"}, {"words"});
  weights.Values("q2", kPositions, kWidth);
  weights.Scales("s2", {});
  // One zero point for all, and factors of rows after it.
  b.Initializer("z2", TensorProto::INT8, {}, std::vector<int8_t>{3});
  b.Node("DequantizeLinear", {"q2", "s2", "z2"}, {"centered"});
  weights.Scales("t2", {kPositions, 1});
  b.Node("Mul", {"centered", "t2"}, {"positions"});
  weights.Scales("floats", {kPositions, kWidth});
  b.Node("Gather", {"words", "ids"}, {"a"});
  b.Node("Gather", {"positions", "places"}, {"b"});
  b.Node("Gather", {"floats", "places"}, {"c"});
  b.Node("Add", {"a", "b"}, {"ab"});
  b.Node("Add", {"ab", "c"}, {"y"});
  b.Output("y");
  const TempFolder folder;
  Both both(folder.Write("model.onnx", b.Bytes()), GetParam());
  ASSERT_TRUE(both.model != nullptr && both.expected_model != nullptr);
  const auto recipe = both.engine.CompileAt(*both.model, {1, 8});
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  int int8_tables = 0;
  for (const ParameterExprPtr& parameter : (*recipe)->parameters) {
    int8_tables += parameter->op() == "cpu.PackInt8Rows";
  }
  EXPECT_EQ(int8_tables, 2);
  std::vector<int64_t> ids(2 * 9), places(2 * 9);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int64_t>(i * 7 % kEntries);
    places[i] = static_cast<int64_t>(i % kPositions);
  }
  ids[3] = -1;  // the last entry
  Request request;
  request.inputs = {{{2, 9}, ids.data()}, {{2, 9}, places.data()}};
  both.ExpectSame(request);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Int8TablesTest, testing::ValuesIn(cpu::TestedTiers()),
                         cpu::TierName);

INSTANTIATE_TEST_SUITE_P(Forms, Int8WeightsTest,
                         testing::Combine(testing::ValuesIn(kWeightForms),
                                          testing::ValuesIn(cpu::ProductTiers())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace reprise
