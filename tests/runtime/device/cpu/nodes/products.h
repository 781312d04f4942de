// Products of weights, of bytes and of activations, and conversions between floats and integers.
#pragma once

namespace reprise {

inline constexpr const char* kProducts[] = {
    // Determinants: on the stack, and of more than fits there; none, and one of none.
    "input %x: f32[3, 7, 4, 4]\n%y: ? = Det(%x)\noutput %y",
    "input %x: f32[5, 11, 11]\n%y: ? = Det(%x)\noutput %y",
    "input %x: f64[9, 9]\n%y: ? = Det(%x)\noutput %y",
    "input %x: f64[2, 0, 0]\n%y: ? = Det(%x)\noutput %y",
    // Products of weights.
    "input %x: f32[2, 9, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
    "%y",
    "input %x: f32[2, 9, 20]\nparam %w: f32[20, 50] = p0\nparam %b: f32[50] = p1\n"
    "%y: ? = reprise.Linear(%x, %w, %b) {activation = \"gelu\"}\noutput %y",
    "input %x: f32[7, 64]\nparam %w: f32[64, 96] = p0\nparam %b: f32[96] = p1\n"
    "input %r: f32[7, 96]\n%y: ? = reprise.Linear(%x, %w, %b, %r)\noutput %y",
    "input %x: f32[1, 33]\nparam %w: f32[33, 9] = p0\ninput %r: f32[1, 9]\n"
    "%y: ? = reprise.Linear(%x, %w, _, %r) {activation = \"tanh\"}\noutput %y",
    "input %x: f32[5, 8]\ninput %w: f32[8, 17]\ninput %b: f32[17]\n"
    "%y: ? = reprise.Linear(%x, %w, %b) {activation = \"relu\"}\noutput %y",
    "input %x: f32[0, 8]\nparam %w: f32[8, 40] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput %y",
    "input %x: f32[3, 4, 16]\nparam %w: f32[16, 20] = p0\n%y: ? = MatMul(%x, %w)\noutput %y",
    "input %x: f32[16]\nparam %w: f32[16, 20] = p0\n%y: ? = MatMul(%x, %w)\noutput %y",
    "input %x: f32[6, 16]\nparam %w: f32[30, 16] = p0\nparam %c: f32[30] = p1\n"
    "%y: ? = Gemm(%x, %w, %c) {transB = 1, alpha = 0.5}\noutput %y",
    "input %x: f32[6, 16]\nparam %w: f32[16, 30] = p0\ninput %c: f32[6, 30]\n"
    "%y: ? = Gemm(%x, %w, %c)\noutput %y",
    // Products that round their operands.
    "input %x: f32[2, 9, 20]\nparam %w: f32[20, 50] = p0\nparam %b: f32[50] = p1\n"
    "%y: ? = reprise.Linear(%x, %w, %b) {activation = \"gelu\", precision = \"bf16\"}\noutput %y",
    "input %x: f32[37, 64]\nparam %w: f32[64, 96] = p0\nparam %b: f32[96] = p1\n"
    "input %r: f32[37, 96]\n"
    "%y: ? = reprise.Linear(%x, %w, %b, %r) {precision = \"bf16\"}\noutput %y",
    "input %x: f32[0, 8]\nparam %w: f32[8, 40] = p0\n"
    "%y: ? = reprise.Linear(%x, %w) {precision = \"bf16\"}\noutput %y",
    "input %x: f32[3, 4, 16]\nparam %w: f32[16, 20] = p0\n"
    "%y: ? = MatMul(%x, %w) {precision = \"bf16\"}\noutput %y",
    "input %x: f32[16]\nparam %w: f32[16, 20] = p0\n"
    "%y: ? = MatMul(%x, %w) {precision = \"bf16\"}\noutput %y",
    "input %x: f32[6, 16]\nparam %w: f32[30, 16] = p0\nparam %c: f32[30] = p1\n"
    "%y: ? = Gemm(%x, %w, %c) {transB = 1, alpha = 0.3, precision = \"bf16\"}\noutput %y",
    "input %x: f32[6, 16]\nparam %w: f32[16, 30] = p0\ninput %c: f32[6, 30]\n"
    "%y: ? = Gemm(%x, %w, %c) {precision = \"bf16\"}\noutput %y",
    // Products that round their rows to bytes, by weights with a factor for each column, and in
    // blocks.
    "input %x: f32[2, 9, 20]\nparam %w: f32[20, 50] = p0\nparam %b: f32[50] = p1\n"
    "%y: ? = reprise.Linear(%x, %w, %b) {activation = \"gelu\", precision = \"int8\"}\noutput %y",
    "input %x: f32[137, 67]\nparam %w: f32[67, 97] = p0\nparam %b: f32[97] = p1\n"
    "input %r: f32[137, 97]\n"
    "%y: ? = reprise.Linear(%x, %w, %b, %r) {precision = \"int8\"}\noutput %y",
    "input %x: f32[0, 8]\nparam %w: f32[8, 40] = p0\n"
    "%y: ? = reprise.Linear(%x, %w) {precision = \"int8\"}\noutput %y",
    "input %x: f32[3, 4, 16]\nparam %w: f32[16, 20] = p0\n"
    "%y: ? = MatMul(%x, %w) {precision = \"int8\"}\noutput %y",
    "input %x: f32[301]\nparam %w: f32[301, 20] = p0\n"
    "%y: ? = MatMul(%x, %w) {precision = \"int8\"}\noutput %y",
    "input %x: f32[6, 16]\nparam %w: f32[30, 16] = p0\nparam %c: f32[30] = p1\n"
    "%y: ? = Gemm(%x, %w, %c) {transB = 1, alpha = 0.3, precision = \"int8\"}\noutput %y",
    "input %x: f32[6, 16]\nparam %w: f32[16, 30] = p0\ninput %c: f32[6, 30]\n"
    "%y: ? = Gemm(%x, %w, %c) {precision = \"int8\"}\noutput %y",
    "input %x: f32[2, 9, 64]\nparam %w: f32[64, 50] = p0\nparam %b: f32[50] = p1\n"
    "%y: ? = reprise.Linear(%x, %w, %b) {activation = \"silu\", precision = \"int8\", "
    "rounded_block = 32}\noutput %y",
    "input %x: f32[47, 150]\nparam %w: f32[150, 97] = p0\ninput %r: f32[47, 97]\n"
    "%y: ? = reprise.Linear(%x, %w, _, %r) {precision = \"int8\", rounded_block = 32}\noutput %y",
    "input %x: f32[1, 96]\nparam %w: f32[30, 96] = p0\n"
    "%y: ? = Gemm(%x, %w) {transB = 1, precision = \"int8\", rounded_block = 32}\noutput %y",
    // Products of bytes.
    "input %x: u8[2, 9, 20]\nparam %w: i8[20, 50] = p0\ninput %s: f32[]\ninput %t: f32[50]\n"
    "input %z: u8[]\n%y: ? = reprise.IntegerLinear(%x, %w, %s, %t, %z)\noutput %y",
    "input %x: u8[13, 37]\nparam %w: u8[37, 101] = p0\ninput %s: f32[13, 1]\ninput %t: f32[1]\n"
    "input %z: u8[13, 1]\ninput %q: u8[101]\nparam %b: f32[101] = p1\ninput %r: f32[13, 101]\n"
    "%y: ? = reprise.IntegerLinear(%x, %w, %s, %t, %z, %q, %b, %r) {activation = \"gelu\"}\n"
    "output %y",
    "input %x: i8[1, 5, 64]\nparam %w: i8[64, 96] = p0\ninput %s: f32[]\ninput %t: f32[96]\n"
    "param %b: f32[96] = p1\n%y: ? = reprise.IntegerLinear(%x, %w, %s, %t, _, _, %b) {activation "
    "= \"relu\"}\noutput %y",
    "input %x: i8[33]\ninput %w: u8[33, 9]\ninput %s: f32[]\ninput %t: f32[9]\n"
    "%y: ? = reprise.IntegerLinear(%x, %w, %s, %t) {activation = \"tanh\"}\noutput %y",
    "input %x: u8[0, 8]\nparam %w: i8[8, 40] = p0\ninput %s: f32[]\ninput %t: f32[40]\n"
    "%y: ? = reprise.IntegerLinear(%x, %w, %s, %t)\noutput %y",
    "input %x: u8[3, 4, 16]\nparam %w: i8[16, 20] = p0\n%y: ? = MatMulInteger(%x, %w)\noutput %y",
    "input %x: u8[6, 16]\nparam %w: u8[16, 20] = p0\ninput %z: u8[6]\ninput %q: u8[20]\n"
    "%y: ? = MatMulInteger(%x, %w, %z, %q)\noutput %y",
    "input %a: u8[2, 3, 5, 16]\ninput %b: u8[2, 3, 16, 7]\ninput %z: u8[5]\ninput %q: u8[]\n"
    "%y: ? = MatMulInteger(%a, %b, %z, %q)\noutput %y",
    "input %a: i8[2, 1, 5, 18]\ninput %b: i8[3, 18, 60]\n%y: ? = MatMulInteger(%a, %b)\noutput "
    "%y",
    "input %a: u8[1, 70, 16]\ninput %b: i8[1, 16, 60]\ninput %z: u8[]\n"
    "%y: ? = MatMulInteger(%a, %b, %z)\noutput %y",
    // Between floats and integers: one scale for all, one a column, one a plane.
    "input %x: f32[2, 9, 20]\nconst %s: f32[] = {0.125}\ninput %z: u8[]\n"
    "%y: ? = QuantizeLinear(%x, %s, %z)\noutput %y",
    "input %x: f32[7, 33]\ninput %s: f32[33]\ninput %z: i8[33]\n"
    "%y: ? = QuantizeLinear(%x, %s, %z) {axis = -1}\noutput %y",
    "input %x: f32[3, 5, 21]\ninput %s: f32[5]\n%y: ? = QuantizeLinear(%x, %s)\noutput %y",
    "input %x: f32[3, 4]\ninput %s: f32[]\n%y: ? = QuantizeLinear(%x, %s) {output_dtype = 5}\n"
    "output %y",
    "input %x: u8[2, 9, 20]\ninput %s: f32[1]\ninput %z: u8[1]\n"
    "%y: ? = DequantizeLinear(%x, %s, %z)\noutput %y",
    "input %x: i8[7, 33]\ninput %s: f32[33]\n%y: ? = DequantizeLinear(%x, %s)\noutput %y",
    "input %x: u8[3, 5, 21]\ninput %s: f32[3]\ninput %z: u8[3]\n"
    "%y: ? = DequantizeLinear(%x, %s, %z) {axis = 0}\noutput %y",
    "input %x: f32[2, 9, 20]\nconst %s: f32[] = {0.125}\ninput %z: i8[]\n"
    "%y: ? = reprise.FakeQuantize(%x, %s, %z)\noutput %y",
    "input %x: f32[3, 5, 21]\ninput %s: f32[5]\ninput %z: u8[5]\n"
    "%y: ? = reprise.FakeQuantize(%x, %s, %z)\noutput %y",
    "input %x: i32[3, 5, 21]\ninput %s: f32[]\n%y: ? = DequantizeLinear(%x, %s)\noutput %y",
    "input %x: i32[3, 5, 21]\ninput %s: f32[21]\n"
    "%y: ? = DequantizeLinear(%x, %s) {axis = -1}\noutput %y",
    "input %x: i32[3, 57]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
    "input %x: u8[3, 57]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
    "input %x: f32[2, 9, 1001]\n%y: ?, %s: ?, %z: ? = DynamicQuantizeLinear(%x)\noutput %y\n"
    "output %s\noutput %z",
    // Products of activations.
    "input %x: f32[6, 16]\ninput %w: f32[30, 16]\n%y: ? = Gemm(%x, %w) {transB = 1}\noutput %y",
    "input %a: f32[2, 3, 5, 16]\ninput %b: f32[2, 3, 16, 7]\n%y: ? = MatMul(%a, %b)\noutput %y",
    "input %a: f32[3, 27, 64]\ninput %b: f32[3, 27, 64]\n%y: ? = com.microsoft.FusedMatMul(%a, %b) "
    "{transB = 1}\noutput %y",
    "input %a: f32[2, 1, 5, 16]\ninput %b: f32[3, 9, 16]\n%y: ? = "
    "com.microsoft.FusedMatMul(%a, %b) {alpha = 0.125, transB = 1}\noutput %y",
    "input %a: f32[4, 3, 16]\ninput %b: f32[50, 16]\n%y: ? = com.microsoft.FusedMatMul(%a, %b) "
    "{alpha = -2.0, transB = 1}\noutput %y",
    "input %a: f32[7, 16]\ninput %b: f32[16, 50]\n%y: ? = com.microsoft.FusedMatMul(%a, %b) "
    "{alpha = 3.0}\noutput %y",
    "input %a: f32[2, 1, 5, 16]\ninput %b: f32[3, 16, 60]\n%y: ? = MatMul(%a, %b)\noutput %y",
    "input %a: f32[1, 70, 16]\ninput %b: f32[1, 16, 60]\n%y: ? = MatMul(%a, %b)\noutput %y",
};

}  // namespace reprise
