#include "runtime/device/cpu/cpu_device.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each is compared with its reference kernel on every tier, for several partitions, and in place
// where that is offered.
constexpr const char* kNodes[] = {
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
    "input %a: f32[2, 1, 5, 16]\ninput %b: f32[3, 16, 60]\n%y: ? = MatMul(%a, %b)\noutput %y",
    "input %a: f32[1, 70, 16]\ninput %b: f32[1, 16, 60]\n%y: ? = MatMul(%a, %b)\noutput %y",
    // Convolutions.
    "input %x: f32[2, 3, 130]\nparam %w: f32[20, 3, 5] = p0\nparam %b: f32[20] = p1\n"
    "%y: ? = Conv(%x, %w, %b) {pads = [2, 2]}\noutput %y",
    "input %x: f32[1, 40, 301]\nparam %w: f32[24, 40, 3] = p0\n"
    "%y: ? = Conv(%x, %w) {strides = [2], pads = [0, 3], dilations = [4]}\noutput %y",
    "input %x: f32[2, 6, 17, 23]\nparam %w: f32[8, 3, 3, 3] = p0\nparam %b: f32[8] = p1\n"
    "%y: ? = Conv(%x, %w, %b) {group = 2, pads = [1, 2, 0, 1], strides = [2, 1]}\noutput %y",
    "input %x: f32[3, 16, 7, 9]\nparam %w: f32[40, 16, 1, 1] = p0\n"
    "%y: ? = Conv(%x, %w)\noutput %y",
    "input %x: f32[1, 2, 5, 6, 7]\nparam %w: f32[3, 2, 2, 3, 2] = p0\n"
    "%y: ? = Conv(%x, %w) {pads = [0, 4, 1, 1, 4, 0], auto_pad = \"NOTSET\"}\noutput %y",
    // Few windows of many maps, more than one copy deep.
    "input %x: f32[1, 96, 7, 7]\nparam %w: f32[130, 96, 1, 1] = p0\nparam %b: f32[130] = p1\n"
    "%y: ? = Conv(%x, %w, %b)\noutput %y",
    "input %x: f32[1, 2100, 4, 4]\nparam %w: f32[20, 2100, 2, 2] = p0\nparam %b: f32[20] = p1\n"
    "%y: ? = Conv(%x, %w, %b) {pads = [1, 0, 0, 1]}\noutput %y",
    // Convolutions of bytes.
    "input %x: u8[2, 3, 17, 23]\nparam %w: i8[20, 3, 3, 3] = p0\ninput %s: f32[]\ninput %t: "
    "f32[20]\ninput %z: u8[]\nparam %b: f32[20] = p1\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, "
    "%z, _, %b) {pads = [1, 1, 1, 1], activation = \"relu\"}\noutput %y",
    "input %x: u8[1, 8, 13, 9]\nparam %w: u8[16, 4, 3, 2] = p0\ninput %s: f32[1]\ninput %t: "
    "f32[16]\ninput %z: u8[1]\ninput %q: u8[16]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, %z, "
    "%q) {group = 2, pads = [2, 3, 0, 1], strides = [2, 3], dilations = [2, 1]}\noutput %y",
    "input %x: i8[3, 16, 7, 9]\nparam %w: i8[40, 16, 1, 1] = p0\ninput %s: f32[]\ninput %t: "
    "f32[]\ninput %z: i8[]\ninput %r: f32[3, 40, 7, 9]\n%y: ? = reprise.IntegerConv(%x, %w, %s, "
    "%t, %z, _, _, %r) {activation = \"hard_swish\"}\noutput %y",
    "input %x: i8[1, 40, 301]\nparam %w: u8[24, 40, 3] = p0\ninput %s: f32[]\ninput %t: f32[]\n"
    "input %q: u8[]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, _, %q) {strides = [2], pads = [0, "
    "3], dilations = [4]}\noutput %y",
    // The rows of windows that a tap sees nothing of.
    "input %x: u8[1, 2, 3, 4]\nparam %w: i8[8, 2, 3, 5] = p0\ninput %s: f32[]\ninput %t: f32[]\n"
    "input %z: u8[]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, %z) {pads = [4, 7, 4, 6]}\n"
    "output %y",
    // Few windows, more than a stretch deep.
    "input %x: u8[1, 300, 5, 5]\nparam %w: i8[30, 300, 3, 3] = p0\ninput %s: f32[]\ninput %t: "
    "f32[30]\ninput %z: u8[]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, %z) {pads = [1, 1, 1, "
    "1]}\noutput %y",
    // The same with channels last, as floats and as bytes.
    "input %x: u8[2, 17, 23, 5]\nparam %w: i8[20, 5, 3, 3] = p0\ninput %s: f32[]\ninput %t: "
    "f32[20]\ninput %z: u8[]\nparam %b: f32[20] = p1\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, "
    "%z, _, %b) {pads = [1, 1, 1, 1], activation = \"relu\", layout = \"last\"}\noutput %y",
    "input %x: u8[1, 13, 9, 8]\nparam %w: u8[16, 4, 3, 2] = p0\ninput %s: f32[1]\ninput %t: "
    "f32[16]\ninput %z: u8[1]\ninput %q: u8[16]\nconst %u: f32[] = {0.7}\ninput %v: u8[]\n%y: ? = "
    "reprise.IntegerConv(%x, %w, %s, %t, %z, %q, _, _, %u, %v) {group = 2, pads = [2, 3, 0, 1], "
    "strides = [2, 3], dilations = [2, 1], layout = \"last\"}\noutput %y",
    "input %x: i8[3, 7, 9, 16]\nparam %w: i8[70, 16, 1, 1] = p0\ninput %s: f32[]\ninput %t: "
    "f32[]\ninput %z: i8[]\ninput %r: f32[3, 7, 9, 70]\nconst %u: f32[] = {3.0}\ninput %v: i8[]\n"
    "%y: ? = reprise.IntegerConv(%x, %w, %s, %t, %z, _, _, %r, %u, %v) {activation = \"clip\", low "
    "= -50.0, layout = \"last\"}\noutput %y",
    "input %x: i8[1, 301, 40]\nparam %w: u8[24, 40, 3] = p0\ninput %s: f32[]\ninput %t: f32[]\n"
    "input %q: u8[]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, _, %q) {strides = [2], pads = [0, "
    "3], dilations = [4], layout = \"last\", activation = \"hard_swish\"}\noutput %y",
    // The rows of windows that a tap sees nothing of, more than a stretch deep.
    "input %x: u8[1, 3, 4, 300]\nparam %w: i8[8, 300, 3, 5] = p0\ninput %s: f32[]\ninput %t: "
    "f32[]\n"
    "input %z: u8[]\nconst %u: f32[] = {40.0}\ninput %v: u8[]\n%y: ? = reprise.IntegerConv(%x, %w, "
    "%s, %t, %z, _, _, _, %u, %v) {pads = [4, 7, 4, 6], layout = \"last\"}\noutput %y",
    // Planes of few channels, read where they are.
    "input %x: u8[2, 3, 19, 16]\nparam %w: i8[64, 3, 7, 7] = p0\ninput %s: f32[]\ninput %t: f32[64]"
    "\ninput %z: u8[]\nconst %u: f32[] = {9.0}\ninput %v: i8[]\n%y: ? = reprise.IntegerConv(%x, "
    "%w, "
    "%s, %t, %z, _, _, _, %u, %v) {pads = [3, 3, 3, 3], strides = [2, 2], layout = \"to_last\"}\n"
    "output %y",
    "input %x: i8[1, 2, 5, 9]\nparam %w: i8[9, 2, 2, 2] = p0\ninput %s: f32[]\ninput %t: f32[]\n"
    "%y: ? = reprise.IntegerConv(%x, %w, %s, %t) {dilations = [1, 3], layout = "
    "\"to_last\"}\noutput "
    "%y",
    // Each channel by itself.
    "input %x: u8[2, 9, 7, 16]\nparam %w: i8[16, 1, 3, 3] = p0\ninput %s: f32[]\ninput %t: "
    "f32[16]\n"
    "input %z: u8[]\nparam %b: f32[16] = p1\nconst %u: f32[] = {8.0}\ninput %v: u8[]\n%y: ? = "
    "reprise.IntegerConv(%x, %w, %s, %t, %z, _, %b, _, %u, %v) {group = 16, pads = [1, 1, 1, 1], "
    "activation = \"relu\", layout = \"last\"}\noutput %y",
    "input %x: i8[1, 11, 10, 37]\nparam %w: u8[37, 1, 5, 2] = p0\ninput %s: f32[]\ninput %t: "
    "f32[]\n"
    "input %z: i8[]\ninput %q: u8[37]\ninput %r: f32[1, 6, 3, 37]\n%y: ? = reprise.IntegerConv(%x, "
    "%w, %s, %t, %z, %q, _, %r) {group = 37, pads = [3, 0, 1, 1], strides = [2, 3], dilations = "
    "[1, "
    "2], layout = \"last\", activation = \"hard_swish\"}\noutput %y",
    "input %x: u8[1, 9, 19]\nparam %w: u8[19, 1, 4] = p0\ninput %s: f32[]\ninput %t: f32[]\n"
    "input %q: u8[]\nconst %u: f32[] = {3.0}\ninput %v: i8[]\n%y: ? = reprise.IntegerConv(%x, %w, "
    "%s, %t, _, %q, _, _, %u, %v) {group = 19, layout = \"last\"}\noutput %y",
    // What lies between convolutions of bytes.
    "input %x: u8[2, 7, 9, 5]\ninput %w: i8[2, 7, 9, 5]\ninput %s: f32[]\ninput %t: f32[]\n"
    "const %u: f32[] = {0.75}\ninput %p: u8[]\ninput %q: i8[]\ninput %v: i8[]\n%y: ? = "
    "reprise.IntegerAdd(%x, %w, %s, %t, %u, %p, %q, %v)\noutput %y",
    "input %x: i8[3, 67]\ninput %w: u8[3, 67]\ninput %s: f32[]\ninput %t: f32[]\n"
    "const %u: f32[] = {5.0}\ninput %p: i8[]\ninput %q: u8[]\ninput %v: u8[]\n%y: ? = "
    "reprise.IntegerAdd(%x, %w, %s, %t, %u, %p, %q, %v) {activation = \"relu\"}\noutput %y",
    "input %x: u8[2, 1, 13, 12, 70]\n%y: ? = MaxPool(%x) {kernel_shape = [3, 3, 1], strides = [2, "
    "2, "
    "1], pads = [1, 1, 0, 1, 1, 0]}\noutput %y",
    "input %x: i8[1, 2, 9, 7, 33]\n%y: ? = MaxPool(%x) {kernel_shape = [2, 3, 1], dilations = [2, "
    "1, "
    "1], ceil_mode = 1, strides = [1, 2, 1]}\noutput %y",
    // Recurrent layers.
    "input %x: f32[7, 1, 20]\nparam %w: f32[1, 128, 20] = p0\nparam %r: f32[1, 128, 32] = "
    "p1\nparam %b: f32[1, 256] = p2\n%y: ?, %h: ?, %c: ? = LSTM(%x, %w, %r, %b) {hidden_size = "
    "32}\noutput %y\noutput %h\noutput %c",
    "input %x: f32[5, 3, 9]\nparam %w: f32[2, 132, 9] = p0\nparam %r: f32[2, 132, 33] = p1\nparam "
    "%b: f32[2, 264] = p2\ninput %h0: f32[2, 3, 33]\ninput %c0: f32[2, 3, 33]\n%y: ?, %h: ?, %c: ? "
    "= LSTM(%x, %w, %r, %b, _, %h0, %c0) {hidden_size = 33, direction = \"bidirectional\"}\noutput "
    "%y\noutput %h\noutput %c",
    "input %x: f32[6, 2, 8]\nparam %w: f32[1, 80, 8] = p0\nparam %r: f32[1, 80, 20] = p1\n%y: ? = "
    "LSTM(%x, %w, %r) {hidden_size = 20, direction = \"reverse\"}\noutput %y",
    "input %x: f32[7, 2, 20]\nparam %w: f32[1, 72, 20] = p0\nparam %r: f32[1, 72, 24] = p1\nparam "
    "%b: f32[1, 144] = p2\n%y: ?, %h: ? = GRU(%x, %w, %r, %b) {hidden_size = 24}\noutput "
    "%y\noutput %h",
    "input %x: f32[4, 3, 11]\nparam %w: f32[2, 150, 11] = p0\nparam %r: f32[2, 150, 50] = "
    "p1\nparam %b: f32[2, 300] = p2\ninput %h0: f32[2, 3, 50]\n%y: ?, %h: ? = GRU(%x, %w, %r, %b, "
    "_, %h0) {hidden_size = 50, direction = \"bidirectional\", linear_before_reset = 1}\noutput "
    "%y\noutput %h",
    "input %x: f32[5, 1, 7]\nparam %w: f32[1, 48, 7] = p0\nparam %r: f32[1, 48, 16] = p1\n%y: ?, "
    "%h: ? = GRU(%x, %w, %r) {hidden_size = 16, linear_before_reset = 1}\noutput %y\noutput %h",
    "input %x: f32[6, 2, 12]\nparam %w: f32[2, 17, 12] = p0\nparam %r: f32[2, 17, 17] = p1\nparam "
    "%b: f32[2, 34] = p2\ninput %h0: f32[2, 2, 17]\n%y: ?, %h: ? = RNN(%x, %w, %r, %b, _, %h0) "
    "{hidden_size = 17, direction = \"bidirectional\", activations = [\"Tanh\", \"Tanh\"]}\noutput "
    "%y\noutput %h",
    // Attention.
    "input %x: f32[2, 20, 96]\n%y: ? = reprise.Attention(%x) {num_heads = 4, packed_qkv = 1, "
    "scale = 0.3}\noutput %y",
    "input %x: f32[2, 130, 96]\ninput %m: f32[2, 1, 1, 130]\n"
    "%y: ? = reprise.Attention(%x, _, _, %m) {num_heads = 1, packed_qkv = 1, scale = 0.3}\noutput "
    "%y",
    "input %q: f32[2, 7, 32]\ninput %k: f32[2, 11, 32]\ninput %v: f32[2, 11, 24]\n"
    "input %m: f32[4, 7, 11]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 4, "
    "scale = 0.5}\noutput %y",
    "input %q: f32[3, 7, 32]\ninput %k: f32[3, 11, 32]\ninput %v: f32[3, 11, 32]\n"
    "input %m: bool[3, 1, 7, 11]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 2, "
    "scale = 0.5, nan_to_zero = 1}\noutput %y",
    "input %q: f32[3, 7, 32]\ninput %k: f32[3, 11, 32]\ninput %v: f32[3, 11, 32]\n"
    "input %m: bool[11]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 2, "
    "scale = 0.5}\noutput %y",
    "input %x: f32[2, 20, 80]\n%y: ? = reprise.Attention(%x) {num_heads = 4, packed_qkv = 1, "
    "head_size_v = 8, scale = 0.3}\noutput %y",
    "input %q: f32[2, 100, 96]\ninput %k: f32[2, 97, 96]\ninput %v: f32[2, 97, 96]\n"
    "input %m: bool[2, 1, 100, 97]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 3, "
    "scale = 0.2, nan_to_zero = 1}\noutput %y",
    // Normalisations.
    "input %x: f32[2, 5, 33]\nparam %g: f32[33] = p0\nparam %b: f32[33] = p1\n"
    "%y: ? = LayerNormalization(%x, %g, %b) {epsilon = 1e-12}\noutput %y",
    "input %x: f32[2, 5, 6]\nparam %g: f32[5, 6] = p0\n"
    "%y: ? = LayerNormalization(%x, %g) {axis = 1}\noutput %y",
    "input %x: f32[2, 5, 33]\nparam %g: f32[33] = p0\n%y: ? = RMSNormalization(%x, %g)\noutput %y",
    "input %x: f32[2, 5, 33]\ninput %r: f32[2, 5, 33]\nparam %g: f32[33] = p0\n"
    "param %b: f32[33] = p1\n%y: ?, %s: ? = reprise.AddLayerNorm(%x, %r, %g, %b)\noutput "
    "%y\noutput %s",
    "input %x: f32[2, 5, 33]\ninput %r: f32[1, 5, 33]\nparam %g: f32[33] = p0\n"
    "%y: ? = reprise.AddLayerNorm(%x, %r, %g)\noutput %y",
    "input %x: f32[2, 5, 33]\ninput %r: f32[33]\nparam %g: f32[33] = p0\n"
    "%y: ? = reprise.AddLayerNorm(%x, %r, %g)\noutput %y",
    "input %x: f32[4, 3, 17]\n%y: ? = Softmax(%x) {axis = -1}\noutput %y",
    // Halves.
    "input %x: f16[2, 5, 33]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
    "input %x: bf16[131]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
    "input %x: f32[2, 5, 33]\n%y: ? = Cast(%x) {to = 10}\noutput %y",
    "input %x: f32[7, 40]\n%y: ? = Cast(%x) {to = 16}\noutput %y",
    "input %x: f16[7, 40]\n%y: ? = Cast(%x) {to = 16}\noutput %y",
    "input %x: f32[4, 3, 17]\n%y: ? = LogSoftmax(%x) {axis = -1}\noutput %y",
    "input %x: f32[5, 1]\n%y: ? = LogSoftmax(%x)\noutput %y",
    // Reductions.
    "input %x: f32[3, 5, 7, 9]\n%y: ? = GlobalMaxPool(%x)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMax(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {2}\n%y: ? = ReduceMax(%x, %a) {keepdims = "
    "0}\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMin(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {2}\n%y: ? = ReduceMin(%x, %a) {keepdims = "
    "0}\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {1}\n%y: ? = ReduceProd(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {2}\n%y: ? = ReduceProd(%x, %a) {keepdims = "
    "0}\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {1}\n%y: ? = ReduceSumSquare(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {2}\n%y: ? = ReduceSumSquare(%x, %a) {keepdims = "
    "0}\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {1}\n%y: ? = ReduceL1(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {2}\n%y: ? = ReduceL1(%x, %a) {keepdims = "
    "0}\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {1}\n%y: ? = ReduceL2(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 77]\nconst %a: i64[1] = {2}\n%y: ? = ReduceL2(%x, %a) {keepdims = "
    "0}\noutput %y",
    "const %x: f32[2, 3] = {1.0, 2.0, 3.0, 0.25, 9.0, 0.5}\nconst %a: i64[1] = {1}\n%y: ? = "
    "ReduceLogSum(%x, %a)\noutput %y",
    "input %x: f32[1]\n%y: ? = ReduceMax(%x)\noutput %y",
    "input %x: f32[0, 3]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMax(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 17]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMean(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 17]\nconst %a: i64[2] = {-1, 1}\n"
    "%y: ? = ReduceSum(%x, %a) {keepdims = 0}\noutput %y",
    "input %x: f32[4, 3, 17]\n%y: ? = ReduceSum(%x)\noutput %y",
    // Gathering. Random indices lie in [-4, 4].
    "param %t: f32[9, 40] = p0\ninput %i: i64[2, 7]\n%y: ? = Gather(%t, %i)\noutput %y",
    "input %x: f32[2, 5, 12]\nconst %i: i64[] = {0}\n%y: ? = Gather(%x, %i) {axis = 1}\noutput %y",
    "input %x: i64[2, 5, 3]\ninput %i: i32[2, 2]\n%y: ? = Gather(%x, %i) {axis = 1}\noutput %y",
    "param %t: f32[9, 40] = p0\ninput %i: i64[3, 7]\nparam %p: f32[7, 40] = p1\ninput %j: i32[1, "
    "7]\n"
    "param %s: f32[5, 40] = p2\ninput %k: i64[3, 1]\n"
    "%y: ? = reprise.EmbeddingSum(%t, %i, %p, %j, %s, %k)\noutput %y",
    // Elementwise, float32.
    "input %x: f32[3, 50]\n%y: ? = Neg(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Abs(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Floor(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Ceil(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Round(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Exp(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Tanh(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Sigmoid(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Erf(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Relu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Gelu(%x)\noutput %y",
    "const %x: f32[5] = {1.0, 2.0, 0.25, 9.0, 1e-3}\n%y: ? = Sqrt(%x)\noutput %y",
    "const %x: f32[5] = {1.0, 2.0, 0.25, 9.0, 1e-3}\n%y: ? = Reciprocal(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Gelu(%x) {approximate = \"tanh\"}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Sign(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Sin(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Cos(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Tan(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Atan(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Softplus(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Softsign(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Mish(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = HardSwish(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = LeakyRelu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Elu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Selu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Celu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = HardSigmoid(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = ThresholdedRelu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Shrink(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = com.microsoft.QuickGelu(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = IsNaN(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = IsInf(%x)\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = LeakyRelu(%x) {alpha = 0.3}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Elu(%x) {alpha = 0.7}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Selu(%x) {alpha = 1.5, gamma = 0.9}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Celu(%x) {alpha = 2.5}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = HardSigmoid(%x) {alpha = 0.4, beta = 0.1}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = ThresholdedRelu(%x) {alpha = -0.5}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = Shrink(%x) {lambd = 0.9, bias = 0.2}\noutput %y",
    "input %x: f32[3, 50]\n%y: ? = com.microsoft.QuickGelu(%x) {alpha = 1.0}\noutput %y",
    "const %x: f32[5] = {1.0, 0.5, -0.25, 0.9, -1e-3}\n%y: ? = Asin(%x)\noutput %y",
    "const %x: f32[5] = {1.0, 0.5, -0.25, 0.9, -1e-3}\n%y: ? = Acos(%x)\noutput %y",
    "const %x: f32[5] = {1.0, 2.0, 0.25, 9.0, 1e-3}\n%y: ? = Log(%x)\noutput %y",
    "input %x: f32[]\n%y: ? = Mish(%x)\noutput %y",
    "input %x: f32[0, 4]\n%y: ? = LeakyRelu(%x)\noutput %y",
    "input %x: f32[2, 5, 3, 7]\nparam %s: f32[5, 1, 1] = p0\n%y: ? = PRelu(%x, %s)\noutput %y",
    "input %x: f32[2, 5]\nparam %s: f32[1] = p0\n%y: ? = PRelu(%x, %s)\noutput %y",
    "input %a: f32[2, 3, 50]\ninput %b: f32[2, 3, 50]\n%y: ? = Add(%a, %b)\noutput %y",
    "input %a: f32[2, 3, 50]\ninput %b: f32[2, 3, 50]\n%y: ? = Sub(%a, %b)\noutput %y",
    "input %a: f32[2, 3, 50]\ninput %b: f32[2, 3, 50]\n%y: ? = Mul(%a, %b)\noutput %y",
    "input %a: f32[2, 3, 50]\ninput %b: f32[50]\n%y: ? = Sub(%a, %b)\noutput %y",
    "input %a: f32[2, 1, 50]\ninput %b: f32[3, 1]\n%y: ? = Sub(%a, %b)\noutput %y",
    "const %a: f32[] = {1.0}\ninput %b: f32[2, 1, 1, 70]\n%y: ? = Sub(%a, %b)\noutput %y",
    "input %a: f32[4, 1, 3, 1, 2]\ninput %b: f32[5, 1, 2, 1]\n%y: ? = Mul(%a, %b)\noutput %y",
    "input %a: f32[7, 30]\nconst %b: f32[] = {8.0}\n%y: ? = Div(%a, %b)\noutput %y",
    "input %a: f32[1]\ninput %b: f32[]\n%y: ? = Add(%a, %b)\noutput %y",
    "input %a: f32[0, 3]\ninput %b: f32[3]\n%y: ? = Add(%a, %b)\noutput %y",
    "input %a: f32[5, 30]\ninput %b: f32[30]\n%y: ? = Max(%a, %b)\noutput %y",
    "input %a: f32[5, 30]\ninput %b: f32[30]\n%y: ? = Min(%a, %b)\noutput %y",
    "input %a: f32[5, 30]\ninput %b: f32[30]\n%y: ? = com.microsoft.BiasGelu(%a, %b)\noutput %y",
    "input %a: f32[5, 30]\ninput %b: f32[30]\n%y: ? = com.microsoft.FastGelu(%a, %b)\noutput %y",
    "input %a: f32[5, 30]\n%y: ? = com.microsoft.FastGelu(%a)\noutput %y",
    "input %a: f32[5, 30]\nconst %e: f32[] = {2.0}\n%y: ? = Pow(%a, %e)\noutput %y",
    "input %a: f32[5, 30]\nconst %e: i64[] = {2}\n%y: ? = Pow(%a, %e)\noutput %y",
    "input %a: f32[5, 30]\nconst %l: f32[] = {-1.0}\nconst %h: f32[] = {0.5}\n%y: ? = Clip(%a, %l, "
    "%h)\noutput %y",
    "input %a: f32[5, 30]\nconst %h: f32[] = {0.5}\n%y: ? = Clip(%a, _, %h)\noutput %y",
    // Elementwise, other dtypes.
    "input %a: i64[2, 3, 5]\ninput %b: i64[5]\n%y: ? = Add(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[5]\n%y: ? = Sub(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[5]\n%y: ? = Mul(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[5]\n%y: ? = Max(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[5]\n%y: ? = Min(%a, %b)\noutput %y",
    "input %a: i32[2, 3, 5]\nconst %b: i32[] = {-2147483648}\n%y: ? = Sub(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[3, 1]\n%y: ? = Equal(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[3, 1]\n%y: ? = Less(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[3, 1]\n%y: ? = LessOrEqual(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[3, 1]\n%y: ? = Greater(%a, %b)\noutput %y",
    "input %a: i64[2, 3, 5]\ninput %b: i64[3, 1]\n%y: ? = GreaterOrEqual(%a, %b)\noutput %y",
    "input %a: bool[2, 3]\ninput %b: bool[2, 3]\n%y: ? = Equal(%a, %b)\noutput %y",
    "input %a: f32[2, 3]\nconst %b: f32[] = {0.0}\n%y: ? = Greater(%a, %b)\noutput %y",
    "input %a: bool[2, 3, 5]\ninput %b: bool[5]\n%y: ? = And(%a, %b)\noutput %y",
    "input %a: bool[2, 3, 5]\ninput %b: bool[5]\n%y: ? = Or(%a, %b)\noutput %y",
    "input %a: bool[2, 3, 5]\ninput %b: bool[5]\n%y: ? = Xor(%a, %b)\noutput %y",
    "input %a: bool[2, 3, 5]\n%y: ? = Not(%a)\noutput %y",
    "input %a: i64[2, 1, 1, 70]\n%y: ? = Cast(%a) {to = 1}\noutput %y",
    "input %a: f32[70]\n%y: ? = Cast(%a) {to = 7}\noutput %y",
    "input %a: f32[70]\n%y: ? = Cast(%a) {to = 9}\noutput %y",
    "input %a: i32[70]\n%y: ? = Cast(%a) {to = 9}\noutput %y",
    "input %a: bool[70]\n%y: ? = Cast(%a) {to = 1}\noutput %y",
    "input %a: i64[70]\n%y: ? = Cast(%a) {to = 6}\noutput %y",
    "input %a: i64[70]\n%y: ? = Identity(%a)\noutput %y",
    "input %c: bool[2, 1, 1, 9]\nconst %a: f32[] = {1.0}\ninput %b: f32[2, 3, 4, 9]\n%y: ? = "
    "Where(%c, %a, %b)\noutput %y",
    "input %c: bool[4, 9]\ninput %a: i64[9]\ninput %b: i64[4, 1]\n%y: ? = Where(%c, %a, "
    "%b)\noutput %y",
    "input %a: f64[2, 3, 5]\ninput %b: f64[3, 1]\n%y: ? = Add(%a, %b)\noutput %y",
    "input %a: f64[2, 3, 5]\ninput %b: f64[3, 1]\n%y: ? = Sub(%a, %b)\noutput %y",
    "input %a: f64[2, 3, 5]\ninput %b: f64[3, 1]\n%y: ? = Mul(%a, %b)\noutput %y",
    "input %a: f64[2, 3, 5]\ninput %b: f64[3, 1]\n%y: ? = Div(%a, %b)\noutput %y",
    "input %a: f64[2, 3, 5]\ninput %b: f64[3, 1]\n%y: ? = Max(%a, %b)\noutput %y",
    "input %a: f64[2, 3, 5]\ninput %b: f64[3, 1]\n%y: ? = Min(%a, %b)\noutput %y",
    "input %a: i32[2, 3, 5]\ninput %b: i32[3, 5]\n%y: ? = Div(%a, %b)\noutput %y",
    "input %a: i32[2, 3, 5]\ninput %b: i32[3, 5]\n%y: ? = Mod(%a, %b)\noutput %y",
    "input %a: i32[2, 3, 5]\ninput %b: i32[3, 5]\n%y: ? = BitwiseAnd(%a, %b)\noutput %y",
    "input %a: i32[2, 3, 5]\ninput %b: i32[3, 5]\n%y: ? = BitwiseOr(%a, %b)\noutput %y",
    "input %a: i32[2, 3, 5]\ninput %b: i32[3, 5]\n%y: ? = BitwiseXor(%a, %b)\noutput %y",
    "input %a: f32[3, 41]\n%y: ? = Cast(%a) {to = 11}\noutput %y",
    "input %c: bool[1]\ninput %a: f32[4, 9]\ninput %b: f32[]\n%y: ? = Where(%c, %a, %b)\noutput %y",
    // Movement.
    "input %x: f32[2, 5, 3, 8]\n%y: ? = Transpose(%x) {perm = [0, 2, 1, 3]}\noutput %y",
    "input %x: f32[2, 5, 3, 40]\n%y: ? = Transpose(%x) {perm = [0, 2, 3, 1]}\noutput %y",
    "input %x: f32[37, 50]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: i64[3, 4, 5, 6]\n%y: ? = Transpose(%x) {perm = [3, 1, 0, 2]}\noutput %y",
    "input %x: bool[33, 7, 20]\n%y: ? = Transpose(%x) {perm = [2, 0, 1]}\noutput %y",
    "input %x: f32[4, 9]\nconst %s: i64[2] = {1, -8}\nconst %e: i64[2] = {3, 100}\n%y: ? = "
    "Slice(%x, %s, %e)\noutput %y",
    "input %x: f32[4, 9]\nconst %s: i64[1] = {100}\nconst %e: i64[1] = {-100}\nconst %a: i64[1] = "
    "{-1}\nconst %t: i64[1] = {-2}\n%y: ? = Slice(%x, %s, %e, %a, %t)\noutput %y",
    "input %x: i64[4, 9]\nconst %s: i64[1] = {7}\nconst %e: i64[1] = {3}\nconst %a: i64[1] = "
    "{1}\n%y: ? = Slice(%x, %s, %e, %a)\noutput %y",
    "input %x: f32[4, 1, 9]\nconst %s: i64[4] = {2, 1, 3, 9}\n%y: ? = Expand(%x, %s)\noutput %y",
    "input %x: i64[1]\nconst %s: i64[1] = {300}\n%y: ? = Expand(%x, %s)\noutput %y",
    "input %x: f32[2, 3]\nconst %r: i64[2] = {3, 2}\n%y: ? = Tile(%x, %r)\noutput %y",
    "input %a: f32[2, 3, 4]\ninput %b: f32[2, 5, 4]\ninput %c: f32[2, 0, 4]\n%y: ? = Concat(%a, "
    "%b, %c) {axis = 1}\noutput %y",
    "input %a: i64[2000]\ninput %b: i64[3]\n%y: ? = Concat(%a, %b) {axis = 0}\noutput %y",
    "input %x: f32[2, 3, 12]\n%y: ?, %z: ? = Split(%x) {axis = 2}\noutput %y\noutput %z",
    "input %x: f32[5, 3]\nconst %s: i64[2] = {4, 1}\n%y: ?, %z: ? = Split(%x, %s)\noutput "
    "%y\noutput %z",
    "input %x: f32[2, 8, 3, 20]\n%y: ? = DepthToSpace(%x) {blocksize = 2}\noutput %y",
    "input %x: i64[2, 18, 3, 5]\n%y: ? = DepthToSpace(%x) {blocksize = 3, mode = \"CRD\"}\noutput "
    "%y",
    "input %x: f32[2, 3, 6, 40]\n%y: ? = SpaceToDepth(%x) {blocksize = 2}\noutput %y",
    "input %x: f32[1, 2, 9, 6]\n%y: ? = SpaceToDepth(%x) {blocksize = 3}\noutput %y",
    "input %x: f32[2, 13, 21]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
    "input %x: f32[6, 2, 17]\n%y: ? = Transpose(%x) {perm = [2, 1, 0]}\noutput %y",
    // Filled in.
    "input %x: f32[2, 3, 5]\nconst %p: i64[6] = {0, 1, 2, 1, 0, 3}\n%y: ? = Pad(%x, %p)\noutput %y",
    "input %x: f32[2, 3, 5]\nconst %p: i64[6] = {0, 1, 2, 1, 0, 3}\nconst %v: f32[] = {-1.5}\n%y: "
    "? = "
    "Pad(%x, %p, %v)\noutput %y",
    "input %x: i64[2, 3, 5]\nconst %p: i64[6] = {1, -1, 2, 0, 2, -4}\ninput %v: i64[1]\n%y: ? = "
    "Pad(%x, %p, %v)\noutput %y",
    "input %x: f32[2, 3, 5]\nconst %p: i64[4] = {2, 4, 1, 3}\nconst %a: i64[2] = {1, -1}\n%y: ? = "
    "Pad(%x, %p, _, %a) {mode = \"reflect\"}\noutput %y",
    "input %x: f32[4, 5]\nconst %p: i64[4] = {2, 7, 1, 9}\n%y: ? = Pad(%x, %p) {mode = "
    "\"wrap\"}\noutput %y",
    "input %x: bool[4, 5]\nconst %p: i64[4] = {2, -2, 1, 9}\n%y: ? = Pad(%x, %p) {mode = "
    "\"edge\"}\noutput %y",
    "input %x: f32[0, 5]\nconst %p: i64[4] = {2, 0, 1, 1}\n%y: ? = Pad(%x, %p)\noutput %y",
    "input %x: f32[2, 9, 7]\n%y: ? = Trilu(%x)\noutput %y",
    "input %x: f32[2, 7, 9]\nconst %k: i64[] = {2}\n%y: ? = Trilu(%x, %k) {upper = 0}\noutput %y",
    "input %x: bool[7, 9]\nconst %k: i64[] = {-3}\n%y: ? = Trilu(%x, %k)\noutput %y",
    "input %x: i64[3, 4]\nconst %k: i64[] = {-9223372036854775808}\n%y: ? = Trilu(%x, %k) {upper = "
    "0}\noutput %y",
    "input %x: i64[3, 4]\nconst %k: i64[] = {9223372036854775807}\n%y: ? = Trilu(%x, %k) {upper = "
    "0}\noutput %y",
    // Single elements. Random indices lie in [-4, 4].
    "input %x: f32[3, 5, 6]\ninput %i: i64[2, 7, 6]\n%y: ? = GatherElements(%x, %i) {axis = "
    "1}\noutput "
    "%y",
    "input %x: i64[5, 6]\ninput %i: i32[9, 4]\n%y: ? = GatherElements(%x, %i)\noutput %y",
    "input %x: f32[5, 6]\ninput %i: i64[5, 3]\n%y: ? = GatherElements(%x, %i) {axis = -1}\noutput "
    "%y",
    // Places around -1 to 1, of more than a chunk, inside and outside.
    "input %x: f32[2, 3, 7, 5]\ninput %g: f32[2, 11, 13, 2]\n%y: ? = GridSample(%x, %g)\noutput %y",
    "input %x: f32[3, 1, 1, 9]\ninput %g: f32[3, 1, 4, 2]\n%y: ? = GridSample(%x, %g) "
    "{align_corners "
    "= 1, mode = \"bilinear\"}\noutput %y",
    "input %x: f32[1, 5, 16, 17]\ninput %g: f32[1, 8, 8, 2]\n%y: ? = GridSample(%x, %g) "
    "{padding_mode = \"border\"}\noutput %y",
    "input %x: f32[7, 5, 33]\ninput %i: i64[7, 1]\n%y: ? = GatherND(%x, %i) {batch_dims = "
    "1}\noutput %y",
    "input %x: f32[5, 6, 4]\ninput %i: i64[3, 4, 2]\n%y: ? = GatherND(%x, %i)\noutput %y",
    "input %x: i64[2, 3, 5, 6]\ninput %i: i64[2, 3, 7, 2]\n%y: ? = GatherND(%x, %i) {batch_dims "
    "= 2}\noutput %y",
    "input %x: bool[5, 6]\ninput %i: i64[1, 1]\n%y: ? = GatherND(%x, %i)\noutput %y",
    "input %x: f32[3, 5, 6]\ninput %i: i64[2, 7, 6]\ninput %u: f32[2, 7, 6]\n%y: ? = "
    "ScatterElements(%x, %i, %u) {axis = 1}\noutput %y",
    "input %x: f32[3, 2, 5, 6]\ninput %i: i64[3, 1, 7, 4]\ninput %u: f32[3, 1, 7, 4]\n%y: ? = "
    "ScatterElements(%x, %i, %u) {axis = 2}\noutput %y",
    "input %x: bool[5, 6]\ninput %i: i32[9, 4]\ninput %u: bool[9, 4]\n%y: ? = ScatterElements(%x, "
    "%i, "
    "%u)\noutput %y",
    "input %x: f32[5, 6]\ninput %i: i64[0, 6]\ninput %u: f32[0, 6]\n%y: ? = ScatterElements(%x, "
    "%i, "
    "%u)\noutput %y",
    "input %x: f32[5, 6, 700]\ninput %i: i64[4, 2]\ninput %u: f32[4, 700]\n%y: ? = ScatterND(%x, "
    "%i, "
    "%u)\noutput %y",
    "input %x: i64[5, 6]\ninput %i: i64[2, 3, 1]\ninput %u: i64[2, 3, 6]\n%y: ? = ScatterND(%x, "
    "%i, "
    "%u)\noutput %y",
    "input %x: f32[5, 6]\ninput %i: i64[7, 2]\ninput %u: f32[7]\n%y: ? = ScatterND(%x, %i, "
    "%u)\noutput "
    "%y",
    // Packed tokens: segments of 0, 1 and many tokens, of more than a block of queries.
    "input %x: f32[41, 96]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentAttention(%x, _, _, _, _, %s) {num_heads = 4, packed_qkv = 1, scale = 0.35, "
    "longest = 22}\noutput %y",
    "input %q: f32[150, 40]\ninput %k: f32[150, 40]\ninput %v: f32[150, 24]\ninput %m: "
    "f32[150]\nconst %s: i32[4] = {0, 129, 133, 150}\n%y: ? = reprise.SegmentAttention(%q, %k, "
    "%v, %m, _, %s) {num_heads = 8, scale = 0.4, longest = 129}\noutput %y",
    "input %x: f32[90, 192]\ninput %m: bool[90]\nconst %s: i32[4] = {0, 40, 71, 90}\n%y: ? = "
    "reprise.SegmentAttention(%x, _, _, %m, _, %s) {num_heads = 2, packed_qkv = 1, scale = 0.2, "
    "longest = 40}\noutput %y",
    "input %x: f32[60, 96]\ninput %m: f32[60]\nparam %b: f32[2, 45, 45] = p0\nconst %s: i32[4] "
    "= {0, 45, 46, 60}\n%y: ? = reprise.SegmentAttention(%x, _, _, %m, %b, %s) {num_heads = 2, "
    "packed_qkv = 1, scale = 0.3, longest = 45}\noutput %y",
    "input %x: f32[60, 48]\ninput %m: bool[60]\nparam %b: f32[1, 64, 64] = p0\nconst %s: "
    "i32[3] = {0, 19, 60}\n%y: ? = reprise.SegmentAttention(%x, _, _, %m, %b, %s) {num_heads = "
    "1, packed_qkv = 1, longest = 50}\noutput %y",
    "input %x: f32[270, 192]\ninput %m: f32[270]\nparam %b: f32[2, 130, 130] = p0\nconst %s: "
    "i32[4] = {0, 120, 150, 270}\n%y: ? = reprise.SegmentAttention(%x, _, _, %m, %b, %s) "
    "{num_heads = 2, packed_qkv = 1, scale = 0.2, longest = 125}\noutput %y",
    // The sum of mask and bias has a lower bound.
    "input %x: f32[270, 192]\ninput %m: f32[270]\nparam %b: f32[2, 130, 130] = p0\nconst %s: "
    "i32[4] = {0, 120, 150, 270}\n%y: ? = reprise.SegmentAttention(%x, _, _, %m, %b, %s) "
    "{num_heads = 2, packed_qkv = 1, scale = 0.2, longest = 125, lowest = 0.25}\noutput %y",
    "input %x: f32[41, 200]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"sum\"}\noutput %y",
    "input %x: f32[41, 3, 5]\nconst %s: i32[4] = {0, 40, 41, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"mean\"}\noutput %y",
    "input %x: i64[41, 3]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"first\"}\noutput %y",
    "input %x: f32[41, 200]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"max\"}\noutput %y",
    "input %x: f32[41, 67]\nconst %s: i32[4] = {0, 1, 40, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"min\"}\noutput %y",
    "input %x: f32[5, 17]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\ninput %t: i64[41]\n%y: ? = "
    "reprise.SegmentSpread(%x, %s, %t)\noutput %y",
    "input %x: bool[2]\nconst %s: i32[3] = {0, 20, 41}\ninput %t: i64[41]\n%y: ? = "
    "reprise.SegmentSpread(%x, %s, %t)\noutput %y",
    "input %x: i64[41]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentCumSum(%x, %s) {exclusive = 1}\noutput %y",
    "input %x: f32[41, 3]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentCumSum(%x, %s) {reverse = 1}\noutput %y",
    "input %x: f32[41, 37]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ?, %r: ?, %z: ? = "
    "reprise.SegmentDynamicQuantizeLinear(%x, %s)\noutput %y\noutput %r\noutput %z",
    "input %x: f32[41, 3, 5]\nconst %s: i32[3] = {0, 40, 41}\n%y: ?, %r: ?, %z: ? = "
    "reprise.SegmentDynamicQuantizeLinear(%x, %s)\noutput %y\noutput %r\noutput %z",
    "input %x: f32[1, 129]\nconst %s: i32[2] = {0, 1}\n%y: ?, %r: ?, %z: ? = "
    "reprise.SegmentDynamicQuantizeLinear(%x, %s)\noutput %y\noutput %r\noutput %z",
};

