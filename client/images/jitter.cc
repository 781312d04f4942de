#include "client/images/jitter.h"

#include <array>
#include <utility>

#include "client/images/color.h"

namespace reprise::images {

void JitterColors(const Transform& jitter, RandomStream& random, Image& image) {
  struct Change {
    const std::vector<double>* range;
    double nothing;  // the factor that changes nothing
    void (*adjust)(Image& image, float factor);
  };
  std::array<Change, 4> changes = {{{&jitter.brightness, 1, AdjustBrightness},
                                    {&jitter.contrast, 1, AdjustContrast},
                                    {&jitter.saturation, 1, AdjustSaturation},
                                    {&jitter.hue, 0, AdjustHue}}};
  for (size_t i = changes.size() - 1; i > 0; --i) {
    std::swap(changes[i], changes[static_cast<size_t>(random.Below(static_cast<int64_t>(i) + 1))]);
  }
  for (const Change& change : changes) {
    const double factor = random.Between((*change.range)[0], (*change.range)[1]);
    if (factor != change.nothing) change.adjust(image, static_cast<float>(factor));
  }
}

}  // namespace reprise::images
