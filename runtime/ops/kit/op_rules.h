// The rules that a row of the op table may name. Each list is interpreted in one place: `Sign`,
// `Positive` and `Overflow` by ops/axis, `Sizes` by verify, `Growth` by passes/read, the others by
// passes. The first one of each holds where a row says nothing.
#pragma once

#include <cstdint>

namespace reprise {

// Whether results may be negative. Operands that choose, or that decide a shape, do not matter.
enum class Sign : uint8_t {
  kUnknown,
  kNeverNegative,
  kOfOperands,   // no result is negative where no operand is
  kOfProduct,    // the same, or where both operands are one value
  kOfPower,      // the same, or where the power is even
  kOfLargest,    // not where any operand is not negative
  kOfBounds,     // not where the lower bound, operand 1, is not negative
  kOfLogarithm,  // not where operand 0 is at least one
  kOfRemainder,  // the divisor's sign; with `fmod`, the dividend's
  kPlacesAlone,  // results after the first are indices
};

// Which operands being above zero makes every result above zero.
enum class Positive : uint8_t {
  kUnknown,
  kAlways,
  kOfFirst,  // operand 0
  kOfBound,  // operand 1, the lower bound
  kOfAny,    // any operand
  kOfAll,    // all of them, but for a condition
  kOfSum,    // any, where no other one is negative
};

// Which finite operands make something infinite, or NaN.
enum class Overflow : uint8_t {
  kNever,
  kAlways,       // some usual numbers
  kExponential,  // large ones
  kLogarithm,    // numbers near zero and below
  kRoot,         // negative ones
  kInverse,      // zero
  kQuotient,     // a divisor of zero
  kPower,        // large powers, zero and a negative power
};

// Where the elements of results come from, if the op looks at none of them.
enum class Elements : uint8_t {
  kMade,      // they are computed
  kSame,      // elements of operand 0, each once, in their order
  kRepeated,  // elements of operand 0, each at least once
  kMoved,     // elements of operand 0, each once, elsewhere
  kPart,      // some of operand 0
  kJoined,    // elements of all operands
  kChosen,    // operand 1 or 2, as operand 0 says
};

// How numbers that are made of sizes flow through the op, for verify/size_uses.
enum class Sizes : uint8_t {
  kUnknown,  // the op decides something by the size
  kOfShape,  // makes numbers of the shape of its operand
  kComparison,
  kChoice,  // as a condition says
  kConversion,
  kCount,    // counts from operand 0 by operand 2
  kFill,     // the same number everywhere
  kSum,      // straight lines stay straight
  kProduct,  // straight where the lines lie along different axes
  kReduceSum,
  kReduceProduct,
  kCopy,     // every element of operand 0
  kView,     // them, under another shape
  kLookup,   // elements at the indices in operand 1
  kCut,      // elements between bounds
  kJoin,     // elements of all operands
  kExtreme,  // the smaller or the larger of two
  kBounded,  // no less than operand 1, no more than operand 2
  kQuotient,
  kRemainder,
  kRounding,
  kMagnitude,
  kSmooth,  // a straight line becomes a curve without a step
};

// The way in which an op keeps values that no size decides, where their number follows the size.
enum class Growth : uint8_t {
  kUnknown,
  kKeepsPlaces,  // elements at the first places stay there
  kReduces,
  kProduct,  // multiplies operands 0 and 1
  kContraction,
  kResizes,
  kCumulates,
  kFindsOnes,  // the indices of elements that are not zero
};

// How the op is computed over packed tokens, for passes/pack. Views and elementwise ops are.
enum class PackRule : uint8_t {
  kNone,
  kAlongAxis,
  kAttention,
  kByteTable,
  kCumSum,
  kEmbedding,
  kExpand,
  kGather,
  kLastDims,
  kPick,
  kPlace,
  kProduct,
  kQuantisation,
  kReduce,
  kRelative,
  kRequestScale,
  kRotary,
  kSlice,
  kTranspose,
};

// How the op finds the end of a request where its row goes on with padding, for passes/live.
enum class Border : uint8_t {
  kNone,  // it looks at no other position, or nothing is known
  kWindow,
  kCountedWindow,  // where it counts its pads
  kLargestWindow,
  kSum,
  kMean,
  kLargest,
  kSmallest,
  kPick,  // takes the largest or the smallest along its axis, or their places
  kNorm,
  kSoftmax,
  kProduct,
  kAttention,
  kLengths,
};

// The part of `reprise.precision` that acts on the op: products of rows and weights, attention.
enum class Rounding : uint8_t { kNone, kProduct, kAttention };

}  // namespace reprise