// Floats within 1e-5 of the largest element, everything else equal.
void ExpectClose(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  ASSERT_EQ(got.dtype(), want.dtype());
  const std::vector<double> a = got.ToDoubles(), b = want.ToDoubles();
  double largest = 1;
  for (double x : b) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double bound = got.dtype() == DType::kFloat32 ? 1e-5 * largest : 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) continue;
    ASSERT_NEAR(a[i], b[i], bound) << "element " << i;
  }
}

class CpuDeviceTest : public testing::TestWithParam<Isa> {
 protected:
  CpuDevice device_{GetParam()};
};

TEST_P(CpuDeviceTest, EveryKernelAgreesWithItsReference) {
  for (const char* text : kNodes) {
    SCOPED_TRACE(text);
    NodeRun run(text, 7);
    const std::vector<Tensor> expected = run.Reference();
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    for (const KernelOption& option : options) {
      SCOPED_TRACE(option.kernel);
      EXPECT_GE(option.estimate_ns, 0);
      for (int parts : {1, 2, 3, 7, 40}) {
        for (bool in_place : {false, true}) {
          SCOPED_TRACE(testing::Message() << parts << " parts" << (in_place ? ", in place" : ""));
          const std::vector<Tensor> got = run.RunOption(device_, option, parts, in_place);
          for (size_t i = 0; i < expected.size(); ++i) {
            const ValueId output = run.node().outputs[i];
            if (output != kNone && run.graph.IsOutput(output)) ExpectClose(got[i], expected[i]);
          }
          EXPECT_THAT(run.errors.errors, IsEmpty());
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// It touches what later parts need: code, weights, memory.
TEST_P(CpuDeviceTest, FirstPartOfManyHasWork) {
  for (const char* text : kNodes) {
    SCOPED_TRACE(text);
    NodeRun run(text, 7);
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      SCOPED_TRACE(option.kernel);
      const Tensor result = run.RunOption(device_, option, 1024, /*in_place=*/false,
                                          /*live_rows=*/0, /*only_part=*/0)[0];
      const auto* bytes = static_cast<const uint8_t*>(result.data());
      const bool untouched =
          std::all_of(bytes, bytes + result.bytes(), [](uint8_t byte) { return byte == 0x5a; });
      EXPECT_TRUE(result.bytes() == 0 || !untouched);
    }
  }
}

TEST_P(CpuDeviceTest, IndexOutOfRangeIsReportedAndAnsweredWithRowZero) {
  for (const char* text :
       {"param %t: f32[5, 64] = p0\ninput %i: i64[6]\n%y: ? = Gather(%t, %i)\noutput %y",
        "param %t: f32[5, 64] = p0\ninput %i: i64[6]\n%y: ? = reprise.EmbeddingSum(%t, %i)\noutput "
        "%y"}) {
    NodeRun run(text);
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, {6}, {0, 4, 5, -5, -6, 1});
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const Tensor got = run.RunOption(device_, options[0], 2)[0];
    ASSERT_EQ(run.errors.errors.size(), 2u);
    std::set<int64_t> values;
    for (const DataError& error : run.errors.errors) {
      EXPECT_EQ(error.operand, 1);
      EXPECT_EQ(error.low, -5);
      EXPECT_EQ(error.high, 4);
      EXPECT_EQ(error.element, error.value == 5 ? 2 : 4);
      values.insert(error.value);
    }
    EXPECT_THAT(values, testing::ElementsAre(-6, 5));
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, {6}, {0, 4, 0, 0, 0, 1});
    ExpectClose(got, run.Reference()[0]);
  }
}

TEST_P(CpuDeviceTest, ElementIndexOutOfRangeIsReportedOnceAndAnsweredWithElementZero) {
  for (const std::string& text : std::vector<std::string>{
           "input %x: f32[5]\ninput %i: i64[6]\n%y: ? = GatherElements(%x, %i)\noutput %y",
           "input %x: f32[5, 700]\ninput %i: i64[6, 1]\n%y: ? = GatherND(%x, %i)\noutput %y",
           "input %x: f32[5]\ninput %i: i64[6]\ninput %u: f32[6]\n%y: ? = ScatterElements(%x, %i, "
           "%u)\noutput %y",
           "input %x: f32[5, 700]\ninput %i: i64[6, 1]\ninput %u: f32[6, 700]\n%y: ? = "
           "ScatterND(%x, %i, %u)\noutput %y"}) {
    SCOPED_TRACE(text);
    NodeRun run(text);
    const Shape shape = run.inputs[1]->shape();
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, shape, {4, 5, 2, -5, -6, 1});
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const Tensor got = run.RunOption(device_, options[0], 2)[0];
    std::set<std::pair<int64_t, int64_t>> reported;
    for (const DataError& error : run.errors.errors) {
      EXPECT_EQ(error.operand, 1);
      EXPECT_EQ(error.low, -5);
      EXPECT_EQ(error.high, 4);
      reported.insert({error.element, error.value});
    }
    EXPECT_EQ(run.errors.errors.size(), 2u);
    EXPECT_THAT(reported, testing::ElementsAre(std::pair<int64_t, int64_t>{1, 5},
                                               std::pair<int64_t, int64_t>{4, -6}));
    run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, shape, {4, 0, 2, -5, 0, 1});
    ExpectClose(got, run.Reference()[0]);
  }
}

