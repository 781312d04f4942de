#include "server/speech/transcript.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// The most windows that begin within the length of one.
constexpr int64_t kMostStarts = 150;

// "00:01:02,345"
std::string TimeText(double seconds, char point) {
  const auto ms = static_cast<int64_t>(std::llround(seconds * 1000));
  return FormatText("%02d:%02d:%02d%c%03d", static_cast<int>(ms / 3600000),
                    static_cast<int>(ms / 60000 % 60), static_cast<int>(ms / 1000 % 60), point,
                    static_cast<int>(ms % 1000));
}

std::string Between(const Segment& segment, char point) {
  return absl::StrCat(TimeText(segment.start, point), " --> ", TimeText(segment.end, point), "\n",
                      absl::StripAsciiWhitespace(segment.text), "\n\n");
}

}  // namespace

absl::StatusOr<std::string> Transcript::Decode(absl::Span<const int64_t> ids) const {
  std::vector<uint32_t> texts;
  for (const int64_t id : ids) {
    if (IsText(id)) texts.push_back(static_cast<uint32_t>(id));
  }
  return tokenizer_.Decode(texts, /*skip_special=*/true);
}

absl::StatusOr<std::string> Transcript::TextOf(absl::Span<const int64_t> ids) const {
  ASSIGN_OR_RETURN(const std::string text, Decode(ids));
  return std::string(absl::StripAsciiWhitespace(text));
}

absl::Status Transcript::AddSegment(const SpokenWindow& window, absl::Span<const int64_t> ids,
                                    double start, double end) {
  Segment segment{.start = start,
                  .end = end,
                  .seek = window.seek / facts_.spectrum.step,
                  .ids = {ids.begin(), ids.end()},
                  .scores = window.scores};
  ASSIGN_OR_RETURN(segment.text, Decode(ids));
  // Silence has no words.
  if (absl::StripAsciiWhitespace(segment.text).empty()) return absl::OkStatus();
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Transcript::Add(const SpokenWindow& window) {
  const auto rate = static_cast<double>(facts_.spectrum.rate);
  const double begin = static_cast<double>(window.seek) / rate;
  const double length = static_cast<double>(window.samples) / rate;
  const int64_t first = facts_.first_time();
  const absl::Span<const int64_t> ids = window.ids;
  const auto is_time = [&](size_t i) { return with_times_ && ids[i] >= first; };
  const auto seconds = [&](size_t i) {
    return static_cast<double>(ids[i] - first) * facts_.time_step();
  };
  // A piece ends between two times.
  std::vector<size_t> ends;
  for (size_t i = 1; i < ids.size(); ++i) {
    if (is_time(i) && is_time(i - 1)) ends.push_back(i);
  }
  const size_t count = ids.size();
  const bool is_closed = count >= 2 && is_time(count - 1) && !is_time(count - 2);
  if (ends.empty()) {
    // One piece: to its last time, or to the window's end.
    double end = length;
    for (size_t i = 0; i < count; ++i) {
      if (is_time(i) && ids[i] != first) end = std::min(length, seconds(i));
    }
    RETURN_IF_ERROR(AddSegment(window, ids, begin, begin + end));
    return window.samples;
  }
  if (is_closed) ends.push_back(count);
  size_t from = 0;
  for (const size_t to : ends) {
    RETURN_IF_ERROR(AddSegment(window, ids.subspan(from, to - from),
                               begin + std::min(length, seconds(from)),
                               begin + std::min(length, seconds(to - 1))));
    from = to;
  }
  if (is_closed) return window.samples;
  const auto step = static_cast<int64_t>(std::llround(facts_.time_step() * rate));
  // A decoder that names early times again and again must not take for ever.
  const int64_t least = facts_.spectrum.samples / kMostStarts;
  return std::min(std::max((ids[from - 1] - first) * step, least), window.samples);
}

std::string Transcript::Text() const {
  std::string text;
  for (const Segment& segment : segments_) text += segment.text;
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string Transcript::Srt() const {
  std::string text;
  for (size_t i = 0; i < segments_.size(); ++i) {
    absl::StrAppend(&text, i + 1, "\n", Between(segments_[i], ','));
  }
  return text;
}

std::string Transcript::Vtt() const {
  std::string text = "WEBVTT\n\n";
  for (const Segment& segment : segments_) text += Between(segment, '.');
  return text;
}

}  // namespace reprise
