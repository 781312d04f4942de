// Shrinking: the smallest case that still fails in the same way.
#pragma once

#include <functional>

#include "tests/fuzz/random_models/draw_model.h"

namespace reprise::fuzz {

// Makes `test` smaller for as long as `fails` says that it fails: fewer requests, outputs, nodes,
// inputs and axes, smaller sizes, branches taken for good. At most `tries` calls of `fails`.
TestCase Shrink(TestCase test, const std::function<bool(const TestCase&)>& fails, int tries);

}  // namespace reprise::fuzz