TEST_P(CpuDeviceTest, RowsOfRecurrentLayersEndAtTheirLengths) {
  for (const char* text :
       {"input %x: f32[7, 5, 12]\nparam %w: f32[2, 80, 12] = p0\nparam %r: f32[2, 80, 20] = p1\n"
        "param %b: f32[2, 160] = p2\ninput %l: i32[5]\ninput %h0: f32[2, 5, 20]\n"
        "input %c0: f32[2, 5, 20]\n%y: ?, %h: ?, %c: ? = LSTM(%x, %w, %r, %b, %l, %h0, %c0) "
        "{hidden_size = 20, direction = \"bidirectional\"}\noutput %y\noutput %h\noutput %c",
        "input %x: f32[7, 5, 12]\nparam %w: f32[1, 51, 12] = p0\nparam %r: f32[1, 51, 17] = p1\n"
        "param %b: f32[1, 102] = p2\ninput %l: i64[5]\ninput %h0: f32[1, 5, 17]\n"
        "%y: ?, %h: ? = GRU(%x, %w, %r, %b, %l, %h0) {hidden_size = 17, direction = \"reverse\"}\n"
        "output %y\noutput %h",
        "input %x: f32[7, 5, 12]\nparam %w: f32[1, 5, 12] = p0\nparam %r: f32[1, 5, 5] = p1\n"
        "param %b: f32[1, 10] = p2\ninput %l: i64[5]\n"
        "%y: ?, %h: ? = RNN(%x, %w, %r, %b, %l) {hidden_size = 5}\noutput %h"}) {
    SCOPED_TRACE(text);
    NodeRun run(text);
    const DType dtype = run.inputs[4]->dtype();
    const auto lengths = [&](const std::vector<int64_t>& values) {
      if (dtype == DType::kInt64) return Tensor::FromVector(dtype, {5}, values);
      return Tensor::FromVector(dtype, {5}, std::vector<int32_t>(values.begin(), values.end()));
    };
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const auto agree = [&](const std::vector<Tensor>& got) {
      const std::vector<Tensor> expected = run.Reference();
      for (size_t i = 0; i < expected.size(); ++i) {
        if (run.graph.IsOutput(run.node().outputs[i])) ExpectClose(got[i], expected[i]);
      }
    };
    for (const std::vector<int64_t>& values :
         {std::vector<int64_t>{7, 3, 0, 5, 1}, {2, 2, 6, 1, 0}, {0, 0, 0, 0, 0}}) {
      run.inputs[4] = lengths(values);
      for (const int parts : {1, 2, 7}) agree(run.RunOption(device_, options[0], parts));
      EXPECT_THAT(run.errors.errors, IsEmpty());
    }
    // One that is none is reported and read as 0.
    run.inputs[4] = lengths({7, 8, 4, -1, 2});
    const std::vector<Tensor> got = run.RunOption(device_, options[0], 2);
    ASSERT_EQ(run.errors.errors.size(), 2u);
    EXPECT_EQ(run.errors.errors[0].operand, 4);
    EXPECT_EQ(run.errors.errors[0].value, 8);
    EXPECT_EQ(run.errors.errors[1].value, -1);
    run.inputs[4] = lengths({7, 0, 4, 0, 2});
    agree(got);
  }
}

