// The products of models whose rows keep their bits at any number of rows: which orders of sums are
// offered. Plans need no CPU: each tier is looked at, whether or not the machine has it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/gemm/foreign_blas.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kDepth = 64, kColumns = 96;

// How weights are stored.
enum class Form { kFloat, kHalf, kInt8, kBlocks };
constexpr Form kForms[] = {Form::kFloat, Form::kHalf, Form::kInt8, Form::kBlocks};

ParameterExprPtr WeightsIn(Form form) {
  const Shape shape = {kDepth, kColumns};
  if (form == Form::kHalf) {
    return ParameterExpr::Apply("Cast", {{"to", int64_t{1}}},
                                {ParameterExpr::Leaf(0, DType::kFloat16, shape)}, DType::kFloat32,
                                shape);
  }
  if (form == Form::kInt8) {
    return ParameterExpr::Apply("DequantizeLinear", {{"axis", int64_t{1}}},
                                {ParameterExpr::Leaf(0, DType::kInt8, shape),
                                 ParameterExpr::Leaf(1, DType::kFloat32, {kColumns})},
                                DType::kFloat32, shape);
  }
  if (form == Form::kBlocks) {
    constexpr int64_t kBlock = 32;
    const ParameterExprPtr rows = ParameterExpr::Apply(
        "reprise.DequantizeBits", {{"K", kDepth}, {"bits", int64_t{4}}, {"block_size", kBlock}},
        {ParameterExpr::Leaf(0, DType::kUInt8, {kColumns, kDepth / 2}),
         ParameterExpr::Leaf(1, DType::kFloat32, {kColumns, kDepth / kBlock})},
        DType::kFloat32, {kColumns, kDepth});
    return ParameterExpr::Apply("Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {rows},
                                DType::kFloat32, shape);
  }
  return nullptr;  // as the graph has it
}

std::vector<Candidate> OffersFor(const CpuTarget& target, int64_t rows, Form form) {
  const std::string m = absl::StrCat(rows);
  absl::StatusOr<Graph> graph = Parse(
      absl::StrCat("graph {\ninput %x: f32[", m,
                   ", 64]\nparam %w: f32[64, 96] = p0\n%y: ? = MatMul(%x, %w)\noutput %y\n}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  for (ValueId input : graph->inputs()) {
    Value& value = graph->value(input);
    value.shape.emplace();
    for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
  }
  const NodeId id = graph->NodeIds()[0];
  EXPECT_TRUE(InferNode(*graph, id).ok());
  if (const ParameterExprPtr weights = WeightsIn(form); weights != nullptr) {
    graph->value(graph->node(id).inputs[1]).parameter = weights;
  }
  return PlanMatMul(target, NodeView(*graph, id));
}

std::set<std::string> OrdersOf(const CpuTarget& target, Form form) {
  std::set<std::string> orders;
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 16, 27, 28, 32, 33, 43, 44, 64, 128, 512}) {
    for (const Candidate& candidate : OffersFor(target, rows, form)) {
      orders.insert(candidate.option.Order());
    }
  }
  return orders;
}

class OneOrderTest : public testing::TestWithParam<NamedIsa> {};

TEST_P(OneOrderTest, ProductsHaveOneAtAnyNumberOfRowsWhoeverMultiplies) {
  for (const GemmProvider provider :
       {GemmProvider::kAuto, GemmProvider::kOwn, GemmProvider::kOpenBlas}) {
    auto blas = ForeignBlas::Load(kEveryIsa);
    CpuTarget target(GetParam().isa, provider, blas.ok() ? *blas : nullptr);
    target.one_order = true;
    for (const Form form : kForms) {
      EXPECT_EQ(OrdersOf(target, form).size(), 1u) << static_cast<int>(form);
    }
  }
}

// Devices without the promise choose by the number of rows.
TEST(GemmOrderTest, OthersMayMultiplyManyRowsByTheTileUnit) {
  const CpuTarget target(Isa::kAmx, GemmProvider::kOwn);
  EXPECT_GT(OrdersOf(target, Form::kFloat).size(), 1u);
  EXPECT_GT(OrdersOf(target, Form::kInt8).size(), 1u);
}

// The tile unit and vectors give the same bits of weights in blocks, so that timing may choose for
// models of one order, too.
TEST(GemmOrderTest, TheTileUnitIsOfferedForDigitsOfManyRows) {
  for (const bool one_order : {false, true}) {
    CpuTarget target(Isa::kAmx, GemmProvider::kOwn);
    target.one_order = one_order;
    const std::vector<Candidate> many = OffersFor(target, 64, Form::kBlocks);
    ASSERT_EQ(many.size(), 2u);
    EXPECT_EQ(many[0].option.kernel, "gemm_blocks_digits_amx_avx512");
    EXPECT_EQ(many[1].option.kernel, "gemm_blocks_vnni_avx512");
    EXPECT_EQ(many[0].option.Order(), many[1].option.Order());
    EXPECT_EQ(many[0].option.prepare[0].shape, many[1].option.prepare[0].shape);
    EXPECT_NE(many[0].option.question, "");
    EXPECT_EQ(many[0].option.question, many[1].option.question);
    const std::vector<Candidate> few = OffersFor(target, 1, Form::kBlocks);
    ASSERT_EQ(few.size(), 1u);
    EXPECT_EQ(few[0].option.Order(), many[0].option.Order());
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, OneOrderTest, testing::ValuesIn(kIsas),
                         [](const testing::TestParamInfo<NamedIsa>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace reprise::cpu
