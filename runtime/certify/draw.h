// Drawer: contents of a model's inputs for the probe, honest ones and hostile ones.
//
// Every draw is a function of its arguments alone, so that a case can be made again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/certify/numbers.h"
#include "runtime/certify/probe.h"

namespace reprise {

// The forms that a mask may have along an axis. Every one has a position that counts.
enum class MaskPattern { kOnes, kRagged, kHoles, kLeftPadded, kAlternating, kFirst, kNone };

// The contents of padding that is free, or of the row of a batch-mate.
enum class Hostile { kRandom, kHigh, kLow, kOne, kSmall, kSweep, kQuiet };
inline constexpr Hostile kAllHostile[] = {Hostile::kHigh, Hostile::kSmall, Hostile::kLow,
                                          Hostile::kRandom, Hostile::kOne};
absl::string_view HostileName(Hostile hostile);

using SymbolSizes = std::map<std::string, int64_t>;

class Drawer {
 public:
  // Borrows all arguments.
  Drawer(absl::Span<const ProbeInput> inputs, absl::Span<const InputRange> ranges,
         const ProbeOptions& options);

  size_t size() const { return inputs_.size(); }
  const std::string& name(size_t i) const { return inputs_[i].name; }
  // A size for every symbol: options.sizes, else 2 for the batch axis and 5 for others.
  const SymbolSizes& base_sizes() const { return base_sizes_; }

  // RESOURCE_EXHAUSTED where the inputs together are too large to be drawn.
  absl::StatusOr<Shape> ShapeAt(size_t i, const SymbolSizes& sizes) const;
  // Returns the dims of input `i` that move with `axis`, at its shape under base_sizes().
  std::vector<size_t> MovingDims(size_t i, const std::string& axis) const;

  // Floats, bools, and integers without a limit may be masks; limited integers are ids.
  bool MaskLike(size_t i) const;
  bool IsFloat(size_t i) const { return IsFloating(inputs_[i].dtype); }
  double Fill(size_t i) const;

  struct Content {
    // Patterns of masks along `axis`, by row of the batch axis (row modulo the size), or by line
    // where the input has none.
    std::vector<MaskPattern> patterns = {MaskPattern::kOnes};
    bool float_masks = false;  // floats are masks rather than random numbers
    bool fill_ids = false;     // ids hold their fill value where masks do not count
    bool one_id = false;       // all ids of a row are one and the same
    bool counted_ids = false;  // ids hold their fill value nowhere else
    // Added to random floats, so that rows all below and all above the padding occur too.
    double float_shift = 0;
    // Floats of some magnitude between 1/256 and 1: near enough to 0 that what has bounds (a clip,
    // a hyperbolic tangent, 8 bits) reaches none of them, and tells apart what it is given.
    bool quiet = false;
    uint64_t seed = 0;
  };
  // Contents that a client might send.
  Numbers Draw(size_t i, const Shape& shape, const Content& content) const;
  Numbers DrawFill(size_t i, const Shape& shape) const;
  Numbers DrawHostile(size_t i, const Shape& shape, Hostile hostile, uint64_t seed) const;

 private:
  // Returns the elements of all inputs that are drawn.
  double ElementsAt(const SymbolSizes& sizes) const;
  // Returns the dim along which a mask has its pattern: that of the axis, else the last that is no
  // row.
  std::optional<size_t> MaskDim(size_t i, size_t rank, const std::vector<size_t>& rows) const;
  Numbers Constant(size_t i, const Shape& shape, double value) const;
  double DrawInteger(size_t i, std::mt19937_64& random) const;
  uint64_t Seed(size_t i, uint64_t seed) const;

  absl::Span<const ProbeInput> inputs_;
  absl::Span<const InputRange> ranges_;
  const ProbeOptions& options_;
  SymbolSizes base_sizes_;
};

// Every symbol of the inputs' dims, terms of expressions included, at `size`.
SymbolSizes AllSymbols(absl::Span<const ProbeInput> inputs, int64_t size);

}  // namespace reprise
