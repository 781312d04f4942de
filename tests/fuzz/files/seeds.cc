#include "tests/fuzz/files/seeds.h"

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/traffic/model_usage.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/kernel_choices.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/record_file.h"
#include "runtime/recipe/stored_recipe.h"
#include "tests/fuzz/files/graph_texts.h"
#include "tests/fuzz/random_models/draw_model.h"
#include "tests/fuzz/random_models/onnx_writer.h"
#include "tests/runtime/onnx/gguf/gguf_builder.h"

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

}  // namespace

std::vector<std::string> OnnxSeeds(int count) {
  std::vector<std::string> seeds;
  for (int i = 0; i < count; ++i) {
    const TestCase drawn = DrawCase(1000 + i);
    seeds.push_back(OnnxBytes(drawn.graph, drawn.declared));
  }
  return seeds;
}

std::vector<std::string> GgufSeeds() {
  std::vector<std::string> seeds;
  for (const char* family : {"llama", "granite", "qwen2", "qwen3", "phi3", "gemma2", "gemma3"}) {
    seeds.push_back(TinyLlama(family).Bytes());
  }
  GgufBuilder scaled = TinyLlama();
  scaled.Text("llama.rope.scaling.type", "yarn").F32("llama.rope.scaling.factor", 4);
  scaled.U32("llama.rope.scaling.original_context_length", 8);
  seeds.push_back(scaled.Floats("rope_freqs.weight", {2}, {1, 2}).Bytes());
  return seeds;
}

std::vector<std::string> GraphTextSeeds(int count) {
  std::vector<std::string> seeds = RareGraphTexts();
  seeds.emplace_back(kGraph);
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

StoredModelKey StoredRecipeOfATest::model_key() const {
  return {.graph = key_.graph.digest, .device = key_.device, .compiler = CompilerId()};
}

std::string StoredRecipeOfATest::findings() const {
  const AxisCertificate padded = {
      .axis = "batch", .certified = true, .guards = {"x", "mask"}, .reason = "proved"};
  const AxisCertificate refused = {.axis = "sequence", .mixing = "node", .reason = "mixes"};
  const AffineDim plain = {.constant = 3, .factors = {1, 0}};
  const AffineDim product = {.factors = {0, 2},
                             .extents = {{.offset = 1, .stride = 2}, {}},
                             .products = {{.first = 0, .second = 1, .factor = 64}},
                             .open = true};
  return EncodeFindings(model_key(), id_,
                        {.axes = {padded, refused},
                         .smallest = {1, 2},
                         .decisions = {{"a branch", 16}, {}},
                         .opens_to = {4096, 0},
                         .outputs = {{.dtype = DType::kFloat32, .dims = {plain, product}}},
                         .output_dtypes = {DType::kFloat32},
                         .packing_refusal = "mixes"},
                        5);
}

std::string StoredRecipeOfATest::usage() const {
  ModelUsage usage = {.recipes = {{.key = key_.hash,
                                   .uses = 7,
                                   .last_used_unix_s = 1'799'999'000,
                                   .sizes = {{"batch", 4}}}},
                      .axes = {"batch"}};
  usage.learnt = {.start = {{16, 32}}, .boundaries = {{16, 24, 32}}, .expected_waste = 0.5};
  usage.learnt.halves[0] = {{.sizes = {17}, .weight = 2}};
  usage.learnt.batches = {{4, 1.0}};
  usage.learnt.costs = {
      {.row_size = 64, .weight = 1, .rows = 4, .rows2 = 16, .ns = 9, .rows_ns = 36}};
  return AddUsage("", id_, key_.graph, key_.device, usage, 1'800'000'000);
}

std::vector<std::string> RecordSeeds() {
  const StoredRecipeOfATest recipe;
  const std::string payload = recipe.payload();
  const std::string file = EncodeRecord({.payload = payload});
  const std::string bundle = EncodeBundle({{.file = recipe.name().file(), .bytes = file}});
  recipe::v1::StoredRecipe by_values;
  REPRISE_CHECK(by_values.ParseFromString(payload));
  for (int i = 0; i < 2; ++i) {
    auto* to = by_values.mutable_key()->add_shape_values();
    to->set_input(absl::StrCat("shape_", i));
    to->add_values(3);
    if (i > 0) to->add_numbers(1.5);
  }
  return {payload,
          DecodeRecord(bundle)->payload,
          file,
          recipe.name().file(),
          by_values.SerializeAsString(),
          recipe.findings(),
          recipe.usage(),
          EncodeChoices(recipe.device().fingerprint(),
                        {{.question = "MatMul", .kernel = "cpu.gemm", .ns = 10, .first_ns = 12}})};
}

}  // namespace reprise::fuzz
