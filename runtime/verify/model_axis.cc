#include "runtime/verify/model_axis.h"

#include <utility>

namespace reprise {

void Refuse(ModelAxis& axis, std::string reason) {
  axis.certificate.axis = axis.label;
  axis.certificate.certified = axis.certificate.proved = false;
  axis.certificate.reason = std::move(reason);
}

void RefuseOnlyPacked(ModelAxis& axis) {
  if (axis.certificate.only_packed()) Refuse(axis, axis.certificate.shallow);
}

}  // namespace reprise
