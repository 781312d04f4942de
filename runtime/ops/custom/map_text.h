// MapText: the index map of a registered op as a text, in the manner of Einsum's equation.
//
//   "bsh,h->bsh|h"    a letter for each dim of each input, then of the first output
//
// - A letter on both sides: place i of the output is made of place i of the inputs alone (sizes of
// 1
//   broadcast), wherever it lies and however many there are. Its size is the same everywhere.
// - A letter after the bar: its places meet though the output has them, as in a softmax over h.
// - A letter of inputs alone: its places meet, as in a sum. One of the output alone is new.
// - "..." at the beginning of a side's terms: any number of dims in front, which are parallel.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/maps/index_map.h"

namespace reprise {

class MapText {
 public:
  // INVALID_ARGUMENT, with the reason, for a text that is none.
  static absl::StatusOr<MapText> Parse(absl::string_view text);

  // Sets the map of a node; it is not known where its inputs have other ranks.
  void Apply(MapContext& context) const;
  // Gives the first output the sizes of inputs of the same letter, once the op's own rule
  // has set its shape. INVALID_ARGUMENT where they differ.
  absl::Status SetSizes(InferContext& context) const;

 private:
  struct Term {
    bool leads = false;  // "..." in front
    std::string letters;

    // Returns the letter of dim `dim` of `rank`; '.' for one in front.
    char At(int64_t dim, int64_t rank) const {
      const int64_t own = dim - (rank - std::ssize(letters));
      return own < 0 ? '.' : letters[static_cast<size_t>(own)];
    }
    bool Fits(int64_t rank) const {
      return leads ? rank >= std::ssize(letters) : rank == std::ssize(letters);
    }
  };
  static absl::StatusOr<Term> ParseTerm(absl::string_view text);
  // Returns the dim of the output for dim `dim` of input `i`; -1: none.
  int64_t DimOfOutput(size_t i, int64_t dim, int64_t rank, int64_t out_rank) const;
  bool Fits(size_t i, int64_t rank) const { return i < inputs_.size() && inputs_[i].Fits(rank); }

  std::vector<Term> inputs_;
  Term output_;
  std::string mixed_;
};

}  // namespace reprise
