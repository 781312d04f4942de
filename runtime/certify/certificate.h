// AxisCertificate: what the ops of a model say of padding along one axis.
#pragma once

#include <string>
#include <vector>

namespace reprise {

struct AxisCertificate {
  std::string axis;
  // Padding along it, or rows of others beside a request, change no answer. False: never pad along
  // this axis; a batch axis never carries two requests.
  bool certified = false;
  // Inputs whose padding holds their fill values; the padding of every other input may hold
  // anything.
  std::vector<std::string> guards;
  // The first node that lets one position see another, and how: "node '/pool/ReduceMean'
  // (ReduceMean) averages over sequence". Empty where none does, and where the ops
  // were not looked at.
  std::string mixing;
  // Why requests of a certified axis are packed or run exact, and none is padded. Empty: they may
  // be.
  std::string only_packed_since;
  // Words for a person.
  std::string reason;

  bool only_packed() const { return certified && !only_packed_since.empty(); }

  friend bool operator==(const AxisCertificate&, const AxisCertificate&) = default;
};

}  // namespace reprise
