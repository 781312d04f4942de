// Products of quantised rows by quantised weights, in the forms that onnxruntime's quantiser and
// optimiser write, from file to answer: against the nodes of the file, run one after another by
// their reference kernels, on every tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/engine/silent_observer.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/specialize/specialize.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/interpreter.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr int64_t kIn = 37, kOut = 50;  // no multiples of a vector

class LayerBuilder {
 public:
  ModelBuilder b;

  // Weights of any bytes.
  void Weights(const std::string& name, int type, int64_t rows, int64_t columns) {
    std::vector<uint8_t> values(rows * columns);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random_());
    b.Initializer(name, type, {rows, columns}, values);
  }
  void Scales(const std::string& name, std::vector<int64_t> dims) {
    std::vector<float> values(dims.empty() ? 1 : dims[0]);
    for (float& value : values) value = 0.001f * static_cast<float>(1 + random_() % 20);
    b.Floats(name, dims, values);
  }
  void Points(const std::string& name, int type, std::vector<int64_t> dims) {
    std::vector<uint8_t> values(dims.empty() ? 1 : dims[0]);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random_() % 100);
    b.Initializer(name, type, dims, values);
  }
  void Bias(const std::string& name, int64_t columns) { Scales(name, {columns}); }
  void Cast(const std::string& from, const std::string& to) {
    SetAttribute(b.Node("Cast", {from}, {to}), "to", int64_t{TensorProto::FLOAT});
  }
  // Steps of 1 / 50 around 0 for numbers in [-2.5, 2.5].
  void Steps(const std::string& scale, const std::string& zero, int type) {
    b.Floats(scale, {}, {0.02f});
    b.Initializer(zero, type, {},
                  std::vector<uint8_t>{type == TensorProto::UINT8 ? uint8_t{128} : uint8_t{0}});
  }

 private:
  std::mt19937 random_{3};
};

struct ProductForm {
  const char* name;
  void (*build)(LayerBuilder&);  // x [rows, kIn] to y
  int products;                  // products that run by the kernels of bytes
};

void PrintTo(const ProductForm& c, std::ostream* out) { *out << c.name; }

const ProductForm kProductForms[] = {
    {"Dynamic",
     [](LayerBuilder& l) {
       l.Weights("w", TensorProto::INT8, kIn, kOut);
       l.Scales("ws", {});
       l.Points("wz", TensorProto::INT8, {});
       l.Bias("bias", kOut);
       l.b.Node("DynamicQuantizeLinear", {"x"}, {"q", "qs", "qz"});
       l.b.Node("MatMulInteger", {"q", "w", "qz", "wz"}, {"i"});
       l.Cast("i", "f");
       l.b.Node("Mul", {"qs", "ws"}, {"s"});
       l.b.Node("Mul", {"f", "s"}, {"m"});
       l.b.Node("Add", {"bias", "m"}, {"a"});
       l.b.Node("Relu", {"a"}, {"y"});
     },
     1},
    {"DynamicOneInputOfSeveralUnsignedByColumn",
     [](LayerBuilder& l) {
       l.b.Node("DynamicQuantizeLinear", {"x"}, {"q", "qs", "qz"});
       for (const std::string n : {"1", "2"}) {
         l.Weights("w" + n, TensorProto::UINT8, kIn, kOut);
         l.Scales("ws" + n, {kOut});
         l.Points("wz" + n, TensorProto::UINT8, {kOut});
         l.b.Node("MatMulInteger", {"q", "w" + n, "qz", "wz" + n}, {"i" + n});
         l.Cast("i" + n, "f" + n);
         l.b.Node("Mul", {"qs", "ws" + n}, {"s" + n});
         l.b.Node("Mul", {"s" + n, "f" + n}, {"m" + n});
       }
       l.b.Node("Add", {"m1", "m2"}, {"y"});
     },
     2},
    {"QuantizeAndDequantize",
     [](LayerBuilder& l) {
       l.Steps("xs", "xz", TensorProto::UINT8);
       l.Weights("w", TensorProto::INT8, kIn, kOut);
       l.Scales("ws", {kOut});
       l.Points("wz", TensorProto::INT8, {kOut});
       l.Bias("bias", kOut);
       l.b.Node("QuantizeLinear", {"x", "xs", "xz"}, {"q"});
       l.b.Node("DequantizeLinear", {"q", "xs", "xz"}, {"d"});
       l.b.Node("DequantizeLinear", {"w", "ws", "wz"}, {"wd"});
       l.b.Node("MatMul", {"d", "wd"}, {"m"});
       l.b.Node("Add", {"m", "bias"}, {"a"});
       l.b.Node("Relu", {"a"}, {"y"});
     },
     1},
    {"TransposedGemmWithAnIntegerBias",
     [](LayerBuilder& l) {
       l.Steps("xs", "xz", TensorProto::INT8);
       l.Weights("w", TensorProto::INT8, kOut, kIn);
       l.Scales("ws", {kOut});
       l.Points("wz", TensorProto::INT8, {kOut});
       std::vector<int32_t> bias(kOut);
       for (int64_t i = 0; i < kOut; ++i) bias[i] = static_cast<int32_t>(100 * i - 2000);
       l.b.Initializer("bias", TensorProto::INT32, {kOut}, bias);
       l.Scales("bs", {kOut});
       l.b.Node("QuantizeLinear", {"x", "xs", "xz"}, {"q"});
       l.b.Node("DequantizeLinear", {"q", "xs", "xz"}, {"d"});
       SetAttribute(l.b.Node("DequantizeLinear", {"w", "ws", "wz"}, {"wd"}), "axis", int64_t{0});
       SetAttribute(l.b.Node("DequantizeLinear", {"bias", "bs"}, {"bd"}), "axis", int64_t{0});
       SetAttribute(l.b.Node("Gemm", {"d", "wd", "bd"}, {"y"}), "transB", int64_t{1});
     },
     1},
    {"IntegerToFloat",
     [](LayerBuilder& l) {
       l.Steps("xs", "xz", TensorProto::UINT8);
       l.Weights("w", TensorProto::UINT8, kIn, kOut);
       l.Scales("ws", {});
       l.Points("wz", TensorProto::UINT8, {});
       l.Bias("bias", kOut);
       l.b.Node("QuantizeLinear", {"x", "xs", "xz"}, {"q"});
       l.b.Node("MatMulIntegerToFloat", {"q", "w", "xs", "ws", "xz", "wz", "bias"}, {"y"}, "n",
                kMicrosoft);
     },
     1},
    {"DynamicMatMul",
     [](LayerBuilder& l) {
       l.Weights("w", TensorProto::INT8, kIn, kOut);
       l.Scales("ws", {kOut});
       l.b.Node("DynamicQuantizeMatMul", {"x", "w", "ws"}, {"y"}, "n", kMicrosoft);
     },
     1},
};

