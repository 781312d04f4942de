// ResizeUninitialized: room in a string for what is written next.
#pragma once

#include <cstddef>
#include <string>

namespace reprise {

// `text` has `size` bytes; those that it had not before hold anything.
void ResizeUninitialized(std::string& text, size_t size);

}  // namespace reprise