TEST_P(CpuDeviceTest, RowsWithoutARequestAreLeftAlone) {
  for (const char* text :
       {"input %x: f32[4, 9, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, "
        "%w)\noutput %y",
        "input %x: f32[4, 2, 9, 20]\ninput %w: f32[2, 20, 50]\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: u8[4, 9, 20]\nparam %w: i8[20, 50] = p0\ninput %s: f32[4, 9, 1]\n"
        "input %t: f32[50]\n%y: ? = reprise.IntegerLinear(%x, %w, %s, %t)\noutput %y",
        "input %x: u8[4, 9, 20]\ninput %w: i8[20, 50]\ninput %s: f32[]\ninput %t: f32[50]\n"
        "%y: ? = reprise.IntegerLinear(%x, %w, %s, %t)\noutput %y",
        "input %x: f32[4, 20, 96]\n%y: ? = reprise.Attention(%x) {num_heads = 4, packed_qkv = 1}"
        "\noutput %y",
        "input %x: f32[4, 5, 33]\nparam %g: f32[33] = p0\n%y: ? = LayerNormalization(%x, "
        "%g)\noutput %y",
        "param %t: f32[9, 40] = p0\ninput %i: i64[4, 7]\n%y: ? = reprise.EmbeddingSum(%t, "
        "%i)\noutput %y",
        "param %t: f32[9, 40] = p0\ninput %i: i64[4, 7]\n%y: ? = Gather(%t, %i)\noutput %y",
        "input %x: f32[4, 6, 9, 9]\nparam %w: f32[4, 3, 3, 3] = p0\nparam %b: f32[4] = p1\n"
        "%y: ? = Conv(%x, %w, %b) {group = 2}\noutput %y",
        "input %x: f32[4, 6, 9, 9]\nparam %w: f32[6, 1, 3, 3] = p0\ninput %r: f32[4, 6, 7, 7]\n"
        "%y: ? = reprise.Conv(%x, %w, _, %r) {group = 6}\noutput %y",
        "input %x: u8[4, 6, 9, 9]\nparam %w: i8[8, 6, 3, 3] = p0\ninput %s: f32[]\ninput %t: f32[]"
        "\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t)\noutput %y",
        "input %x: f32[4, 6, 9, 9]\n%y: ? = AveragePool(%x) {kernel_shape = [3, 2]}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Tanh(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 1, 8]\n%y: ? = Mul(%x, %z)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %l: f32[] = {0.5}\n%y: ? = Clip(%x, %l)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = LeakyRelu(%x) {alpha = 0.2}\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %e: f32[] = {2.0}\n%y: ? = Pow(%x, %e)\noutput %y",
        "input %x: i64[4, 3, 8]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = Softmax(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\n%y: ? = LogSoftmax(%x)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMax(%x, %a)\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %a: i64[1] = {1}\n%y: ? = ReduceSum(%x, %a)\noutput %y",
        "input %x: f32[4, 3, 8]\ninput %z: f32[4, 3, 5]\n%y: ? = Concat(%x, %z) {axis = "
        "2}\noutput %y",
        "input %x: f32[4, 3, 8]\nconst %b: i64[1] = {1}\nconst %e: i64[1] = {7}\nconst %a: "
        "i64[1] = {2}\n%y: ? = Slice(%x, %b, %e, %a)\noutput %y"}) {
    SCOPED_TRACE(text);
    NodeRun run(text);
    run.graph.value(run.node().outputs[0]).batch_rows = 4;
    const KernelOption option = device_.Options(run.graph, run.id).at(0);
    EXPECT_TRUE(option.takes_live_rows);
    const std::vector<double> expected = run.Reference()[0].ToDoubles();
    const Tensor result = run.RunOption(device_, option, 3, false, /*live_rows=*/3)[0];
    const std::vector<double> got = result.ToDoubles();
    uint32_t untouched;
    std::memset(&untouched, 0x5a, sizeof(untouched));
    for (size_t i = 0; i < got.size(); ++i) {
      if (i < got.size() / 4 * 3) {
        ASSERT_NEAR(got[i], expected[i], 1e-4) << "element " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(result.span<float>()[i]), untouched) << "element " << i;
      }
    }
  }
}

