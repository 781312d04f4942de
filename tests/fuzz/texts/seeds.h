// Seeds of the fuzzers: a file of each kind of tokenizer, files that cannot be, and texts.
#pragma once

#include <string>
#include <vector>

namespace reprise {

struct TextSeed {
  std::string name;
  std::string bytes;   // as FeedTokenizerFile or FeedText takes them
  bool loads = false;  // a file that is a tokenizer
};

std::vector<TextSeed> TokenizerFileSeeds();
std::vector<TextSeed> TextSeeds();

}  // namespace reprise
