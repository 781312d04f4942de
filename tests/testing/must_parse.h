// MustParse: the graph of a text that a test knows to be right.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {

// Aborts the test when `text` does not parse.
inline Graph MustParse(absl::string_view text) {
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  return *std::move(graph);
}

}  // namespace reprise