TEST(RoundingAttentionTest, IsTheSameInASegmentAndAloneInAnyNumberOfParts) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
    if (isa > DetectIsa()) continue;
    SCOPED_TRACE(IsaName(isa));
    CpuDevice device(isa);
    const std::string attributes =
        "{num_heads = 2, packed_qkv = 1, scale = 0.2, precision = \"bf16\"}\noutput %y";
    NodeRun packed(
        "input %x: f32[170, 120]\nconst %s: i32[4] = {0, 19, 20, 170}\n"
        "%y: ? = reprise.SegmentAttention(%x, _, _, _, _, %s) " +
        attributes);
    const KernelOption option = device.Options(packed.graph, packed.id).at(0);
    EXPECT_EQ(option.kernel, isa >= Isa::kAvx512Bf16
                                 ? "segment_attention_bf16_" + std::string(IsaName(isa))
                                 : "segment_attention_" + std::string(IsaName(isa)));
    const Tensor got = packed.RunOption(device, option, 1)[0];
    for (int parts : {2, 5, 40}) {
      const Tensor divided = packed.RunOption(device, option, parts)[0];
      EXPECT_EQ(std::memcmp(divided.data(), got.data(), got.bytes()), 0) << parts << " parts";
    }
    for (const auto& [begin, end] : {std::pair{0, 19}, {19, 20}, {20, 170}}) {
      SCOPED_TRACE(testing::Message() << "tokens from " << begin << " to " << end);
      NodeRun alone("input %x: f32[1, " + std::to_string(end - begin) +
                    ", 120]\n%y: ? = reprise.Attention(%x) " + attributes);
      const float* tokens = packed.inputs[0]->span<float>().data();
      alone.inputs[0] =
          Tensor::FromVector<float>(DType::kFloat32, {1, end - begin, 120},
                                    std::vector<float>(tokens + begin * 120, tokens + end * 120));
      const Tensor expected =
          alone.RunOption(device, device.Options(alone.graph, alone.id).at(0), 3)[0];
      EXPECT_EQ(
          std::memcmp(expected.data(), got.span<float>().data() + begin * 40, expected.bytes()), 0);
      // The reference does not round.
      const std::vector<double> exact = alone.Reference()[0].ToDoubles();
      const std::vector<double> rounded = expected.ToDoubles();
      double largest = 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        largest = std::max(largest, std::abs(exact[i] - rounded[i]));
      }
      EXPECT_LT(largest, 0.05);
      EXPECT_EQ(largest > 1e-4, isa >= Isa::kAvx512Bf16);
    }
  }
}

