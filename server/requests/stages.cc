#include "server/requests/stages.h"

#include "server/requests/admit.h"
#include "server/requests/key_limits.h"
#include "server/requests/shape.h"
#include "server/requests/text.h"
#include "server/requests/tokenize.h"

namespace reprise {

std::vector<Stage> RequestStages(const Repository& repository, const TextModels* texts) {
  return {
      CountAgainstKey,
      [&repository, texts](const InferRequest& asked, RequestState& state) {
        return texts != nullptr && SendsTexts(asked) ? AdmitTexts(repository, *texts, asked, state)
                                                     : Admit(repository, asked, state);
      },
      ReadTexts,
      MeasureShape,
  };
}

}  // namespace reprise
