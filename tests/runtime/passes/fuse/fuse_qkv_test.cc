
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(FuseQkvTest, ThreeProjectionsBecomeOne) {
  ExpectRewrite(*FuseQkv(), R"(graph {
    input %x: f32[2, 3, 8]
    input %mask: f32[2, 1, 1, 3]
    param %wq: f32[8, 8] = p0
    param %wk: f32[8, 8] = p1
    param %wv: f32[8, 8] = p2
    param %bq: f32[8] = p3
    const %bk: f32[8] = {1, 2, 3, 4, 5, 6, 7, 8}
    %q: ? = reprise.Linear(%x, %wq, %bq) {activation = "none"}
    %k: ? = reprise.Linear(%x, %wk, %bk) {activation = "none"}
    %v: ? = reprise.Linear(%x, %wv) {activation = "none"}
    %y: ? = reprise.Attention(%q, %k, %v, %mask) {num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
  })",
                R"(graph {
    input %x: f32[2, 3, 8]
    input %mask: f32[2, 1, 1, 3]
    param %w: f32[8, 24] = Concat{axis = 1}(p0, p1, p2)
    param %b: f32[24] = Concat{axis = 0}(p3, f32[8]{1, 2, 3, 4, 5, 6, 7, 8}, f32[8]{0, 0, 0, 0, 0, 0, 0, 0})
    %q: ? = reprise.Linear(%x, %w, %b) {activation = "none"}
    %y: ? = reprise.Attention(%q, _, _, %mask) {num_heads = 2, packed_qkv = 1, scale = 0.5}
    output %y
  })");
}

TEST(FuseQkvTest, OtherRowsSharedResultsAndActivationsStay) {
  const auto graph = [](absl::string_view k, absl::string_view rest = "") {
    return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 8]
    input %z: f32[2, 3, 8]
    param %wq: f32[8, 8] = p0
    param %wk: f32[8, 8] = p1
    param %wv: f32[8, 8] = p2
    %q: ? = reprise.Linear(%x, %wq) {activation = "none"}
    %k: ? = )",
                        k, R"(
    %v: ? = reprise.Linear(%x, %wv) {activation = "none"}
    %y: ? = reprise.Attention(%q, %k, %v) {num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
    )",
                        rest, "}");
  };
  ExpectUnchanged(*FuseQkv(), graph("reprise.Linear(%z, %wk) {activation = \"none\"}"));
  ExpectUnchanged(*FuseQkv(), graph("reprise.Linear(%x, %wk) {activation = \"relu\"}"));
  ExpectUnchanged(*FuseQkv(), graph("reprise.Linear(%x, %wk, _, %z) {activation = \"none\"}"));
  ExpectUnchanged(*FuseQkv(),
                  graph("reprise.Linear(%x, %wk) {activation = \"none\"}", "output %k\n"));
}

}  // namespace
}  // namespace reprise