TEST_P(CpuDeviceTest, PartsOfAConvolutionDivideItsMapsAndChangeNoBit) {
  NodeRun run(
      "input %x: f32[1, 64, 7, 7]\nparam %w: f32[128, 64, 3, 3] = p0\n"
      "%y: ? = Conv(%x, %w) {pads = [1, 1, 1, 1]}\noutput %y");
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  const Tensor whole = run.RunOption(device_, option, 1)[0];
  for (int parts : {2, 3, 16}) {
    const Tensor divided = run.RunOption(device_, option, parts)[0];
    EXPECT_EQ(std::memcmp(divided.data(), whole.data(), whole.bytes()), 0) << parts << " parts";
  }
  // What one part of two writes is neither nothing nor all.
  const Tensor half = run.RunOption(device_, option, 2, false, 0, /*only_part=*/1)[0];
  EXPECT_NE(std::memcmp(half.data(), whole.data(), whole.bytes() / 4), 0);
  EXPECT_EQ(std::memcmp(half.span<float>().data() + half.span<float>().size() / 4 * 3,
                        whole.span<float>().data() + whole.span<float>().size() / 4 * 3,
                        whole.bytes() / 4),
            0);
}

TEST_P(CpuDeviceTest, WorkspaceOfAConvolutionFitsItsWork) {
  const CpuDevice device({.max_isa = GetParam(), .max_threads = 16});
  const auto workspace = [&](const char* text) {
    const NodeRun run(text);
    return device.Options(run.graph, run.id).at(0).workspace_bytes;
  };
  // One tile of maps: one part's panel, and the three rows that each channel's window sees.
  EXPECT_LE(workspace("input %x: f32[1, 64, 3, 3]\nparam %w: f32[4, 64, 3, 3] = p0\n"
                      "%y: ? = Conv(%x, %w)\noutput %y"),
            size_t{64 * (9 * 48 + 4 * 16) * sizeof(float)});
  // A copy is not as deep as the sums are.
  EXPECT_LE(workspace("input %x: f32[1, 1024, 14, 14]\nparam %w: f32[4, 1024, 7, 7] = p0\n"
                      "%y: ? = Conv(%x, %w) {pads = [3, 3, 3, 3]}\noutput %y"),
            size_t{12} << 20);
}

