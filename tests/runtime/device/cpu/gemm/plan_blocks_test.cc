// Products by weights of a few bits as they are offered: by which kernels, over which scratch.
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

class PlanBlocksTest : public testing::TestWithParam<Isa> {};

// Plans as on a CPU with a tile unit, with the kernels of this tier in its place.
TEST_P(PlanBlocksTest, PanelsWidenedForKernelsOfFloatsGiveTheSameBits) {
  const CpuTarget target(GetParam(), GemmProvider::kOwn, nullptr, /*max_threads=*/3);
  constexpr int64_t kM = 50, kN = 130, kK = 96, kBlock = 32;
  absl::StatusOr<Graph> graph = Parse(
      "graph {\ninput %x: f32[50, 96]\nparam %w: f32[96, 130] = p0\nparam %b: f32[130] = p1\n"
      "input %r: f32[50, 130]\n"
      "%y: ? = reprise.Linear(%x, %w, %b, %r) {activation = \"gelu\"}\noutput %y\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (ValueId input : graph->inputs()) {
    Value& value = graph->value(input);
    value.shape.emplace();
    for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
  }
  const NodeId id = graph->NodeIds()[0];
  ASSERT_TRUE(InferNode(*graph, id).ok());
  const ParameterExprPtr rows = ParameterExpr::Apply(
      "reprise.DequantizeBits", {{"K", kK}, {"bits", int64_t{4}}, {"block_size", kBlock}},
      {ParameterExpr::Leaf(0, DType::kUInt8, {kN, kK / 2}),
       ParameterExpr::Leaf(1, DType::kFloat32, {kN, kK / kBlock})},
      DType::kFloat32, {kN, kK});
  graph->value(graph->node(id).inputs[1]).parameter = ParameterExpr::Apply(
      "Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {rows}, DType::kFloat32, {kK, kN});
  const NodeView node(*graph, id);
  EXPECT_EQ(BlockCandidates(target, node, *LinearProduct(node), {}).size(), 1u);
  const auto both =
      BlockCandidates(target, node, *LinearProduct(node), {.floats = &GemmKernelsFor(target.isa)});
  ASSERT_EQ(both.size(), 2u);
  const Candidate* const widened = &both[0];
  const Candidate* const usual = &both[1];
  EXPECT_EQ(usual->option.workspace_bytes, 0u);
  EXPECT_EQ(usual->option.prepare[0].shape, widened->option.prepare[0].shape);

  const BlockForm form = {.bits = 4, .block = kBlock};
  const BlockGemmKernels& kernels = BlockGemmKernelsFor(GetParam());
  std::vector<uint8_t> numbers(kN * kK / 2);
  std::vector<float> scales(kN * kK / kBlock);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i * 37 + i / 91);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.01f * static_cast<float>(1 + i % 13);
  AlignedBuffer packed(static_cast<size_t>(kernels.PackedBytes(kK, kN, form)));
  kernels.pack({.numbers = numbers.data(), .row_bytes = kK / 2, .scales = scales.data()}, form, kK,
               kN, packed.data());
  std::vector<float> bias(kN, 0.25f);
  std::vector<float> x(kM * kK), residual(kM * kN);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 97) - 0.4f;
  for (size_t i = 0; i < residual.size(); ++i) residual[i] = static_cast<float>(i % 11);
  const auto run = [&](const Candidate& candidate, int parts) {
    std::vector<float> y(kM * kN, -1.0f);
    AlignedBuffer workspace(candidate.option.workspace_bytes);
    void* const operands[] = {x.data(),        packed.data(), bias.data(),
                              residual.data(), y.data(),      workspace.data()};
    const Frame frame;
    for (int part = 0; part < parts; ++part) {
      candidate.bound.run({.operands = operands,
                           .params = candidate.bound.params.get(),
                           .frame = &frame,
                           .launch = 0,
                           .part = part,
                           .parts = parts});
    }
    return y;
  };
  const std::vector<float> want = run(*usual, 1);
  for (const int parts : {1, 2, 3, 5}) EXPECT_EQ(run(*widened, parts), want) << parts << " parts";
}

