#include "gtest/gtest.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(FuseTransposeTest, TheRightSideIsReadAsItLies) {
  ExpectRewrite(*FuseTranspose(), R"(graph {
    input %a: f32[2, 3, 4]
    input %b: f32[2, 5, 4]
    input %c: f32[6, 4]
    %bt: ? = Transpose(%b) {perm = [0, 2, 1]}
    %ct: ? = Transpose(%c) {perm = [1, 0]}
    %y: ? = MatMul(%a, %bt)
    %z: ? = MatMul(%a, %ct)
    output %y
    output %z
  })",
                R"(graph {
    input %a: f32[2, 3, 4]
    input %b: f32[2, 5, 4]
    input %c: f32[6, 4]
    %y: ? = com.microsoft.FusedMatMul(%a, %b) {transB = 1}
    %z: ? = com.microsoft.FusedMatMul(%a, %c) {transB = 1}
    output %y
    output %z
  })");
}

TEST(FuseTransposeTest, OtherPermutationsReadersTypesAndSidesStay) {
  ExpectUnchanged(*FuseTranspose(), R"(graph {
    input %a: f32[2, 4, 3]
    input %b: f32[3, 4, 2]
    input %d: f64[3, 4]
    input %e: f32[5, 3]
    %all: ? = Transpose(%b) {perm = [2, 1, 0]}
    %left: ? = Transpose(%a) {perm = [0, 2, 1]}
    %dt: ? = Transpose(%d) {perm = [1, 0]}
    %et: ? = Transpose(%e) {perm = [1, 0]}
    %v: ? = MatMul(%left, %all)
    %w: ? = MatMul(%d, %dt)
    %x: ? = MatMul(%a, %et)
    output %v
    output %w
    output %x
    output %et
  })");
}

}  // namespace
}  // namespace reprise