TEST_P(CpuDeviceTest, SumsBehindTheLastSegmentAreZero) {
  NodeRun run(
      "input %x: i64[41]\nconst %s: i32[4] = {0, 7, 7, 30}\n%y: ? = reprise.SegmentCumSum(%x, "
      "%s)\noutput %y");
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  const Tensor expected = run.Reference()[0];
  for (int parts : {1, 3, 7}) {
    const Tensor result = run.RunOption(device_, option, parts)[0];
    for (int64_t i = 0; i < 41; ++i) {
      EXPECT_EQ(result.span<int64_t>()[i], i < 30 ? expected.span<int64_t>()[i] : 0) << i;
    }
  }
}

TEST_P(CpuDeviceTest, NodesWithoutFastKernelsHaveNoOptions) {
  for (const char* text :
       {"input %x: i32[4, 3]\nparam %w: i32[3, 100] = p0\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: f32[4, 3, 17]\n%y: ? = Softmax(%x) {axis = 1}\noutput %y",
        "input %x: f32[4, 3, 17]\nconst %a: i64[2] = {0, 2}\n%y: ? = ReduceSum(%x, %a)\noutput %y",
        "input %x: f32[1, 2, 4, 4, 4]\n%y: ? = MaxPool(%x) {kernel_shape = [2, 2, 2]}\noutput %y",
        "input %x: f32[4]\n%y: ? = Hardmax(%x)\noutput %y"}) {
    NodeRun run(text);
    EXPECT_THAT(device_.Options(run.graph, run.id), IsEmpty()) << text;
  }
}

