#include "gtest/gtest.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(FuseEmbeddingTest, LookupsAndTheirAddsBecomeOneNode) {
  ExpectRewrite(*FuseEmbedding(), R"(graph {
    input %words: i64[2, 3]
    input %types: i64[2, 3]
    param %word_table: f32[9, 4] = p0
    param %type_table: f32[2, 4] = p1
    param %position_table: f32[7, 4] = p2
    const %positions: i64[1, 3] = {0, 1, 2}
    %a: ? = Gather(%word_table, %words)
    %b: ? = Gather(%type_table, %types) {axis = 0}
    %c: ? = Gather(%position_table, %positions)
    %d: ? = Add(%a, %b)
    %e: ? = Add(%c, %d)
    output %e
  })",
                R"(graph {
    input %words: i64[2, 3]
    input %types: i64[2, 3]
    param %word_table: f32[9, 4] = p0
    param %type_table: f32[2, 4] = p1
    param %position_table: f32[7, 4] = p2
    const %positions: i64[1, 3] = {0, 1, 2}
    %e: ? = reprise.EmbeddingSum(%position_table, %positions, %word_table, %words, %type_table, %types)
    output %e
  })");
}

TEST(FuseEmbeddingTest, AnotherAxisOrASharedLookupStays) {
  ExpectUnchanged(*FuseEmbedding(), R"(graph {
    input %ids: i64[4]
    param %t: f32[4, 4] = p0
    %a: ? = Gather(%t, %ids) {axis = 1}
    %b: ? = Gather(%t, %ids)
    %c: ? = Add(%a, %b)
    output %c
  })");
  ExpectUnchanged(*FuseEmbedding(), R"(graph {
    input %ids: i64[4]
    param %t: f32[4, 4] = p0
    param %u: f32[4, 4] = p1
    %a: ? = Gather(%t, %ids)
    %b: ? = Gather(%u, %ids)
    %c: ? = Add(%a, %b)
    output %c
    output %a
  })");
  ExpectUnchanged(*FuseEmbedding(), R"(graph {
    input %ids: i64[4]
    input %t: f32[4, 4]
    param %u: f32[4, 4] = p1
    %a: ? = Gather(%t, %ids)
    %b: ? = Gather(%u, %ids)
    %c: ? = Add(%a, %b)
    output %c
  })");
}

}  // namespace
}  // namespace reprise
