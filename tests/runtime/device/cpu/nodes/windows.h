// Convolutions of floats and of bytes, pooling and the nodes between them.
#pragma once

namespace reprise {

inline constexpr const char* kWindows[] = {
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
    // The same nodes with channels last, as floats and as bytes.
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
    // Nodes between convolutions of bytes.
    "input %x: u8[2, 7, 9, 5]\ninput %w: i8[2, 7, 9, 5]\ninput %s: f32[]\ninput %t: f32[]\n"
    "const %u: f32[] = {0.75}\ninput %p: u8[]\ninput %q: i8[]\ninput %v: i8[]\n%y: ? = "
    "reprise.IntegerAdd(%x, %w, %s, %t, %u, %p, %q, %v)\noutput %y",
    "input %x: i8[3, 67]\ninput %w: u8[3, 67]\ninput %s: f32[]\ninput %t: f32[]\n"
    "const %u: f32[] = {5.0}\ninput %p: i8[]\ninput %q: u8[]\ninput %v: u8[]\n%y: ? = "
    "reprise.IntegerAdd(%x, %w, %s, %t, %u, %p, %q, %v) {activation = \"relu\"}\noutput %y",
    "input %x: i8[3, 7, 131]\ninput %t: u8[256]\n%y: ? = reprise.ByteTable(%x, %t)\noutput %y",
    "input %x: u8[2, 1, 13, 12, 70]\n%y: ? = MaxPool(%x) {kernel_shape = [3, 3, 1], strides = [2, "
    "2, "
    "1], pads = [1, 1, 0, 1, 1, 0]}\noutput %y",
    "input %x: i8[1, 2, 9, 7, 33]\n%y: ? = MaxPool(%x) {kernel_shape = [2, 3, 1], dilations = [2, "
    "1, "
    "1], ceil_mode = 1, strides = [1, 2, 1]}\noutput %y",
};

}  // namespace reprise
