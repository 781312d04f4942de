// Nodes that move, fill in or gather elements.
#pragma once

namespace reprise {

inline constexpr const char* kMovement[] = {
    // Gathering. Random indices lie in [-4, 4].
    "param %t: f32[9, 40] = p0\ninput %i: i64[2, 7]\n%y: ? = Gather(%t, %i)\noutput %y",
    "input %x: f32[2, 5, 12]\nconst %i: i64[] = {0}\n%y: ? = Gather(%x, %i) {axis = 1}\noutput %y",
    "input %x: i64[2, 5, 3]\ninput %i: i32[2, 2]\n%y: ? = Gather(%x, %i) {axis = 1}\noutput %y",
    // Runs of neighbours, whole rows and pieces of a few bytes; none.
    "input %x: f32[5, 30]\nconst %i: i64[11] = {3, 4, 5, 6, 7, -3, -2, -1, 0, 1, 2}\n%y: ? = "
    "Gather(%x, %i) {axis = 1}\noutput %y",
    "input %x: f32[2, 4, 9, 7]\nconst %i: i32[2, 4] = {1, 2, 3, 4, 5, 6, 7, 8}\n%y: ? = "
    "Gather(%x, %i) {axis = 2}\noutput %y",
    "input %x: bool[6, 12]\nconst %i: i64[7] = {4, 5, 6, 9, 10, 11, 11}\n%y: ? = "
    "Gather(%x, %i) {axis = 1}\noutput %y",
    "input %x: f32[5, 30]\nconst %i: i64[4] = {29, 7, 3, 1}\n%y: ? = Gather(%x, %i) {axis = 1}\n"
    "output %y",
    "param %t: f32[9, 40] = p0\ninput %i: i64[3, 7]\nparam %p: f32[7, 40] = p1\ninput %j: i32[1, "
    "7]\n"
    "param %s: f32[5, 40] = p2\ninput %k: i64[3, 1]\n"
    "%y: ? = reprise.EmbeddingSum(%t, %i, %p, %j, %s, %k)\noutput %y",
    // Rows appended to a cache, with room to spare or none.
    "input %p: f32[2, 3, 5, 4]\ninput %r: f32[2, 3, 2, 4]\nconst %a: i64[2] = {5, 1}\n"
    "const %l: i64[1] = {7}\n%y: ? = reprise.AppendRows(%p, %r, %a, %l)\noutput %y",
    "input %p: f16[3, 2, 9, 5]\ninput %r: f16[3, 2, 1, 5]\nconst %a: i64[3] = {0, 8, 3}\n"
    "const %l: i64[1] = {4}\n%y: ? = reprise.AppendRows(%p, %r, %a, %l)\noutput %y",
    "input %p: f32[1, 3, 0, 4]\ninput %r: f32[1, 3, 6, 4]\nconst %a: i64[1] = {0}\n"
    "const %l: i64[1] = {6}\n%y: ? = reprise.AppendRows(%p, %r, %a, %l)\noutput %y",
    // A rank's share of a sum and of columns, without the other ranks.
    "input %x: f32[3, 5]\n%y: ? = reprise.AllReduce(%x)\noutput %y",
    "input %x: f32[2, 3, 5]\n%y: ? = reprise.AllGather(%x) {rank = 1, widths = [4, 5, 1]}\n"
    "output %y",
    "input %x: f32[3, 5]\n%y: ? = reprise.Broadcast(%x) {rank = 1, root = 1, sizes = [5]}\noutput "
    "%y",
    "input %x: i64[3]\n%y: ? = reprise.Broadcast(%x) {rank = 0, root = 1, sizes = [2, 7]}\n"
    "output %y",
    // The ends of rows of a padded batch.
    "input %x: f32[2, 3, 11]\nconst %e: i32[2] = {4, 11}\n"
    "%y: ? = reprise.LiveFill(%x, %e) {axis = 2, value = 2.5}\noutput %y",
    "input %x: f32[4, 5, 6, 7]\nconst %e: i32[2] = {-1, 99}\n"
    "%y: ? = reprise.LiveFill(%x, %e) {axis = 1}\noutput %y",
    "input %l: bool[3, 5]\n"
    "const %a: i64[1] = {7}\n"
    "%y: ? = reprise.LiveExtent(%l, %a) {offset = -2, stride = 2}\noutput %y",
    "input %e: i32[3]\nconst %s: i64[1] = {9}\n"
    "%y: ? = reprise.LiveMask(%e, %s) {rank = 4, value = -inf}\noutput %y",
    "input %e: i32[3]\nconst %s: i64[1] = {9}\n"
    "%y: ? = reprise.LiveShare(%e, %s) {axis = 2, begin = 1, end = 1, kernel = 3, more = 1, "
    "rank = 4, stride = 2}\noutput %y",
    "input %e: i32[3]\nconst %s: i64[1] = {9}\n"
    "%y: ? = reprise.LiveShare(%e, %s) {axis = 3, begin = 2, counts_pads = 1, dilation = 2, "
    "end = 1, kernel = 3, more = 2, rank = 4, stride = 3}\noutput %y",
    "input %x: f32[2, 3, 26]\nconst %s: i64[4] = {4, 5, 2, 3}\nconst %h: i32[2] = {4, 2}\n"
    "const %w: i32[2] = {5, 3}\nconst %v: i32[2] = {2, 9}\n"
    "%y: ? = reprise.LiveCompact(%x, %s, %h, %w, %v) {axis = 2, extents = [0, 1, -1, 2], "
    "ranks = [2, 2]}\noutput %y",
    "input %x: i64[4, 18, 2]\nconst %s: i64[3] = {3, 2, 3}\nconst %h: i32[2] = {1, 0}\n"
    "%y: ? = reprise.LiveCompact(%x, %s, %h) {axis = 1, extents = [-1, 0, -1], ranks = [3]}\n"
    "output %y",
    // Movement.
    "input %x: f32[2, 5, 3, 8]\n%y: ? = Transpose(%x) {perm = [0, 2, 1, 3]}\noutput %y",
    "input %x: f32[2, 5, 3, 40]\n%y: ? = Transpose(%x) {perm = [0, 2, 3, 1]}\noutput %y",
    "input %x: u8[2, 72, 3, 7]\n%y: ? = Transpose(%x) {perm = [0, 2, 3, 1]}\noutput %y",
    "input %x: i8[2, 9, 15, 65]\n%y: ? = Transpose(%x) {perm = [0, 3, 1, 2]}\noutput %y",
    "input %x: u8[16, 131]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: u8[3, 17, 2, 49]\n%y: ? = Transpose(%x) {perm = [2, 3, 0, 1]}\noutput %y",
    "input %x: bool[15, 40]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: f64[19, 40]\n%y: ? = Transpose(%x)\noutput %y",
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
    // A few planes, taken apart and put together.
    "input %x: f32[2, 17, 19, 3]\n%y: ? = Transpose(%x) {perm = [0, 3, 1, 2]}\noutput %y",
    "input %x: f32[90, 80, 4]\n%y: ? = Transpose(%x) {perm = [2, 0, 1]}\noutput %y",
    "input %x: f32[67, 2]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: u8[2, 17, 19, 3]\n%y: ? = Transpose(%x) {perm = [0, 3, 1, 2]}\noutput %y",
    "input %x: i64[3, 41, 2]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
    "input %x: f16[5, 77, 4]\n%y: ? = Transpose(%x) {perm = [2, 0, 1]}\noutput %y",
    "input %x: f32[2, 3, 17, 19]\n%y: ? = Transpose(%x) {perm = [0, 2, 3, 1]}\noutput %y",
    "input %x: f32[4, 90, 80]\n%y: ? = Transpose(%x) {perm = [1, 2, 0]}\noutput %y",
    "input %x: u8[2, 4, 17, 19]\n%y: ? = Transpose(%x) {perm = [0, 2, 3, 1]}\noutput %y",
    "input %x: bool[3, 2, 67]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
    "input %x: f64[3, 35]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: f32[2, 8, 5, 40]\n%y: ? = DepthToSpace(%x) {blocksize = 2, mode = \"CRD\"}\noutput "
    "%y",
    "input %x: u8[2, 3, 8, 66]\n%y: ? = SpaceToDepth(%x) {blocksize = 2}\noutput %y",
    // Nothing at all, and planes shorter than a vector.
    "input %x: f32[0, 8]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: f32[2, 12, 0, 64]\n%y: ? = Transpose(%x) {perm = [0, 1, 3, 2]}\noutput %y",
    "input %x: i64[5, 0, 3]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
    "input %x: f32[50, 2, 2]\n%y: ? = Transpose(%x) {perm = [0, 2, 1]}\noutput %y",
    "input %x: f32[3, 7000]\n%y: ? = Transpose(%x)\noutput %y",
    "input %x: u8[5000, 2]\n%y: ? = Transpose(%x)\noutput %y",
    // Pieces of a few bytes.
    "input %a: f32[300, 1]\ninput %b: f32[300, 2]\ninput %c: f32[300, 3]\ninput %d: f32[300, 4]\n"
    "%y: ? = Concat(%a, %b, %c, %d) {axis = 1}\noutput %y",
    "input %a: u8[300, 1]\ninput %b: u8[300, 2]\ninput %c: u8[300, 70]\n"
    "%y: ? = Concat(%a, %b, %c) {axis = 1}\noutput %y",
    "input %x: f32[300, 10]\nconst %s: i64[4] = {1, 2, 3, 4}\n%y: ?, %z: ?, %u: ?, %v: ? = "
    "Split(%x, %s) {axis = 1}\noutput %y\noutput %z\noutput %u\noutput %v",
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
    // Deformed windows: offsets around -1 to 1, of groups, with and without masks.
    "input %x: f32[2, 4, 7, 6]\ninput %o: f32[2, 36, 5, 8]\ninput %m: f32[2, 18, 5, 8]\n"
    "%y: ? = reprise.DeformColumns(%x, %o, %m) {kernel_shape = [3, 3], offset_group = 2, pads = "
    "[1, "
    "2, 1, 2], strides = [1, 1], dilations = [2, 1]}\noutput %y",
    "input %x: f32[1, 3, 1, 9]\ninput %o: f32[1, 4, 1, 4]\n%y: ? = reprise.DeformColumns(%x, %o) "
    "{kernel_shape = [1, 2], strides = [1, 2]}\noutput %y",
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
    "input %x: f32[30, 54]\nconst %k: i64[1] = {54}\n%v: ?, %i: ? = TopK(%x, %k)\noutput "
    "%v\noutput %i",
    "input %x: f32[3, 50, 7]\nconst %k: i64[1] = {9}\n%v: ?, %i: ? = TopK(%x, %k) {axis = 1, "
    "largest = 0}\noutput %v\noutput %i",
    "input %x: f32[2, 1000]\nconst %k: i64[1] = {1}\n_, %i: ? = TopK(%x, %k)\noutput %i",
    "input %x: f32[40, 37]\ninput %i: i64[300, 37]\ninput %u: f32[300, 37]\n%y: ? = "
    "ScatterElements(%x, %i, %u) {axis = 0, reduction = \"add\"}\noutput %y",
    "input %x: f32[3, 5, 6]\ninput %i: i32[2, 17, 6]\ninput %u: f32[2, 17, 6]\n%y: ? = "
    "ScatterElements(%x, %i, %u) {axis = 1, reduction = \"max\"}\noutput %y",
    "input %x: i64[5, 6]\ninput %i: i64[5, 20]\ninput %u: i64[5, 20]\n%y: ? = "
    "ScatterElements(%x, %i, %u) {axis = 1, reduction = \"mul\"}\noutput %y",
    "input %x: i32[5, 6]\ninput %i: i64[50, 2]\ninput %u: i32[50]\n%y: ? = "
    "ScatterND(%x, %i, %u) {reduction = \"min\"}\noutput %y",
    "input %x: f32[50, 700]\ninput %i: i64[90, 1]\ninput %u: f32[90, 700]\n%y: ? = "
    "ScatterND(%x, %i, %u) {reduction = \"add\"}\noutput %y",
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
};

}  // namespace reprise
