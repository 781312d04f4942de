#include "client/cli/timestamp.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace reprise::cli {
namespace {

std::string SpanText(double seconds) {
  const auto whole = static_cast<long>(seconds);
  if (whole < 120) return absl::StrCat(whole, " s");
  if (whole < 120 * 60) return absl::StrCat(whole / 60, " min");
  if (whole < 48 * 3600) return absl::StrCat(whole / 3600, " h");
  return absl::StrCat(whole / (24 * 3600), " days");
}

}  // namespace

std::string Ago(const google::protobuf::Timestamp& time) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const double seconds = now.count() - static_cast<double>(time.seconds()) - time.nanos() * 1e-9;
  return seconds < 0 ? "now" : absl::StrCat(SpanText(seconds), " ago");
}

}  // namespace reprise::cli
