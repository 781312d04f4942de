// CacheErrorText: what rounded pages of keys and values cost a decoder.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/engine.h"

namespace reprise::cli {

// Compares log-probabilities behind prefixes of a made-up text over pages of bf16 and int8 with
// those over pages of float32. A line for each; nothing for a model that makes no tokens.
std::string CacheErrorText(Engine& engine, const std::shared_ptr<const Model>& model);

}  // namespace reprise::cli
