// Weights of a few bits each, with a factor for each block of them along a row.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.DequantizeBits(values u8, scales [..., blocks], zero points?) -> [..., K], of the dtype
// of the scales: (value - zero point) * scale, where block `i` of a row is its elements from
// i * block_size on. Attributes K, block_size and bits: 2, 4 or 8.
//   values: the rows one after another, low bits first; a row begins at a byte, and its last block
//     may be filled up.
//   zero points: u8, as values, a row of `blocks`; or floats, as scales. 2^(bits - 1) without them.
Rule DequantizeBitsRule;
Kernel DequantizeBitsKernel;

// reprise.UnpackNibbles(u8 [ceil(n / 2)]) -> the n numbers of four bits in it, low bits first, as
// u8 or, with the attribute `signed`, as i8. Attribute `shape`: the result's.
Rule UnpackNibblesRule;
Kernel UnpackNibblesKernel;

}  // namespace reprise::ops
