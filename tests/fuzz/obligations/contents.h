// The contents of the inputs of a drawn row, and of their padding, by the names of the inputs.
//
// A name is "kind.number" or "kind.bound.number"; a bound is a number or the symbol of an axis:
//
//   x      floats, mostly small binary fractions; integers from -9 to 9
//   unit   floats within 0.9 of 0
//   pos    floats from 0.5 to 2.5; integers from 1 to 9
//   whole  floats and integers from 0 to 3
//   flag   zeros and ones
//   mask   rows of ones, mostly with zeros after them
//   index  integers from 0 to below the bound; "place" also counts from the end
//   count  integers from 0 to the bound; "some" from 1 on
//
// Padding holds anything for most kinds; for the last two lines anything that the kind allows at
// the recipe's sizes, since a kernel refuses others.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"
#include "tests/fuzz/random_models/chance.h"
#include "tests/fuzz/random_models/model_draft.h"

namespace reprise::obligations {

using fuzz::Chance;
using fuzz::Sizes;

// Returns the shape of `dims` at `sizes`.
Shape ShapeAt(const std::vector<Dim>& dims, const Sizes& sizes);

// Returns the contents of the input `name` in a request of these sizes.
Tensor OrdinaryContents(const std::string& name, DType dtype, const std::vector<Dim>& dims,
                        const Sizes& sizes, Chance& chance);

// Padding of inputs: the engine itself writes ordinary numbers, and any are allowed. Infinite ones
// are asked of ops that follow other ops, whose results may overflow.
enum class Padding { kOrdinary, kLoud };

// Returns padding for the same input in a recipe of these sizes; kLoud: NaN, infinities, and the
// largest and smallest numbers as well.
Tensor HostileContents(const std::string& name, DType dtype, const std::vector<Dim>& dims,
                       const Sizes& sizes, Padding padding, Chance& chance);

// Puts infinities and NaN here and there into floats.
void MakeWild(Tensor& tensor, Chance& chance);

}  // namespace reprise::obligations
