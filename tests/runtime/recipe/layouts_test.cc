// Layouts that passes/layout/choose_layouts may choose have a kernel: a reprise.Conv in a layout
// that this device has none for would run by the reference kernel.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/layout/plane_costs.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/device/cpu/windows_harness.h"

namespace reprise {
namespace {

// Bytes on a device of one thread.
constexpr size_t kMostWorkspace = size_t{12} << 20;

// Returns a graph of one node; nothing is run.
Graph GraphOf(const std::string& text) {
  absl::StatusOr<Graph> graph = Parse(absl::StrCat("graph {\n", text, "\n}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  for (const ValueId input : graph->inputs()) {
    Value& value = graph->value(input);
    value.shape.emplace();
    for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
  }
  const absl::Status inferred = InferNode(*graph, graph->NodeIds()[0]);
  EXPECT_TRUE(inferred.ok()) << inferred << "\n" << text;
  return *std::move(graph);
}

class LayoutsTest : public testing::TestWithParam<Isa> {
 protected:
  // Expects a kernel for the convolution turned as its costs say, where they are known; whether.
  bool ExpectKernel(const std::string& text) {
    const Graph first = GraphOf(text);
    const std::optional<PlaneCosts> costs = PlaneCostsOf(first, first.node(first.NodeIds()[0]));
    if (!costs.has_value()) return false;
    const Graph turned = GraphOf(costs->to_last ? WithMapsLast(text) : WithChannelsLast(text));
    const std::vector<KernelOption> options = device_.Options(turned, turned.NodeIds()[0]);
    EXPECT_FALSE(options.empty()) << text;
    for (const KernelOption& option : options) {
      EXPECT_LE(option.workspace_bytes, kMostWorkspace) << text;
    }
    return true;
  }

  const CpuDevice device_{{.max_isa = GetParam(), .max_threads = 1}};
};

TEST_P(LayoutsTest, WhatMayBeTurnedHasAKernel) {
  Draw draw(11);
  int turned = 0;
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    const int64_t groups = draw.From({1, 1, 1, 2, 24});
    const std::string text = ConvText(draw, draw.From({1, 2, 2}), groups,
                                      draw.From({1, 3, 7, 16, 40}), draw.From({1, 3, 16, 40, 64}));
    turned += ExpectKernel(text) ? 1 : 0;
  }
  EXPECT_GT(turned, 100);
}

TEST_P(LayoutsTest, LargePlanesAndWindowsHaveAKernel) {
  for (absl::string_view text :
       {"input %x: f32[1, 3, 224, 224]\nparam %w: f32[768, 3, 32, 32] = p0\n%y: ? = Conv(%x, %w) "
        "{strides = [32, 32]}",
        "input %x: f32[1, 3, 1080, 4096]\nparam %w: f32[32, 3, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
        "{strides = [2, 2], pads = [1, 1, 1, 1]}",
        "input %x: f32[1, 1, 960000]\nparam %w: f32[512, 1, 10] = p0\n%y: ? = Conv(%x, %w) "
        "{strides = [5]}",
        "input %x: f32[1, 15, 512, 512]\nparam %w: f32[32, 15, 7, 7] = p0\n%y: ? = Conv(%x, %w) "
        "{pads = [3, 3, 3, 3]}",
        "input %x: f32[1, 12, 64, 3000]\nparam %w: f32[32, 12, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
        "{pads = [1, 1, 1, 1]}",
        "input %x: f32[1, 128, 40, 4096]\nparam %w: f32[64, 128, 5, 5] = p0\n%y: ? = Conv(%x, %w) "
        "{pads = [2, 2, 2, 2]}",
        "input %x: f32[1, 256, 8, 8192]\nparam %w: f32[64, 256, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
        "{strides = [2, 1], pads = [1, 1, 1, 1]}",
        "input %x: f32[1, 960, 20, 20]\nparam %w: f32[256, 960, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
        "{dilations = [12, 12], pads = [12, 12, 12, 12]}",
        "input %x: f32[1, 256, 4, 100000]\nparam %w: f32[256, 1, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
        "{group = 256, pads = [1, 1, 1, 1]}",
        "input %x: f32[1, 64, 512, 512]\nparam %w: f32[64, 32, 4, 4] = p0\n%y: ? = "
        "ConvTranspose(%x, %w) {strides = [2, 2], pads = [1, 1, 1, 1]}",
        "input %x: f32[1, 512, 50000]\nparam %w: f32[512, 256, 16] = p0\n%y: ? = "
        "ConvTranspose(%x, %w) {strides = [8], pads = [4, 4]}"}) {
    ExpectKernel(absl::StrCat(text, "\noutput %y"));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, LayoutsTest, testing::ValuesIn(cpu::TestedTiers()), cpu::TierName);

}  // namespace
}  // namespace reprise
