#include "runtime/verify/model_axis.h"

#include <algorithm>
#include <utility>

namespace reprise {

void Refuse(ModelAxis& axis, std::string reason) {
  axis.certificate.axis = axis.label;
  axis.certificate.certified = axis.certificate.proved = false;
  axis.certificate.reason = std::move(reason);
}

MaskNeeds NeedsOf(const AxisCertificate& certificate) {
  MaskNeeds needs = {.together = certificate.together};
  for (const auto& [input, places] : certificate.must_count) {
    const bool first = needs.places == CountingPlaces::kNone;
    needs.places = first ? places : std::min(needs.places, places);
  }
  return needs;
}

void RefuseOnlyPacked(ModelAxis& axis) {
  if (axis.certificate.only_packed()) Refuse(axis, axis.certificate.shallow);
}

}  // namespace reprise
