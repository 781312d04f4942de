// Small graphs in text, as tests of the static part of the certificate read them at two sizes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "runtime/certify/axis_flow.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

inline constexpr auto kProved = AxisFinding::Verdict::kProved;
inline constexpr auto kUndecided = AxisFinding::Verdict::kUndecided;
inline constexpr auto kMixes = AxisFinding::Verdict::kMixes;

// Returns the graph of `body`, whose output is %y, with `size` for each $S.
inline Graph GraphAt(absl::string_view body, int64_t size) {
  const std::string text = absl::StrCat(
      "graph {\n", absl::StrReplaceAll(body, {{"$S", absl::StrCat(size)}}), "\n  output %y\n}");
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  for (const NodeId id : graph->NodeIds()) {
    const absl::Status status = InferNode(*graph, id);
    EXPECT_TRUE(status.ok()) << status;
  }
  return *std::move(graph);
}

}  // namespace reprise
