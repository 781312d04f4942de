// Packed tokens.
#pragma once

namespace reprise {

inline constexpr const char* kSegments[] = {
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
    // One query of each segment, of more tokens than a block of keys; bias rows by its place.
    "input %q: f32[5, 96]\ninput %k: f32[41, 96]\ninput %v: f32[41, 64]\nconst %s: i32[6] = {0, "
    "7, 7, 8, 30, 41}\nconst %p: i64[5] = {0, 0, 0, 21, 4}\n%y: ? = reprise.SegmentAttention(%q, "
    "%k, %v, _, _, %s, %p) {num_heads = 4, scale = 0.35, longest = 22}\noutput %y",
    "input %q: f32[3, 96]\ninput %k: f32[270, 96]\ninput %v: f32[270, 96]\ninput %m: f32[270]\n"
    "param %b: f32[2, 130, 130] = p0\nconst %s: i32[4] = {0, 120, 150, 270}\nconst %p: i64[3] = "
    "{119, 0, 57}\n%y: ? = reprise.SegmentAttention(%q, %k, %v, %m, %b, %s, %p) {num_heads = 2, "
    "scale = 0.2, longest = 125, lowest = 0.25}\noutput %y",
    "input %q: f32[3, 64]\ninput %k: f32[60, 64]\ninput %v: f32[60, 64]\ninput %m: bool[60]\n"
    "param %b: f32[1, 64, 64] = p0\nconst %s: i32[4] = {0, 19, 60, 60}\nconst %p: i64[3] = {18, "
    "40, 7}\n%y: ? = reprise.SegmentAttention(%q, %k, %v, %m, %b, %s, %p) {num_heads = 1, longest "
    "= 50}\noutput %y",
    // Attention by distance, over packed tokens and over rows.
    "input %x: f32[60, 48]\ninput %m: f32[60]\nparam %t: f32[4, 12, 9] = p0\nconst %p: i64[5] = "
    "{7, 2, 3, 4, 1}\nconst %s: i32[4] = {0, 45, 46, 60}\n%y: ? = reprise.RelativeAttention(%x, "
    "%x, %x, %m, %m, %t, %p, %t, %p, %s) {num_heads = 4, scale = 0.3, longest = 45}\noutput %y",
    // One query of each segment, of which one is empty.
    "input %q: f32[4, 48]\ninput %k: f32[60, 48]\ninput %v: f32[60, 32]\ninput %m: f32[60]\ninput "
    "%n: f32[4]\nparam %t: f32[4, 12, 9] = p0\nconst %d: i64[5] = {7, 2, 3, 4, 1}\nconst %s: "
    "i32[5] "
    "= {0, 45, 45, 46, 60}\nconst %p: i64[4] = {31, 0, 0, 13}\n%y: ? = "
    "reprise.RelativeAttention(%q, "
    "%k, %v, %m, %n, %t, %d, %t, %d, %s, %p) {num_heads = 4, scale = 0.3, longest = 45}\noutput %y",
    "input %x: f32[5, 19, 48]\ninput %m: f32[5, 1, 1, 19]\nparam %t: f32[4, 12, 9] = p0\nconst %p: "
    "i64[5] = {7, 2, 3, 4, 1}\n%y: ? = reprise.RelativeAttention(%x, %x, %x, %m, _, %t, %p, %t, "
    "%p) "
    "{num_heads = 4, scale = 0.3}\noutput %y",
    "input %x: f32[41, 200]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"sum\"}\noutput %y",
    "input %x: f32[41, 3, 5]\nconst %s: i32[4] = {0, 40, 41, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"mean\"}\noutput %y",
    "input %x: i64[41, 3]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"first\"}\noutput %y",
    "input %x: f32[41, 7]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"last\"}\noutput %y",
    "input %x: bool[41, 7]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"first\"}\noutput %y",
    "input %x: f32[41, 200]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"max\"}\noutput %y",
    "input %x: f32[41, 67]\nconst %s: i32[4] = {0, 1, 40, 41}\n%y: ? = "
    "reprise.SegmentReduce(%x, %s) {reduction = \"min\"}\noutput %y",
    "input %x: f32[41, 3]\nconst %s: i32[6] = {0, 7, 7, 8, 30, 41}\n%y: ? = "
    "reprise.SegmentPlace(%x, %s)\noutput %y",
    "input %x: i64[41]\nconst %s: i32[4] = {0, 40, 41, 41}\n%y: ? = "
    "reprise.SegmentPlace(%x, %s) {largest = 0, select_last_index = 1}\noutput %y",
    "input %x: i32[41, 2]\nconst %s: i32[4] = {0, 40, 41, 41}\n%y: ? = "
    "reprise.SegmentPlace(%x, %s) {select_last_index = 1}\noutput %y",
    "input %x: f32[41, 37]\nconst %i: i64[5] = {6, 9, -1, 0, -11}\nconst %s: i32[6] = {0, 7, 7, "
    "8, 30, 41}\n%y: ? = reprise.SegmentPick(%x, %i, %s)\noutput %y",
    "input %x: bool[41, 3, 5]\nconst %i: i64[3, 2] = {39, -40, 0, -1, 5, 6}\nconst %s: i32[4] = "
    "{0, "
    "40, 41, 41}\n%y: ? = reprise.SegmentPick(%x, %i, %s)\noutput %y",
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

}  // namespace reprise
