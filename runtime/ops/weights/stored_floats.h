// Matrices in the blocks of GGUF files (block_formats.h): as floats, and taken apart for kernels.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.StoredFloats(u8 [..., bytes of a row]) -> f32 [..., K]. Attribute `format`.
Rule StoredFloatsRule;
Kernel StoredFloatsKernel;

// reprise.StoredPart(u8 [..., bytes of a row]): attributes `format` and `part`,
//   "numbers" -> u8 [..., bytes]: numbers plus BlockFormat::middle, of kept_bits, low bits first;
//   "scales", "offsets" -> f32 [..., groups of a row].
Rule StoredPartRule;
Kernel StoredPartKernel;

}  // namespace reprise::ops
