// OpFacts: the facts about an op for batching, packing, padding and folding, as columns of its row.
//
// A fact that is left out is always right, and may be slow: nothing is known then. Passes, certify,
// recipe and the importer interpret the facts; none of them lists ops by name. `reprise check
// --ops` prints the matrix of ops by facts and the gaps in it.
//
// The facts stand in the row of the op (op_table.cc), and in a header of their own, so that code
// that only runs ops need not be compiled again when a fact is added.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_rules.h"

namespace reprise {

// Facts that hold or do not.
enum OpMark : uint32_t {
  kComparison = 1u << 0,      // compares two numbers
  kHangsOnLastBit = 1u << 1,  // a small change of operands may change its answer
  kBends = 1u << 2,           // turns a straight line into steps, corners or waves
  kStaysInPlace = 1u << 3,    // elements stay where they are in the rows of operands
  kTakesSizes = 1u << 4,      // operands that decide its shape are shapes, or count repeats
  kLooksUp = 1u << 5,         // an operand after the first chooses rows
  kShapeOfFirst = 1u << 6,    // results have the shape of operand 0, which is no broadcast
  kKnowsRows = 1u << 7,       // the number of rows is in an operand, or in its errors
  kMovesBytes = 1u << 8,      // moves bytes instead of the floats that they stand for
  kReduces = 1u << 9,         // elements act only as the sum, the largest or a similar reduction
  kMultipliesWeights = 1u << 10,
  kQuantises = 1u << 11,  // each element by itself and by its scale
  kOfSegments =
      1u << 12,        // reads packed tokens by their segments, and no tokens that no request has
  kLight = 1u << 13,   // few steps an element, worth no recipe of their own
  kHeavy = 1u << 14,   // many steps an element
  kCoarse = 1u << 15,  // makes equal results of some operands that differ
};

// Tells which places of the operands of a node each place of its result is made of. See
// ops/maps/index_map.h.
class MapContext;
using MapRule = void (*)(MapContext&);

struct OpFacts {
  MapRule map = nullptr;  // elementwise ops and views need none
  Elements elements = Elements::kMade;
  Sign sign = Sign::kUnknown;
  Positive positive = Positive::kUnknown;
  Overflow overflow = Overflow::kNever;
  Sizes sizes = Sizes::kUnknown;
  Growth growth = Growth::kUnknown;
  PackRule packing = PackRule::kNone;
  Rounding rounding = Rounding::kNone;
  Border border = Border::kNone;
  int8_t axis = 0;        // the value of attribute `axis` where it is left out
  uint32_t choosers = 0;  // bit i: operand i says which elements are taken, and is none of them
  uint32_t text = 0;      // bit i: operand i may be text, besides the operands that results are
                          // made of
  uint32_t weights = 0;   // bit i: operand i is a weight, whose numbers no pass reads
  uint32_t marks = 0;     // OpMark
  absl::string_view of_segment;  // the reduction of SegmentReduce that does the same to tokens
  // The op, or the first of the ops, that passes make of it where it is worth it: that one's facts
  // fill its own gaps.
  absl::string_view becomes;

  bool Is(OpMark mark) const { return (marks & mark) != 0; }
  bool Chooses(size_t i) const { return i < 32 && ((choosers >> i) & 1) != 0; }
  bool IsWeight(size_t i) const { return i < 32 && ((weights >> i) & 1) != 0; }
  // Returns whether its windows slide over the dims of operand 0 after batch and channel.
  bool SlidesWindows() const {
    return border >= Border::kWindow && border <= Border::kLargestWindow;
  }
  // Returns whether results hold elements of operand 0 and no others.
  bool HoldsFirst() const { return elements >= Elements::kSame && elements <= Elements::kPart; }
  // Returns whether results hold elements of operands, for any values of the elements.
  bool OnlyMoves() const { return HoldsFirst() || elements == Elements::kJoined; }
  bool HoldsAllOfFirst() const {
    return elements >= Elements::kSame && elements <= Elements::kMoved;
  }
};

// Return the facts of a row of the table, or of an op by name; nothing known where it has no row.
const OpFacts& FactsOf(const OpRow& row);
const OpFacts& FactsOf(absl::string_view op);

// A row with its facts, as op_table.cc lists them.
struct OpEntry {
  OpRow row;
  OpFacts facts = {};
};

}  // namespace reprise