class QuantizedProductsTest : public testing::TestWithParam<std::tuple<ProductForm, Isa>> {};

TEST_P(QuantizedProductsTest, AnswersAreThoseOfTheNodesOfTheFile) {
  const auto& [form, isa] = GetParam();
  LayerBuilder layer;
  layer.b.Input("x", {"batch", std::to_string(kIn)});
  form.build(layer);
  layer.b.Output("y");
  const TempFolder folder;
  const std::string path = folder.Write("model.onnx", layer.b.Bytes());

  const absl::StatusOr<ImportedModel> imported = ImportOnnxFile(path);
  ASSERT_TRUE(imported.ok()) << imported.status();
  SteadyClock clock;
  HelperPool cores{1};
  SilentObserver observer;
  const CpuDevice device({.max_isa = isa, .gemm_provider = GemmProvider::kOwn});
  Engine engine({.device = &device, .clock = &clock, .cores = &cores}, observer);
  const std::unique_ptr<Stream> stream = *Stream::Create({.cores = &cores});
  const auto model = engine.Load({.id = {"m", 1}, .path = path});
  ASSERT_TRUE(model.ok()) << model.status();

  const auto recipe = engine.CompileAt(**model, {8});
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  int products = 0;
  for (const Launch& launch : (*recipe)->launches) {
    EXPECT_FALSE(launch.reference) << launch.kernel;
    products += launch.kernel.rfind("gemm_u8s8", 0) == 0;
  }
  EXPECT_EQ(products, form.products);

  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (const int64_t rows : {1, 2, 3, 7, 8, 13, 32}) {
    std::vector<float> x(rows * kIn);
    for (float& value : x) value = uniform(random);
    Request request;
    request.inputs = {{{rows, kIn}, x.data()}};
    const Response response = engine.RunOne(**model, request, *stream);
    ASSERT_TRUE(response.status.ok()) << response.status;

    Binding binding;
    binding.axes["batch"] = rows;
    const absl::StatusOr<Graph> graph = Specialize(imported->graph, binding);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto expected = Interpret(
        *graph, {{"x", Tensor::FromVector(DType::kFloat32, {rows, kIn}, x)}}, imported->parameters);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const std::vector<double> want = (*expected)[0].ToDoubles();
    ASSERT_EQ(response.outputs[0].shape, (*expected)[0].shape());
    const auto* got = reinterpret_cast<const float*>(response.outputs[0].bytes.data());
    double largest = 0;
    for (const double value : want) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-5 * largest) << rows << " rows, element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, QuantizedProductsTest,
                         testing::Combine(testing::ValuesIn(kProductForms),
                                          testing::ValuesIn(cpu::TestedTiers())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace reprise
