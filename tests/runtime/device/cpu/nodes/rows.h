// Nodes that work on rows: recurrent layers, attention, normalisations and reductions.
#pragma once

namespace reprise {

inline constexpr const char* kRows[] = {
    // Distances: tails of rows and columns, few and many.
    "input %x: f32[1, 40]\nparam %y: f32[40, 67] = p0\n%d: ? = reprise.Distances(%x, %y)\noutput "
    "%d",
    "input %x: f32[7, 5]\ninput %y: f32[5, 33]\n%d: ? = reprise.Distances(%x, %y) {power = "
    "1}\noutput %d",
    "input %x: f32[9, 6]\ninput %y: f32[6, 3]\n%d: ? = reprise.Distances(%x, %y) {power = "
    "3}\noutput %d",
    "input %x: f64[6, 4]\ninput %y: f64[4, 21]\n%d: ? = reprise.Distances(%x, %y)\noutput %d",
    "input %x: f64[2, 9]\ninput %y: f64[9, 1]\n%d: ? = reprise.Distances(%x, %y) {power = "
    "1}\noutput %d",
    "input %x: f64[5, 9]\ninput %y: f64[9, 130]\n%d: ? = reprise.Distances(%x, %y) {power = "
    "4}\noutput %d",
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
    // Head by head, and queries that are few.
    "input %q: f32[2, 1, 128]\ninput %k: f32[2, 4, 37, 32]\ninput %v: f32[2, 4, 37, 20]\n"
    "%y: ? = reprise.Attention(%q, %k, %v) {num_heads = 4, scale = 0.3, k_by_head = 1, v_by_head = "
    "1}\noutput %y",
    "input %q: f32[3, 3, 96]\ninput %k: f32[3, 2, 50, 16]\ninput %v: f32[3, 2, 50, 64]\n"
    "input %m: f32[3, 1, 3, 50]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 6, scale = "
    "0.3, k_by_head = 1, v_by_head = 1}\noutput %y",
    "input %q: f32[2, 20, 48]\ninput %k: f32[2, 3, 41, 16]\ninput %v: f32[2, 41, 72]\n"
    "input %m: bool[2, 1, 1, 41]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 3, scale "
    "= "
    "0.3, k_by_head = 1, nan_to_zero = 1}\noutput %y",
    "input %q: f32[2, 2, 33]\ninput %k: f32[2, 130, 33]\ninput %v: f32[2, 3, 130, 9]\n"
    "input %m: bool[2, 1, 2, 130]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 3, scale "
    "= "
    "0.3, v_by_head = 1, nan_to_zero = 1}\noutput %y",
    "input %q: f32[5, 4, 40]\ninput %k: f32[5, 7, 40]\ninput %v: f32[5, 7, 40]\n"
    "input %m: f32[7]\n%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 5, scale = "
    "0.3}\noutput %y",
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
    "input %x: f32[4, 3, 17]\n%y: ? = Softmax(%x) {axis = 1}\noutput %y",
    "input %x: f32[2, 5, 30, 40]\n%y: ? = Softmax(%x) {axis = 1}\noutput %y",
    "input %x: f32[30, 2]\n%y: ? = Softmax(%x) {axis = 0}\noutput %y",
    "input %x: f32[3, 9, 1]\n%y: ? = Softmax(%x) {axis = 1}\noutput %y",
    "input %x: f32[4, 3, 17]\n%y: ? = LogSoftmax(%x) {axis = 1}\noutput %y",
    "input %x: f32[2, 5, 30, 40]\n%y: ? = LogSoftmax(%x) {axis = 1}\noutput %y",
    // Halves.
    "input %x: f16[2, 5, 33]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
    "input %x: bf16[131]\n%y: ? = Cast(%x) {to = 1}\noutput %y",
    "input %x: f32[2, 5, 33]\n%y: ? = Cast(%x) {to = 10}\noutput %y",
    "input %x: f32[7, 40]\n%y: ? = Cast(%x) {to = 16}\noutput %y",
    "input %x: f16[7, 40]\n%y: ? = Cast(%x) {to = 16}\noutput %y",
    "input %x: f32[4, 3, 17]\n%y: ? = LogSoftmax(%x) {axis = -1}\noutput %y",
    "input %x: f32[5, 1]\n%y: ? = LogSoftmax(%x)\noutput %y",
    // Places.
    "input %x: f32[4, 3, 77]\n%y: ? = ArgMax(%x) {axis = 2}\noutput %y",
    "input %x: f32[4, 3, 77]\n%y: ? = ArgMin(%x) {axis = -1, keepdims = 0}\noutput %y",
    "input %x: f32[2, 21, 40, 41]\n%y: ? = ArgMax(%x) {axis = 1}\noutput %y",
    "input %x: f32[30, 2]\n%y: ? = ArgMin(%x)\noutput %y",
    "input %x: f32[4, 9, 1]\n%y: ? = ArgMax(%x) {axis = 1, select_last_index = 1}\noutput %y",
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
    "input %x: f32[3, 13, 2]\nconst %a: i64[1] = {2}\n%y: ? = ReduceProd(%x, %a)\noutput %y",
    "input %x: f32[3, 13, 3]\nconst %a: i64[1] = {2}\n%y: ? = ReduceL2(%x, %a)\noutput %y",
    "input %x: f32[3, 13, 4]\nconst %a: i64[1] = {2}\n%y: ? = ReduceMax(%x, %a)\noutput %y",
    "input %x: f32[3, 13, 7]\nconst %a: i64[1] = {2}\n%y: ? = ReduceMean(%x, %a)\noutput %y",
    "input %x: f32[0, 3]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMax(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 17]\nconst %a: i64[1] = {1}\n%y: ? = ReduceMean(%x, %a)\noutput %y",
    "input %x: f32[4, 3, 17]\nconst %a: i64[2] = {-1, 1}\n"
    "%y: ? = ReduceSum(%x, %a) {keepdims = 0}\noutput %y",
    "input %x: f32[4, 3, 17]\n%y: ? = ReduceSum(%x)\noutput %y",
};

}  // namespace reprise
