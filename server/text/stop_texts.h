// StopTexts: looks for texts that end an answer, in a text that comes in parts.
//
// The possible beginning of one is held back until it is decided, so that no part of it is told.
//
// Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace reprise {

class StopTexts {
 public:
  // `keep`: the text that ended the answer is told.
  StopTexts(std::vector<std::string> stops, bool keep);

  // Returns the part of the text so far that may be told now. After a hit there is nothing more.
  std::string Push(absl::string_view part);
  // Returns the part held back: the text ends here.
  std::string Finish();
  // Returns the text that was found; null: none.
  const std::string* hit() const { return hit_; }

 private:
  const std::vector<std::string> stops_;
  const bool keep_;
  std::string held_;
  const std::string* hit_ = nullptr;
};

}  // namespace reprise
