#include "tests/fuzz/files/seeds.h"

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/kernel_choices.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/record_file.h"
#include "runtime/recipe/stored_recipe.h"
#include "tests/fuzz/random_models/draw_model.h"
#include "tests/fuzz/random_models/onnx_writer.h"

namespace reprise::fuzz {
namespace {

constexpr char kGraph[] = R"(graph {
  input %x: f32[batch, 64]
  param %w: f32[64, 32] = p0
  const %shape: i64[2] = {-1, 8}
  %h: f32 = MatMul(%x, %w) @projection
  %g: f32 = Gelu(%h)
  %r: f32 = Reshape(%g, %shape)
  %y: f32 = Sigmoid(%r)
  output %y
})";

// Parts that a graph may hold and that no drawn model has.
constexpr char kRareText[] = R"(graph {
  input %"a name, \"quoted\"": bool["2 * n + 1", "?"]
  input %s: f16[]
  const %nan: f32[3] = {nan, -inf, 1e-45}
  const %big: u64[1] = {18446744073709551615}
  %y: f32 = Gelu(%nan) {approximate = "tanh"} @"node \n"
  output %y
})";

}  // namespace

std::vector<std::string> OnnxSeeds(int count) {
  std::vector<std::string> seeds;
  for (int i = 0; i < count; ++i) seeds.push_back(OnnxBytes(DrawCase(1000 + i).graph));
  return seeds;
}

std::vector<std::string> GraphTextSeeds(int count) {
  std::vector<std::string> seeds = {kGraph, kRareText};
  for (int i = 0; i < count; ++i) seeds.push_back(Print(DrawCase(2000 + i).graph));
  return seeds;
}

StoredRecipeOfATest::StoredRecipeOfATest() {
  auto graph = Parse(kGraph);
  REPRISE_CHECK(graph.ok());
  graph_ = *std::move(graph);
  REPRISE_CHECK(RunLoadPasses(graph_).ok());
  key_ = MakeKey(FingerprintGraph(graph_), {.axes = {{"batch", 4}}}, device_.fingerprint());
}

RecordName StoredRecipeOfATest::name() const { return RecordNameOf(key_, "model"); }

CompileOptions StoredRecipeOfATest::options(CompiledPlan* plan) const {
  return {.device = &device_, .clock = &clock_, .batch_symbol = "batch", .plan = plan};
}

std::string StoredRecipeOfATest::payload() const {
  CompiledPlan plan;
  const auto recipe = Compile(graph_, key_, options(&plan));
  REPRISE_CHECK(recipe.ok());
  (*recipe)->note = {.model = "model", .version = 3, .bucket = "b4"};
  return EncodeRecipe(**recipe, plan);
}

std::vector<std::string> RecordSeeds() {
  const StoredRecipeOfATest recipe;
  const std::string payload = recipe.payload();
  const std::string file = EncodeRecord({.payload = payload});
  const std::string bundle = EncodeBundle({{.file = recipe.name().file(), .bytes = file}});
  return {payload, DecodeRecord(bundle)->payload,
          EncodeChoices(recipe.device().fingerprint(),
                        {{.question = "MatMul", .kernel = "cpu.gemm", .ns = 10, .first_ns = 12}})};
}

}  // namespace reprise::fuzz
