// The passes over chains of quantised nodes.
//
// One factory each; pipeline.cc holds the order in which they run. A rewrite fires only where it is
// known to keep the answers: shapes, dtypes, the values of constants and the number of uses are
// checked, and near matches of the pattern stay as they are. On a symbolic graph, rewrites that
// need shapes do nothing.
#pragma once

#include <memory>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// MatMulInteger with its scales, MatMul of dequantised rows and weights, QLinearMatMul: by weights,
// they become reprise.IntegerLinear.
std::unique_ptr<Pass> FuseIntegerLinear();
// Conv of dequantised planes by dequantised weights becomes reprise.IntegerConv.
std::unique_ptr<Pass> FuseIntegerConv();
// QuantizeLinear and DequantizeLinear of the same steps become reprise.FakeQuantize.
std::unique_ptr<Pass> FuseFakeQuantize();
// QuantizeLinear after integer products, or after a sum of bytes, joins them: such nodes then
// hand on bytes.
std::unique_ptr<Pass> FuseRequantize();

}  // namespace reprise
