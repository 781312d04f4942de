#include "server/text/stop_texts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {

StopTexts::StopTexts(std::vector<std::string> stops, bool keep)
    : stops_(std::move(stops)), keep_(keep) {}

std::string StopTexts::Push(absl::string_view part) {
  if (hit_ != nullptr) return "";
  if (stops_.empty()) return std::string(part);
  absl::StrAppend(&held_, part);
  // The one that begins first counts, of several at a place the first that was given.
  size_t begin = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t place = held_.find(stop);
    if (place >= begin) continue;
    begin = place;
    hit_ = &stop;
  }
  if (hit_ != nullptr) {
    held_.resize(begin + (keep_ ? hit_->size() : 0));
    return std::exchange(held_, "");
  }
  size_t held = 0;
  for (const std::string& stop : stops_) {
    size_t size = std::min(stop.size() - 1, held_.size());
    while (size > held && !absl::EndsWith(held_, absl::string_view(stop).substr(0, size))) --size;
    held = std::max(held, size);
  }
  std::string told = held_.substr(0, held_.size() - held);
  held_.erase(0, told.size());
  return told;
}

std::string StopTexts::Finish() { return hit_ != nullptr ? "" : std::exchange(held_, ""); }

}  // namespace reprise
