#include "server/requests/stages.h"

#include "server/requests/admit.h"
#include "server/requests/shape.h"
#include "server/requests/text.h"

namespace reprise {

std::vector<Stage> RequestStages(const Repository& repository) {
  return {
      [&repository](const InferRequest& asked, RequestState& state) {
        return Admit(repository, asked, state);
      },
      ReadTexts,
      MeasureShape,
  };
}

}  // namespace reprise
