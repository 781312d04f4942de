// CacheErrorText: the error of a decoder with rounded pages of keys and values.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/engine.h"

namespace reprise::cli {

// Compares log-probabilities after prefixes of a made-up text over pages of bf16 and int8 with the
// ones over pages of float32. Returns a line for each; nothing for a model that makes no tokens.
std::string CacheErrorText(Engine& engine, const std::shared_ptr<const Model>& model);

}  // namespace reprise::cli
