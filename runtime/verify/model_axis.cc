#include "runtime/verify/model_axis.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {

void Refuse(ModelAxis& axis, std::string reason) {
  axis.certificate.axis = axis.label;
  axis.certificate.certified = false;
  axis.certificate.reason = std::move(reason);
}

void PackOnly(ModelAxis& axis) {
  AxisCertificate& certificate = axis.certificate;
  certificate.certified = true;
  certificate.only_packed_since = certificate.reason;
  certificate.reason =
      absl::StrCat("packed or exact, never padded, since ", certificate.only_packed_since);
}

}  // namespace reprise
