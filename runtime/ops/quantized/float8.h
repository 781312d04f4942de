// Floats of eight bits: four formats, as ONNX defines them.
//
// The graph has no dtype of float8: such a value is uint8, its bits, and the ops below name its
// format. The importer tracks which values these are (onnx/values/float8_values.h).
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// The forms, numbered as ONNX numbers the dtypes, which attribute `form` of the ops below is.
enum class Float8 : int64_t { kE4M3FN = 17, kE4M3FNUZ = 18, kE5M2 = 19, kE5M2FNUZ = 20 };
inline bool IsFloat8(int64_t onnx_number) { return onnx_number >= 17 && onnx_number <= 20; }
// Returns "float8e4m3fn".
absl::string_view Float8Name(int64_t onnx_number);

float FromFloat8(Float8 form, uint8_t bits);
// Returns the nearest, of two the even one. A value beyond the form's numbers becomes the largest
// with `saturate`, else infinity or, where the form has none, NaN.
uint8_t ToFloat8(Float8 form, float value, bool saturate);

// reprise.FromFloat8(x u8) is float32; attribute form.
Rule FromFloat8Rule;
Kernel FromFloat8Kernel;
// reprise.ToFloat8(x float32) is u8; attributes form, saturate = 1.
Rule ToFloat8Rule;
Kernel ToFloat8Kernel;
// reprise.DequantizeFloat8(x u8, scale float32): x times its scale; attributes form, and axis and
// block_size of DequantizeLinear.
Rule DequantizeFloat8Rule;
Kernel DequantizeFloat8Kernel;
// reprise.QuantizeFloat8(x float32, scale float32): x over its scale, as u8; attributes form,
// saturate = 1, and axis and block_size of QuantizeLinear.
Rule QuantizeFloat8Rule;
Kernel QuantizeFloat8Kernel;

}  // namespace reprise::ops