// Plans as on a CPU with a tile unit, with vectors' products of bfloat16 in its place.
TEST(PlanBlocksOfBf16Test, PanelsWidenedForKernelsOfBf16GiveTheBitsOfRoundedFloats) {
  const Isa isa = DetectIsa();
  const Bf16Kernels* const kernels = Bf16DotKernelsFor(isa);
  if (kernels == nullptr) GTEST_SKIP() << "this CPU does not multiply bfloat16";
  const CpuTarget target(isa, GemmProvider::kOwn, nullptr, /*max_threads=*/3);
  constexpr int64_t kM = 50, kN = 130, kK = 96, kBlock = 32;
  absl::StatusOr<Graph> graph = Parse(
      "graph {\ninput %x: f32[50, 96]\nparam %w: f32[96, 130] = p0\n"
      "%y: ? = reprise.Linear(%x, %w) {precision = \"bf16\"}\noutput %y\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  graph->value(graph->inputs()[0]).shape = Shape{kM, kK};
  const NodeId id = graph->NodeIds()[0];
  ASSERT_TRUE(InferNode(*graph, id).ok());
  const ParameterExprPtr rows = ParameterExpr::Apply(
      "reprise.DequantizeBits", {{"K", kK}, {"bits", int64_t{4}}, {"block_size", kBlock}},
      {ParameterExpr::Leaf(0, DType::kUInt8, {kN, kK / 2}),
       ParameterExpr::Leaf(1, DType::kFloat32, {kN, kK / kBlock})},
      DType::kFloat32, {kN, kK});
  graph->value(graph->node(id).inputs[1]).parameter = ParameterExpr::Apply(
      "Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {rows}, DType::kFloat32, {kK, kN});
  const NodeView node(*graph, id);
  const auto usual = BlockCandidates(target, node, *LinearProduct(node), {});
  ASSERT_EQ(usual.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(usual[0].option.kernel, "gemm_blocks_bf16_avx512"));
  const auto widened = BlockCandidates(target, node, *LinearProduct(node), {.halves = kernels});
  ASSERT_EQ(widened.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(widened[0].option.kernel, "gemm_blocks_bf16_amx"));
  EXPECT_EQ(usual[0].option.prepare[0].shape, widened[0].option.prepare[0].shape);

  const BlockForm form = {.bits = 4, .block = kBlock};
  const Bf16BlockKernels& blocks = *Bf16BlockKernelsFor(isa);
  std::vector<uint8_t> numbers(kN * kK / 2);
  std::vector<float> scales(kN * kK / kBlock), floats(kN * kK), x(kM * kK);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i * 37 + i / 91);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.01f * static_cast<float>(1 + i % 13);
  for (size_t i = 0; i < floats.size(); ++i) {
    const int number = numbers[i / 2] >> i % 2 * 4 & 15;
    floats[i] = static_cast<float>(number - 8) * scales[i / kBlock];
  }
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 97) - 0.4f;
  AlignedBuffer packed(static_cast<size_t>(blocks.packed_bytes(kK, kN, form)));
  blocks.pack({.numbers = numbers.data(), .row_bytes = kK / 2, .scales = scales.data()}, form, kK,
              kN, packed.data());
  AlignedBuffer rounded(static_cast<size_t>(kernels->PackedBytes(kK, kN)));
  kernels->pack({floats.data(), kK, /*transposed=*/true}, kK, kN, rounded.data());
  std::vector<float> want(kM * kN);
  AlignedBuffer scratch(static_cast<size_t>(kernels->part_scratch_bytes(kM, kK)));
  kernels->part({.a = x.data(),
                 .lda = kK,
                 .packed_b = rounded.data(),
                 .c = want.data(),
                 .ldc = kN,
                 .n = kN,
                 .k = kK,
                 .scratch = scratch.data()},
                nullptr, kernels->Partition(kM, kN, 1, 0));
  for (const int parts : {1, 2, 3, 5}) {
    std::vector<float> y(kM * kN, -1.0f);
    AlignedBuffer workspace(widened[0].option.workspace_bytes);
    void* const operands[] = {x.data(), packed.data(), y.data(), workspace.data()};
    const Frame frame;
    for (int part = 0; part < parts; ++part) {
      widened[0].bound.run({.operands = operands,
                            .params = widened[0].bound.params.get(),
                            .frame = &frame,
                            .launch = 0,
                            .part = part,
                            .parts = parts});
    }
    EXPECT_EQ(y, want) << parts << " parts";
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, PlanBlocksTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