TEST_P(CpuDeviceTest, WeightsArePackedOnceForTheDevicesOwnTier) {
  const CpuDevice device({.max_isa = GetParam(), .gemm_provider = GemmProvider::kOwn});
  NodeRun run(kNodes[0]);
  const std::vector<KernelOption> options = device.Options(run.graph, run.id);
  ASSERT_EQ(options[0].prepare.size(), 1u);
  const PrepareStep& step = options[0].prepare[0];
  Attributes other = step.attributes;
  other.Set("panel", other.Int("panel", 0) + 1);
  const std::optional<Tensor> weights[] = {run.inputs[1]};
  EXPECT_TRUE(device.Prepare(step.op, step.attributes, weights).ok());
  EXPECT_THAT(device.Prepare(step.op, other, weights).status().ToString(), HasSubstr("columns"));
}

TEST_P(CpuDeviceTest, ScratchIsThatOfTheThreadsOfAReplayAndMoreGiveTheSameAnswer) {
  const CpuDevice one(
      {.max_isa = GetParam(), .gemm_provider = GemmProvider::kOwn, .max_threads = 1});
  const CpuDevice three(
      {.max_isa = GetParam(), .gemm_provider = GemmProvider::kOwn, .max_threads = 3});
  for (const char* text :
       {"input %x: f32[4, 150, 64]\ninput %w: f32[4, 64, 150]\n%y: ? = MatMul(%x, %w)\noutput %y",
        "input %x: f32[150, 300]\nparam %w: f32[300, 70] = p0\n%y: ? = reprise.Linear(%x, "
        "%w)\noutput %y"}) {
    NodeRun run(text);
    const std::vector<KernelOption> options = one.Options(run.graph, run.id);
    const std::vector<KernelOption> wider = three.Options(run.graph, run.id);
    ASSERT_EQ(options.size(), wider.size());
    for (size_t i = 0; i < options.size(); ++i) {
      EXPECT_EQ(3 * options[i].workspace_bytes, wider[i].workspace_bytes) << options[i].kernel;
      const std::vector<Tensor> alone = run.RunOption(one, options[i], 1);
      EXPECT_EQ(run.RunOption(one, options[i], 5)[0], alone[0]) << options[i].kernel;
    }
  }
}

TEST_P(CpuDeviceTest, UnknownKernelIsRefusedByName) {
  NodeRun run(kNodes[0]);
  KernelOption option;
  option.kernel = "no_such_kernel";
  EXPECT_THAT(device_.Bind(run.graph, run.id, option).status().ToString(),
              HasSubstr("no_such_kernel"));
}

TEST(CpuDeviceFingerprintTest, DiffersByTier) {
  std::set<std::string> fingerprints;
  for (Isa isa : cpu::TestedTiers()) fingerprints.insert(CpuDevice(isa).fingerprint());
  EXPECT_EQ(fingerprints.size(), cpu::TestedTiers().size());
}

INSTANTIATE_TEST_SUITE_P(Tiers, CpuDeviceTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise
