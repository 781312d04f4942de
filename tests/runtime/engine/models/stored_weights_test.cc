// Products with weights in the blocks of GGUF files, from file to answer: against the same model
// with the floats that they stand for, on every tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "runtime/ops/weights/block_formats.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr int64_t kStoredRows = 37, kStoredColumns = 512;

// Random blocks with factors of a usual size.
std::vector<uint8_t> StoredBytes(const ops::BlockFormat& format) {
  std::mt19937 random(17);
  std::vector<uint8_t> bytes(kStoredRows * kStoredColumns / format.numbers * format.bytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  const auto put = [&](size_t block, int64_t at, float value) {
    const uint16_t half = FloatToHalf(value);
    std::memcpy(bytes.data() + block * format.bytes + at, &half, sizeof(half));
  };
  for (size_t block = 0; block * format.bytes < bytes.size(); ++block) {
    const float scale = 0.001f * static_cast<float>(random() % 100) - 0.03f;
    put(block, format.name == "Q6_K" ? 208 : 0, format.numbers > 32 ? scale / 32 : scale);
    if (format.offsets) put(block, 2, 0.01f * static_cast<float>(random() % 50) - 0.2f);
  }
  return bytes;
}

std::vector<float> StandFor(const ops::BlockFormat& format, const std::vector<uint8_t>& bytes) {
  std::vector<float> floats;
  ops::BlockParts parts;
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(format.bytes)) {
    format.take_apart(bytes.data() + at, parts);
    for (int64_t i = 0; i < format.numbers; ++i) {
      const int64_t group = i / format.group;
      const float value = static_cast<float>(parts.numbers[i]) * parts.scales[group];
      floats.push_back(format.offsets ? value + parts.offsets[group] : value);
    }
  }
  return floats;
}

std::string StoredModel(const ops::BlockFormat& format, bool stored) {
  const std::vector<uint8_t> bytes = StoredBytes(format);
  ModelBuilder b;
  auto* domain = b.model().add_opset_import();
  domain->set_domain("ggml");
  domain->set_version(1);
  b.Input("x", {"batch", std::to_string(kStoredColumns)});
  std::string rows = "w";
  if (stored) {
    b.Initializer("w", TensorProto::UINT8,
                  {kStoredRows, kStoredColumns / format.numbers * format.bytes}, bytes);
    SetAttribute(b.Node("Dequantize", {"w"}, {"floats"}, "d", "ggml"), "format",
                 std::string(format.name));
    rows = "floats";
  } else {
    b.Floats("w", {kStoredRows, kStoredColumns}, StandFor(format, bytes));
  }
  SetAttribute(b.Node("Transpose", {rows}, {"t"}), "perm", std::vector<int64_t>{1, 0});
  b.Node("MatMul", {"x", "t"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

class StoredWeightsTest : public testing::TestWithParam<std::tuple<ops::BlockFormat, Isa>> {
 protected:
  const TempFolder folder_;
  EngineFixture fixture_{1, std::get<1>(GetParam())};
};

TEST_P(StoredWeightsTest, TheProductIsThatOfTheFloatsThatTheyStandFor) {
  const ops::BlockFormat& format = std::get<0>(GetParam());
  std::vector<std::shared_ptr<Model>> models;
  for (const bool stored : {true, false}) {
    const std::string name = stored ? "stored" : "dense";
    auto model = fixture_.engine.Load(
        {.id = {name, 1}, .path = folder_.Write(name + ".onnx", StoredModel(format, stored))});
    ASSERT_TRUE(model.ok()) << model.status();
    models.push_back(*model);
  }
  if (std::get<1>(GetParam()).Covers(Isa::kAvx2)) {
    const auto recipe = fixture_.engine.CompileAt(*models[0], {4});
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    ASSERT_EQ((*recipe)->launches.size(), 1);
    EXPECT_THAT((*recipe)->launches[0].kernel, testing::StartsWith("gemm_blocks"));
  }
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const int64_t rows : {1, 3, 8, 17}) {
    std::vector<float> x(static_cast<size_t>(rows * kStoredColumns));
    for (float& value : x) value = normal(random);
    x[0] = 1e4f;  // far from the others of its block
    if (rows == 3) x[kStoredColumns + 5] = std::numeric_limits<float>::infinity();
    Request request;
    request.inputs = {{{rows, kStoredColumns}, x.data()}};
    const Response got = fixture_.engine.RunOne(*models[0], request, *fixture_.stream);
    const Response want = fixture_.engine.RunOne(*models[1], request, *fixture_.stream);
    ASSERT_TRUE(got.status.ok() && want.status.ok()) << got.status << want.status;
    const auto* const a = reinterpret_cast<const float*>(got.outputs[0].bytes.data());
    const auto* const b = reinterpret_cast<const float*>(want.outputs[0].bytes.data());
    for (int64_t i = 0; i < rows * kStoredRows; ++i) {
      if (!std::isfinite(b[i])) {
        ASSERT_FALSE(std::isfinite(a[i])) << i;
        continue;
      }
      ASSERT_NEAR(a[i], b[i], 1e-3 + 1e-5 * std::abs(b[i])) << rows << " rows, " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, StoredWeightsTest,
                         testing::Combine(testing::ValuesIn(ops::BlockFormats().begin(),
                                                            ops::BlockFormats().end()),
                                          testing::ValuesIn(cpu::ProductTiers())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace reprise
